import type { Attributes } from '@opentelemetry/api'

/** The value of an attribute; undefined leaves the attribute out. */
export type LabelValue = string | number | undefined

/**
 * A set of attributes and its extensions. Each extension value is a look-up, without making an object or a string.
 * There is one set per combination of values that has occurred.
 */
export class Labelled {
  readonly attributes: Attributes
  /** The count for these attributes; undefined if nothing was counted. */
  count: number | undefined = undefined
  #extensions: Map<LabelValue, Labelled> | undefined

  constructor(attributes: Attributes = {}) {
    this.attributes = attributes
  }

  /** Returns the set with one more attribute. Each set must always be extended by the same attribute name. */
  with(name: string, value: LabelValue): Labelled {
    return this.#extensions?.get(value) ?? this.#made(name, value)
  }

  add(amount: number): void {
    this.count = (this.count ?? 0) + amount
  }

  /** Yields the sets with a count, this one and its extensions. */
  *counted(): Generator<Labelled> {
    if (this.count !== undefined) yield this
    if (this.#extensions) for (const extension of this.#extensions.values()) yield* extension.counted()
  }

  #made(name: string, value: LabelValue): Labelled {
    const made = new Labelled(value === undefined ? this.attributes : { ...this.attributes, [name]: value })
    this.#extensions ??= new Map()
    this.#extensions.set(value, made)
    return made
  }
}
