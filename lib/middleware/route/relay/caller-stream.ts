import type { ServerResponse } from 'node:http'
import type { RelaySink } from './stream-relay.ts'

/** The reading side: it waits while the caller is slower, and ends where the caller is to get nothing at all. */
export interface StreamSource {
  pause(): void
  resume(): void
  abandon(): void
}

/** Who owns a stream: is told of its first bytes, and gets those that are not sent. */
export interface StreamOwner {
  /** Is called right before the first bytes go out. */
  onCommit(): void
  /** Returns what the head has to wait for, and every byte behind it; undefined: nothing. */
  beforeHead(): Promise<void> | undefined
  /** Takes what comes for a caller who has left. */
  keepUnsent(bytes: Buffer): void
}

/** The caller's end of a stream: writes its head at the commit and passes backpressure on. */
export class CallerStream implements RelaySink {
  readonly #res: ServerResponse
  readonly #owner: StreamOwner
  readonly #source: StreamSource
  #waiting = false
  #discarding = false
  #refused = false
  /** What was written while the head had to wait. */
  #held: Buffer[] | undefined
  #opened: Promise<void> | undefined

  /** @param source the attempt whose stream it is. */
  constructor(res: ServerResponse, source: StreamSource, owner: StreamOwner) {
    this.#res = res
    this.#source = source
    this.#owner = owner
  }

  /**
   * Settled once the head has gone out; undefined where it did not have to wait. Rejects with why it must not go out:
   * the attempt was abandoned for that.
   */
  get opened(): Promise<void> | undefined {
    return this.#opened
  }

  /** The caller has left: what is still read is not written, and nothing waits for the caller any more. */
  discard(): void {
    this.#discarding = true
    for (const bytes of this.#takeHeld()) this.#owner.keepUnsent(bytes)
    if (this.#waiting) this.#resume()
  }

  commit(): void {
    this.#owner.onCommit()
    if (this.#discarding) return
    const waiting = this.#owner.beforeHead()
    if (!waiting) {
      this.#writeHead()
      return
    }
    this.#held = []
    this.#pause()
    this.#opened = waiting.then(
      () => this.#open(),
      (error: unknown) => this.#refuse(error),
    )
    // Whoever runs the attempt looks at it when that is over.
    this.#opened.catch(() => {})
  }

  write(bytes: Buffer): void {
    if (this.#refused) return
    if (this.#discarding) this.#owner.keepUnsent(bytes)
    else if (this.#held) this.#held.push(bytes)
    else if (!this.#res.write(bytes) && !this.#waiting) this.#awaitDrain()
  }

  #open(): void {
    const held = this.#takeHeld()
    if (this.#discarding) return
    this.#writeHead()
    let flows = true
    for (const bytes of held) flows = this.#res.write(bytes)
    if (flows) this.#resume()
    else this.#awaitDrain()
  }

  #refuse(error: unknown): never {
    this.#takeHeld()
    this.#refused = true
    this.#source.abandon()
    throw error
  }

  #writeHead(): void {
    this.#res.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      // Compressed on the way, events would wait for each other.
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
    })
  }

  #takeHeld(): readonly Buffer[] {
    const held = this.#held ?? []
    this.#held = undefined
    return held
  }

  #awaitDrain(): void {
    this.#pause()
    this.#res.once('drain', () => {
      if (this.#waiting) this.#resume()
    })
  }

  #pause(): void {
    this.#waiting = true
    this.#source.pause()
  }

  #resume(): void {
    this.#waiting = false
    this.#source.resume()
  }
}
