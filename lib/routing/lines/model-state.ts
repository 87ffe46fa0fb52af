import type { CircuitSettings } from '../../core/catalog/index.ts'
import { Circuit } from './circuit.ts'

/** The longest rest at a time, whatever the upstream asks for. */
const MAX_REST_MS = 60_000
/** The rests after answers that do not say how long: the first, and the longest. */
const FIRST_REST_MS = 2000
const LONGEST_UNSAID_MS = 30_000
const CLOCK_ERROR_MS = 0.001

/** The state of one model on a line in this process: its circuit, and its rest after a 429. */
export class ModelState {
  readonly circuit: Circuit
  #restUntil = 0
  /** The length of the last rest that the upstream did not ask for; 0 if the model has answered since. */
  #unsaidMs = 0

  constructor(settings: CircuitSettings) {
    this.circuit = new Circuit(settings)
  }

  /** Whole milliseconds until the rest ends; 0 if there is none. */
  get restMs(): number {
    if (this.#restUntil === 0) return 0
    // Without it, the error of the clock's fractions would make a rest of 60 s one of 61.
    return Math.max(0, Math.ceil(this.#restUntil - performance.now() - CLOCK_ERROR_MS))
  }

  /** Whether the model has answered nothing but 429 since its last rest began. */
  get recovering(): boolean {
    return this.#unsaidMs > 0
  }

  /**
   * Rests the model after a 429.
   *
   * @param saidMs how long the upstream asks to wait; undefined if it does not say. The rests then double while the
   * 429s go on.
   * @returns the milliseconds until the rest ends.
   */
  rest(saidMs: number | undefined): number {
    const now = performance.now()
    if (saidMs !== undefined) this.#restUntil = Math.max(this.#restUntil, now + Math.min(MAX_REST_MS, saidMs))
    else if (this.restMs === 0) {
      // Calls that ran at the same time have begun the rest already.
      const goesOn = now - this.#restUntil < LONGEST_UNSAID_MS
      this.#unsaidMs =
        goesOn && this.#unsaidMs > 0 ? Math.min(LONGEST_UNSAID_MS, 2 * this.#unsaidMs) : FIRST_REST_MS
      this.#restUntil = now + this.#unsaidMs
    }
    return this.restMs
  }

  /** Notes an answer: the next rest is a first one again. A call that began before the rest says nothing about it. */
  answered(): void {
    if (this.#unsaidMs > 0 && this.restMs === 0) this.#unsaidMs = 0
  }

  /** Ends the rest. */
  lift(): void {
    this.#restUntil = 0
    this.#unsaidMs = 0
  }
}
