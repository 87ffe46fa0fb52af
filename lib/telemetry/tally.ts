import type { Attributes, ObservableCounter } from '@opentelemetry/api'

interface Count {
  readonly attributes: Attributes
  value: number
}

/** A value of an attribute; undefined: the attribute is left out. */
export type TallyValue = string | number | undefined

/** Between values in a key; none holds it. */
const SEPARATOR = '\u0000'

/**
 * A counter that is asked for its counts when metrics are collected. Counting is a look-up and an addition, about a tenth
 * of what adding to an instrument takes.
 */
export class Tally {
  readonly #names: readonly string[]
  readonly #counts = new Map<string, Count>()

  /**
   * @param counter what tells the counts.
   * @param names of the attributes, in the order of the values that are counted.
   * @param unit what one of the counter is in terms of what is counted. Defaults to 1.
   */
  constructor(counter: ObservableCounter, names: readonly string[], unit = 1) {
    this.#names = names
    counter.addCallback((result) => {
      for (const { attributes, value } of this.#counts.values()) result.observe(value / unit, attributes)
    })
  }

  add(amount: number, ...values: readonly TallyValue[]): void {
    const key = values.length === 1 ? `${values[0]}` : values.join(SEPARATOR)
    const known = this.#counts.get(key)
    if (known) known.value += amount
    else this.#counts.set(key, { attributes: this.#attributes(values), value: amount })
  }

  #attributes(values: readonly TallyValue[]): Attributes {
    const attributes: Attributes = {}
    for (const [i, name] of this.#names.entries()) {
      const value = values[i]
      if (value !== undefined) attributes[name] = value
    }
    return attributes
  }
}
