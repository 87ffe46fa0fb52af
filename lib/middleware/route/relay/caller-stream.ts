import type { ServerResponse } from 'node:http'
import type { RelaySink } from './stream-relay.ts'

/** The exchange of a stream. It pauses for a slow caller, and is abandoned if the head must not go out. */
export interface StreamSource {
  pause(): void
  resume(): void
  abandon(): void
}

export interface StreamOwner {
  /** Called right before the first bytes go out. */
  onCommit(): void
  /** Returns a promise that the head and all bytes after it wait for; undefined if nothing has to wait. */
  beforeHead(): Promise<void> | undefined
  /** Takes the bytes of a caller that has left. */
  keepUnsent(bytes: Buffer): void
}

/** The caller's side of a stream. It writes the head at the commit and passes backpressure on to the source. */
export class CallerStream implements RelaySink {
  readonly #res: ServerResponse
  readonly #owner: StreamOwner
  readonly #source: StreamSource
  #waiting = false
  #discarding = false
  #refused = false
  /** The bytes written while the head waits. */
  #held: Buffer[] | undefined
  #opened: Promise<void> | undefined

  /** @param source the exchange that the stream comes from. */
  constructor(res: ServerResponse, source: StreamSource, owner: StreamOwner) {
    this.#res = res
    this.#source = source
    this.#owner = owner
  }

  /**
   * A promise that resolves once the head has gone out; undefined if the head did not have to wait. It rejects with
   * the reason if the head must not go out; the source is then abandoned.
   */
  get opened(): Promise<void> | undefined {
    return this.#opened
  }

  /** Stops writing because the caller has left. Remaining bytes go to the owner, without backpressure. */
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
    // The rejection is handled once the attempt is over.
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
      // A proxy that compresses the stream would delay events.
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
