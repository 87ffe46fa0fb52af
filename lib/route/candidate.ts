import { type Catalog, type Line, type Model, type Price, priceOn, windowOn } from '../catalog/index.ts'
import type { LineRegistry, LineState } from './line-state.ts'

/** A line that may serve a call, as strategies see it. */
export interface Candidate {
  readonly line: Line
  /** The upstream's name of the model. */
  readonly upstreamModel: string
  readonly price: Price
  readonly contextWindow: number | undefined
  /** Load and speed of the line in this process. */
  readonly state: LineState
}

/** The candidates of each model of a catalogue, built once: by priority, then weight, then the order of the config. */
export class CandidateTable {
  readonly #registry: LineRegistry
  readonly #byCatalog = new WeakMap<Catalog, Map<string, readonly Candidate[]>>()

  constructor(registry: LineRegistry) {
    this.#registry = registry
  }

  of(catalog: Catalog, model: Model): readonly Candidate[] {
    const byModel = this.#byCatalog.get(catalog) ?? new Map<string, readonly Candidate[]>()
    this.#byCatalog.set(catalog, byModel)
    const known = byModel.get(model.id)
    if (known) return known
    const candidates = this.#build(catalog, model)
    byModel.set(model.id, candidates)
    return candidates
  }

  /** The candidates of a model, and a line that has what the call refers to, although it may not serve the model now. */
  withLine(catalog: Catalog, model: Model, lineId: string): readonly Candidate[] {
    const candidates = this.of(catalog, model)
    if (candidates.some(({ line }) => line.id === lineId)) return candidates
    const line = catalog.lines.find(({ id }) => id === lineId)
    return line ? [...candidates, this.#candidate(model, line)] : candidates
  }

  #build(catalog: Catalog, model: Model): readonly Candidate[] {
    return catalog
      .linesOf(model.id)
      .map((line) => this.#candidate(model, line))
      .sort((a, b) => a.line.priority - b.line.priority || b.line.weight - a.line.weight)
  }

  #candidate(model: Model, line: Line): Candidate {
    return {
      line,
      upstreamModel: line.models.get(model.id) ?? model.id,
      price: priceOn(model, line),
      contextWindow: windowOn(model, line),
      state: this.#registry.stateOf(line),
    }
  }
}
