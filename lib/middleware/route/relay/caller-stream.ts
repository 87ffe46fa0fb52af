import type { ServerResponse } from 'node:http'
import type { RelaySink } from './stream-relay.ts'

/** What the reading side does when the caller is slower, or is to get nothing at all. */
export interface StreamSource {
  pause(): void
  resume(): void
  abandon(): void
}

/** What happens around the first bytes of a stream. */
export interface StreamOpening {
  /** Told right before the first bytes go out. */
  onCommit(): void
  /** What the head has to wait for, and every byte behind it; undefined: nothing. */
  beforeHead(): Promise<void> | undefined
  /** Takes what comes for a caller who has left. */
  onUnsent?: ((bytes: Buffer) => void) | undefined
}

/** The caller's end of a stream: writes its head at the commit and passes backpressure on. */
export class CallerStream implements RelaySink {
  readonly #res: ServerResponse
  readonly #opening: StreamOpening
  #source: StreamSource | undefined
  #waiting = false
  #discarding = false
  #refused = false
  /** What was written while the head had to wait. */
  #held: Buffer[] | undefined
  #opened: Promise<void> | undefined

  constructor(res: ServerResponse, opening: StreamOpening) {
    this.#res = res
    this.#opening = opening
  }

  /** The attempt that writes here now. */
  attach(source: StreamSource): void {
    this.#source = source
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
    for (const bytes of this.#takeHeld()) this.#opening.onUnsent?.(bytes)
    if (this.#waiting) this.#resume()
  }

  commit(): void {
    this.#opening.onCommit()
    if (this.#discarding) return
    const waiting = this.#opening.beforeHead()
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
    if (this.#discarding) this.#opening.onUnsent?.(bytes)
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
    this.#source?.abandon()
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
    this.#source?.pause()
  }

  #resume(): void {
    this.#waiting = false
    this.#source?.resume()
  }
}
