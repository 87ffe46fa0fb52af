import type { BatchObservableResult, ObservableCounter } from '@opentelemetry/api'
import { NANOS_PER_UNIT } from '../../core/catalog/index.ts'
import { Labelled } from './labelled.ts'

/** The unit of a tally that counts nano-units and reports USD. */
export const IN_USD = Number(NANOS_PER_UNIT)

/**
 * A counter that keeps its own counts and reports them when metrics are collected. Counting takes a few look-ups and
 * an addition, about a tenth of the time that adding to an instrument takes.
 */
export class Tally {
  readonly counter: ObservableCounter
  readonly counts = new Labelled()
  readonly #unit: number

  /** @param unit the count that equals one unit of the instrument. Defaults to 1. */
  constructor(counter: ObservableCounter, unit = 1) {
    this.counter = counter
    this.#unit = unit
  }

  observe(result: BatchObservableResult): void {
    for (const { attributes, count = 0 } of this.counts.counted())
      result.observe(this.counter, count / this.#unit, attributes)
  }
}
