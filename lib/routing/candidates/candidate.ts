import {
  type Catalog,
  type Line,
  type Model,
  type Price,
  priceOn,
  upstreamName,
  windowOn,
} from '../../core/catalog/index.ts'
import { servesNatively } from '../../core/operations/by-path.ts'
import type { Operation } from '../../core/operations/operation.ts'
import type { LineRegistry } from '../lines/line-registry.ts'
import type { LineState, ModelState } from '../lines/line-state.ts'
import type { Rest } from '../lines/rest.ts'
import { missingEndpoint } from './endpoint-fit.ts'
import { RetryBudget } from './retry-budget.ts'

/** A line that may serve a call. Strategies order candidates. */
export interface Candidate {
  readonly line: Line
  /** The upstream's name of the model. */
  readonly upstreamModel: string
  readonly price: Price
  readonly contextWindow: number | undefined
  /** Load and speed of the line in this process. */
  readonly state: LineState
  /** The circuit of the model on the line. */
  readonly modelState: ModelState
  /** The rest that keeps the call from the line, and that a 429 begins: that of the model, or that of look-ups. */
  readonly rest: Rest
  /** Whether the line has the caller's endpoint. If not, calls are translated for it. */
  readonly native: boolean
  /** Why the line cannot serve the caller's endpoint at all; undefined if it can. */
  readonly missing: string | undefined
}

/** The candidates of a model for one endpoint, with the retry budget that its calls share. */
export interface CandidateList {
  /** Sorted by priority, native lines first, then by weight, then in the order of the config. */
  readonly candidates: readonly Candidate[]
  readonly budget: RetryBudget
}

/** Builds and keeps the candidates of each model of a catalogue. */
export class CandidateTable {
  readonly #registry: LineRegistry
  readonly #byCatalog = new WeakMap<Catalog, { [operation: string]: Map<string, CandidateList> }>()
  readonly #budgets = new Map<string, RetryBudget>()

  constructor(registry: LineRegistry) {
    this.#registry = registry
  }

  /** @param operation the endpoint that the caller called. */
  of(catalog: Catalog, model: Model, operation: Operation): CandidateList {
    // Callers can make up any number of names that a pattern matches.
    if (model.pattern !== undefined) return this.#list(catalog, model, operation)
    return (
      this.#byCatalog.get(catalog)?.[operation.name]?.get(model.id) ?? this.#add(catalog, model, operation)
    )
  }

  /** Returns the candidates of a model and the line that holds the call's resource, even if it is not one of them. */
  withLine(catalog: Catalog, model: Model, operation: Operation, lineId: string): CandidateList {
    const list = this.of(catalog, model, operation)
    if (list.candidates.some(({ line }) => line.id === lineId)) return list
    const line = catalog.lines.find(({ id }) => id === lineId)
    if (!line) return list
    return { ...list, candidates: [...list.candidates, this.#candidate(model, line, operation)] }
  }

  #add(catalog: Catalog, model: Model, operation: Operation): CandidateList {
    const lists = this.#byCatalog.get(catalog) ?? {}
    this.#byCatalog.set(catalog, lists)
    lists[operation.name] ??= new Map()
    const list = this.#list(catalog, model, operation)
    lists[operation.name]?.set(model.id, list)
    return list
  }

  #list(catalog: Catalog, model: Model, operation: Operation): CandidateList {
    const candidates = catalog
      .linesOf(model.id)
      .map((line) => this.#candidate(model, line, operation))
      .sort(
        (a, b) =>
          a.line.priority - b.line.priority ||
          Number(b.native) - Number(a.native) ||
          b.line.weight - a.line.weight,
      )
    const id = model.pattern ?? model.id
    const budget = this.#budgets.get(id) ?? new RetryBudget()
    this.#budgets.set(id, budget)
    return { candidates, budget }
  }

  #candidate(model: Model, line: Line, operation: Operation): Candidate {
    const state = this.#registry.stateOf(line)
    const modelState = state.modelState(model.id, model.pattern)
    return {
      line,
      upstreamModel: upstreamName(line, model.id) ?? model.id,
      price: priceOn(model, line),
      contextWindow: windowOn(model, line),
      state,
      modelState,
      rest: modelState,
      native: servesNatively(line, operation),
      missing: missingEndpoint(line, operation),
    }
  }
}
