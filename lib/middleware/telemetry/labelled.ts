import type { Attributes } from '@opentelemetry/api'

/** A value of an attribute; undefined: the attribute is left out. */
export type LabelValue = string | number | undefined

/**
 * A set of attributes, and those that go on from it: found by a look-up for each value, without an object or a string
 * being made for it. There are as many as there are combinations of values that occurred.
 */
export class Labelled {
  readonly attributes: Attributes
  /** What was counted with these attributes; undefined: nothing. */
  count: number | undefined = undefined
  #further: Map<LabelValue, Labelled> | undefined

  constructor(attributes: Attributes = {}) {
    this.attributes = attributes
  }

  /** These attributes and one more. At one place it is the same attribute each time. */
  with(name: string, value: LabelValue): Labelled {
    return this.#further?.get(value) ?? this.#made(name, value)
  }

  add(amount: number): void {
    this.count = (this.count ?? 0) + amount
  }

  /** All with something counted, this one or further ones. */
  *counted(): Generator<Labelled> {
    if (this.count !== undefined) yield this
    if (this.#further) for (const further of this.#further.values()) yield* further.counted()
  }

  #made(name: string, value: LabelValue): Labelled {
    const made = new Labelled(value === undefined ? this.attributes : { ...this.attributes, [name]: value })
    this.#further ??= new Map()
    this.#further.set(value, made)
    return made
  }
}
