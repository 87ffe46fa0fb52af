import type { ServerResponse } from 'node:http'
import type { RelaySink } from './stream-relay.ts'

/** What the reading side does when the caller is slower. */
export interface Pausable {
  pause(): void
  resume(): void
}

/** The caller's end of a stream: writes its head at the commit and passes backpressure on. */
export class CallerStream implements RelaySink {
  readonly #res: ServerResponse
  readonly #onCommit: () => void
  readonly #onUnsent: ((bytes: Buffer) => void) | undefined
  #source: Pausable | undefined
  #waiting = false
  #discarding = false

  /**
   * @param onCommit told right before the first bytes go out.
   * @param onUnsent takes what comes for a caller who has left.
   */
  constructor(res: ServerResponse, onCommit: () => void, onUnsent?: (bytes: Buffer) => void) {
    this.#res = res
    this.#onCommit = onCommit
    this.#onUnsent = onUnsent
  }

  /** The attempt that writes here now. */
  attach(source: Pausable): void {
    this.#source = source
  }

  /** The caller has left: what is still read is not written, and nothing waits for the caller any more. */
  discard(): void {
    this.#discarding = true
    if (this.#waiting) this.#resume()
  }

  commit(): void {
    this.#onCommit()
    if (this.#discarding) return
    this.#res.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      // Compressed on the way, events would wait for each other.
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
    })
  }

  write(bytes: Buffer): void {
    if (this.#discarding) {
      this.#onUnsent?.(bytes)
      return
    }
    if (this.#res.write(bytes) || this.#waiting) return
    this.#waiting = true
    this.#source?.pause()
    this.#res.once('drain', () => {
      if (this.#waiting) this.#resume()
    })
  }

  #resume(): void {
    this.#waiting = false
    this.#source?.resume()
  }
}
