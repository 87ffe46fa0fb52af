import type { BatchObservableResult, ObservableCounter } from '@opentelemetry/api'
import { Labelled } from './labelled.ts'

/**
 * A counter that is asked for its counts when metrics are collected. Counting is a few look-ups and an addition, about a
 * tenth of what adding to an instrument takes.
 */
export class Tally {
  readonly counter: ObservableCounter
  readonly counts = new Labelled()
  readonly #unit: number

  /** @param unit what one of the counter is in terms of what is counted. Defaults to 1. */
  constructor(counter: ObservableCounter, unit = 1) {
    this.counter = counter
    this.#unit = unit
  }

  tell(result: BatchObservableResult): void {
    for (const { attributes, count = 0 } of this.counts.counted())
      result.observe(this.counter, count / this.#unit, attributes)
  }
}
