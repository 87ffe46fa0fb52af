import {
  type Catalog,
  type Line,
  type Model,
  type Price,
  priceOn,
  windowOn,
} from '../../core/catalog/index.ts'
import { type Operation, servesNatively } from '../../core/operations/index.ts'
import type { LineRegistry, LineState } from '../lines/line-state.ts'

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

/**
 * The candidates of each model of a catalogue, built once: by priority, then those that have the caller's endpoint, then by
 * weight, then in the order of the config.
 */
export class CandidateTable {
  readonly #registry: LineRegistry
  readonly #byCatalog = new WeakMap<Catalog, CandidateLists>()

  constructor(registry: LineRegistry) {
    this.#registry = registry
  }

  /** @param operation the caller's. */
  of(catalog: Catalog, model: Model, operation: Operation): readonly Candidate[] {
    const lists: CandidateLists = this.#byCatalog.get(catalog) ?? {}
    this.#byCatalog.set(catalog, lists)
    const byModel = lists[operation.name] ?? new Map<string, readonly Candidate[]>()
    lists[operation.name] = byModel
    const known = byModel.get(model.id)
    if (known) return known
    const candidates = this.#build(catalog, model, operation)
    byModel.set(model.id, candidates)
    return candidates
  }

  /** The candidates of a model, and a line that has what the call refers to, although it may not serve the model now. */
  withLine(catalog: Catalog, model: Model, operation: Operation, lineId: string): readonly Candidate[] {
    const candidates = this.of(catalog, model, operation)
    if (candidates.some(({ line }) => line.id === lineId)) return candidates
    const line = catalog.lines.find(({ id }) => id === lineId)
    return line ? [...candidates, this.#candidate(model, line)] : candidates
  }

  #build(catalog: Catalog, model: Model, operation: Operation): readonly Candidate[] {
    const translated = ({ line }: Candidate): number => (servesNatively(line, operation) ? 0 : 1)
    return catalog
      .linesOf(model.id)
      .map((line) => this.#candidate(model, line))
      .sort(
        (a, b) =>
          a.line.priority - b.line.priority || translated(a) - translated(b) || b.line.weight - a.line.weight,
      )
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

/** By the caller's operation, then the model's id. */
type CandidateLists = { [operation: string]: Map<string, readonly Candidate[]> }
