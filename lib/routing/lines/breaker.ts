import { EventEmitter } from 'node:events'
import CircuitBreaker from 'opossum'

/** State of a circuit. */
export type CircuitState = 'closed' | 'open' | 'half_open'

/** Keeps the state of a circuit and its timer, with opossum. No call runs through it. */
export class Breaker {
  readonly #options: CircuitBreaker.Options = {
    timeout: false,
    rollingPercentilesEnabled: false,
    enableSnapshots: false,
    // opossum's own counts stay empty. Without this, each breaker would have a timer that rotates them.
    rotateBucketController: new EventEmitter(),
  }
  readonly #breaker = new CircuitBreaker(noAction, this.#options)
  readonly #onHalfOpen: () => void
  /** When it is half open at the latest, on the monotonic clock; undefined once that has been told. */
  #openUntil: number | undefined

  constructor(onHalfOpen: () => void) {
    this.#onHalfOpen = onHalfOpen
    this.#breaker.on('halfOpen', () => this.#halfOpened())
  }

  get state(): CircuitState {
    if (this.#breaker.closed) return 'closed'
    // The timer of a busy process is late. Who has waited as told would wait for it again.
    if (this.#openUntil !== undefined && performance.now() >= this.#openUntil) this.#halfOpened()
    return this.#openUntil !== undefined && this.#breaker.opened ? 'open' : 'half_open'
  }

  /** @param until when it is half open, on the monotonic clock. */
  open(until: number): void {
    // An open breaker ignores `open()` and keeps its old timer.
    this.#breaker.close()
    this.#options.resetTimeout = Math.max(0, until - performance.now())
    this.#openUntil = until
    this.#breaker.open()
  }

  close(): void {
    this.#breaker.close()
  }

  /** Ends the timer. */
  shutdown(): void {
    this.#breaker.shutdown()
  }

  #halfOpened(): void {
    if (this.#openUntil === undefined) return
    this.#openUntil = undefined
    this.#onHalfOpen()
  }
}

async function noAction(): Promise<void> {}
