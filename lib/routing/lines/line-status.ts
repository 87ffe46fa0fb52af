import type { Line } from '../../core/catalog/index.ts'
import type { CircuitState } from './account-breaker.ts'
import { type Availability, availabilityOf } from './availability.ts'
import type { Circuit } from './circuit.ts'
import type { LineState, ModelState } from './line-state.ts'

/** The part of a line that callers see. It holds no address, no secret, and nothing about the use by others. */
export interface LineOutline {
  readonly id: string
  readonly provider: string
  readonly protocol: string
  readonly region: string | null
  readonly enabled: boolean
  readonly priority: number
  readonly weight: number
  /** The worst of the circuits of the line and its models; for callers, of those that concern them. */
  readonly circuit: CircuitState
}

/** The status of a line for operators. It holds no address and no secret. */
export interface LineStatus extends LineOutline {
  readonly retry_after_ms: number | null
  /** The longest rest of its models. */
  readonly rest_ms: number
  readonly in_flight: number
  readonly first_byte_ms: number | null
  readonly tokens_per_second: number | null
}

/** The status of a line with the figures that only operators see. */
export interface LineFigures extends LineStatus {
  readonly availability: Availability
  /** Attempts in this process that ended in the last minute, without those that callers left. */
  readonly recent_attempts: number
  /** The attempts that failed through the line's fault, 429s and empty answers included. */
  readonly recent_failures: number
  /** The share of failures among the attempts; null if there were none. */
  readonly error_share: number | null
  /** The models that rest after a 429. */
  readonly rests: readonly ModelRest[]
  /** The circuits that are not closed. */
  readonly circuits: readonly OpenCircuit[]
}

/** A model that rests on a line after a 429. */
export interface ModelRest {
  /** null for requests that name no model. */
  readonly model: string | null
  readonly rest_ms: number
}

/** A circuit of a line that is not closed. */
export interface OpenCircuit {
  /** The scope of the circuit: all models of the line, or one; null for requests that name none. */
  readonly scope: 'line' | 'model'
  readonly model: string | null
  readonly state: Exclude<CircuitState, 'closed'>
  /** The only account that it is open to while others use it; null if it is open to all. */
  readonly account: string | null
  /** Milliseconds until the next probe may pass; null if one may pass now. */
  readonly retry_after_ms: number | null
}

/** The figures of a line for metrics. */
export interface LineReading {
  readonly inFlight: number
  /** Open connections; those of one request only are left out. */
  readonly connections: number
  readonly availability: Availability
  /** Why the last attempt failed, without the upstream's words; null if it did not. */
  readonly failure: string | null
  readonly circuit: CircuitState
  /** How often the circuit has entered each state. */
  readonly circuitChanges: Readonly<Record<CircuitState, number>>
}

/** The model that a line is shown for, and the account that it is shown to. */
export interface LineView {
  readonly model: string
  readonly account: string | undefined
}

/** Returns what callers may see of a line. */
export function outlineOf(line: Line, state: LineState, view?: LineView): LineOutline {
  const { id, provider, protocol, region = null, priority, weight } = line
  const { enabled } = state
  return { id, provider, protocol, region, enabled, priority, weight, circuit: worstState(state, view) }
}

/** Returns the status of a line, without address or secret. Times are milliseconds. */
export function statusOf(line: Line, state: LineState): LineStatus {
  const waits = openCircuits(state).flatMap(({ retry_after_ms }) => retry_after_ms ?? [])
  const rests = restsOf(state).map(({ rest_ms }) => rest_ms)
  return {
    ...outlineOf(line, state),
    retry_after_ms: waits.length > 0 ? Math.max(...waits) : null,
    rest_ms: Math.max(0, ...rests),
    in_flight: state.inFlight,
    first_byte_ms: rounded(state.firstByteMs),
    tokens_per_second: rounded(state.tokensPerSecond),
  }
}

/** Returns the status of a line, how its attempts of the last minute ended, and what of it rests or is open. */
export function figuresOf(line: Line, state: LineState): LineFigures {
  const { all: attempts, marked: failures } = state.recent.totals
  return {
    ...statusOf(line, state),
    availability: availabilityOf(state),
    recent_attempts: attempts,
    recent_failures: failures,
    error_share: attempts === 0 ? null : Math.round((failures / attempts) * 1000) / 1000,
    rests: restsOf(state),
    circuits: openCircuits(state),
  }
}

/** Returns the figures of a line for metrics. */
export function readingOf(state: LineState): LineReading {
  const changes = { closed: 0, open: 0, half_open: 0 }
  for (const circuit of circuitsOf(state)) {
    for (const to of WORST_FIRST) changes[to] += circuit.changes[to]
  }
  const { inFlight, connections } = state
  return {
    inFlight,
    connections,
    availability: availabilityOf(state),
    failure: state.streak.failure ?? failureOf(state.models.values()),
    circuit: worstState(state),
    circuitChanges: changes,
  }
}

function failureOf(models: Iterable<ModelState>): string | null {
  return [...models].flatMap(({ streak }) => streak.failure ?? [])[0] ?? null
}

const WORST_FIRST = ['open', 'half_open', 'closed'] as const

function worstState(state: LineState, view?: LineView): CircuitState {
  const states = view
    ? [state, state.models.get(view.model)].flatMap((one) => one?.circuit.stateFor(view.account ?? '') ?? [])
    : circuitsOf(state).map((one) => one.state)
  return WORST_FIRST.find((worst) => states.includes(worst)) ?? 'closed'
}

function circuitsOf({ circuit, models }: LineState): readonly Circuit[] {
  return [circuit, ...[...models.values()].map((model) => model.circuit)]
}

function openCircuits({ circuit, models }: LineState): readonly OpenCircuit[] {
  const all = [
    { scope: 'line' as const, model: null, circuit },
    ...[...models].map(([id, model]) => ({
      scope: 'model' as const,
      model: id === '' ? null : id,
      circuit: model.circuit,
    })),
  ]
  return all.flatMap(({ scope, model, circuit }) => {
    const { state, onlyOpenFor = null } = circuit
    if (state === 'closed') return []
    const { waitMs } = circuit
    return [{ scope, model, state, account: onlyOpenFor, retry_after_ms: waitMs > 0 ? waitMs : null }]
  })
}

function restsOf({ models }: LineState): readonly ModelRest[] {
  return [...models].flatMap(([id, { restMs }]) =>
    restMs > 0 ? [{ model: id === '' ? null : id, rest_ms: restMs }] : [],
  )
}

function rounded(value: number | undefined): number | null {
  return value === undefined ? null : Math.round(value * 10) / 10
}
