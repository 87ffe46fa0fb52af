import { isDeepStrictEqual } from 'node:util'
import type { Catalog, Line } from '../../core/catalog/index.ts'
import { Circuit, type CircuitState } from './circuit.ts'
import { RollingCounts } from './rolling-counts.ts'
import { UpstreamPool } from './upstream-pool.ts'

/** How long a measurement takes to fade. */
const DECAY_MS = 10_000

/** What this process knows about a line beyond its config: connections, circuit, rest, load and speed. */
export class LineState {
  /** As the catalogue has it now. */
  line: Line
  readonly circuit: Circuit
  readonly pool: UpstreamPool
  /** The attempts of the last minute, and those of them that failed by the line's doing. */
  readonly recent = new RollingCounts(10_000, 6)
  /** Switched by an operator; starts as configured. */
  enabled: boolean
  inFlight = 0
  #restUntil = 0
  #firstByteMs: number | undefined
  #firstByteAt = 0
  #tokensPerSecond: number | undefined

  constructor(line: Line) {
    this.line = line
    this.enabled = line.enabled
    this.circuit = new Circuit(line.circuit)
    this.pool = new UpstreamPool(line)
  }

  /** Milliseconds for which the line asked to be left alone; 0 = none. */
  get restMs(): number {
    return this.#restUntil === 0 ? 0 : Math.max(0, this.#restUntil - performance.now())
  }

  /** Leaves the line alone, after a 429 that said for how long. */
  rest(forMs: number): void {
    this.#restUntil = Math.max(this.#restUntil, performance.now() + forMs)
  }

  /** Peak-sensitive moving average of the time to first byte, in milliseconds; undefined before the first answer. */
  get firstByteMs(): number | undefined {
    return this.#firstByteMs
  }

  /**
   * The wait that this line is worth trying for: its average, fading while nothing is measured. One slow answer would
   * else keep every later call away, and with them the measurement that could show that it was the only one.
   */
  get expectedFirstByteMs(): number {
    const idleMs = performance.now() - this.#firstByteAt
    return (this.#firstByteMs ?? 0) * Math.exp(-idleMs / DECAY_MS)
  }

  /** Moving average of the output tokens per second. */
  get tokensPerSecond(): number | undefined {
    return this.#tokensPerSecond
  }

  observeFirstByte(ms: number): void {
    const now = performance.now()
    const kept = Math.exp(-(now - this.#firstByteAt) / DECAY_MS)
    const last = this.#firstByteMs
    this.#firstByteMs = last === undefined || ms > last ? ms : last * kept + ms * (1 - kept)
    this.#firstByteAt = now
  }

  /** Notes how many tokens came in how much time; of nothing, or in no time, it says nothing. */
  observeThroughput(outputTokens: number, ms: number): void {
    if (!(outputTokens > 0 && ms > 0)) return
    const measured = (outputTokens * 1000) / ms
    const last = this.#tokensPerSecond
    this.#tokensPerSecond = last === undefined ? measured : last * 0.8 + measured * 0.2
  }

  /** For a line that is gone: ends what it keeps open as its running calls end; resolves behind the last. */
  async retire(): Promise<void> {
    this.circuit.close()
    await this.pool.retire()
  }

  /** Ends connections and timers at once. */
  async close(): Promise<void> {
    this.circuit.close()
    await this.pool.close()
  }
}

/** A line as an operator, or `GET /v1/models/{id}/routing`, sees it: no address, no secret. */
export interface LineStatus {
  readonly id: string
  readonly provider: string
  readonly protocol: string
  readonly region: string | null
  readonly enabled: boolean
  readonly priority: number
  readonly weight: number
  readonly circuit: CircuitState
  readonly retry_after_ms: number | null
  readonly rest_ms: number
  readonly in_flight: number
  readonly first_byte_ms: number | null
  readonly tokens_per_second: number | null
}

/** What operators see beyond that. */
export interface LineFigures extends LineStatus {
  /** Attempts of the last minute that have ended, in this process; those that callers left are not counted. */
  readonly recent_attempts: number
  /** Those of them that failed by the line's doing, 429s and empty answers included. */
  readonly recent_failures: number
  /** Which part of them that is; null without any. */
  readonly error_share: number | null
}

/** What metrics tell of a line. */
export interface LineReading {
  readonly inFlight: number
  readonly circuit: CircuitState
  /** How often the circuit has come into each state. */
  readonly circuitChanges: Readonly<Record<CircuitState, number>>
}

const UNUSED: LineReading = {
  inFlight: 0,
  circuit: 'closed',
  circuitChanges: { closed: 0, open: 0, half_open: 0 },
}

/**
 * The states of all lines of a process: connections, circuits, rests, measurements. Made as they are first needed, and shared
 * by everything that is given the same registry. Close it at shutdown, when no call runs any more.
 *
 * @example
 * const lines = new LineRegistry()
 * app.post('/v1/chat/completions', readRequest({ catalog }), route({ catalog, lines }))
 * app.use('/v1', modelRoutes({ catalog, lineStatus: (line) => lines.status(line) }))
 */
export class LineRegistry {
  /** Of former catalogues too: a call that began with one still finds the states of its lines. */
  readonly #states = new WeakMap<Line, LineState>()
  readonly #inUse = new Set<LineState>()
  readonly #retiring = new Set<LineState>()
  #switches: ReadonlyMap<string, boolean> = new Map()

  /** The state of a line, made if there is none yet. */
  stateOf(line: Line): LineState {
    const known = this.#states.get(line)
    if (known) return known
    const state = new LineState(line)
    this.#switch(state)
    this.#states.set(line, state)
    this.#inUse.add(state)
    return state
  }

  /** How a line is doing; reading makes no state of one that was never used. */
  reading(line: Line): LineReading {
    const state = this.#states.get(line)
    if (!state) return UNUSED
    const { inFlight, circuit } = state
    return { inFlight, circuit: circuit.state, circuitChanges: circuit.changes }
  }

  /** What may be told of a line: neither address nor secret. Times are milliseconds. */
  status(line: Line): LineStatus {
    const state = this.stateOf(line)
    return {
      id: line.id,
      provider: line.provider,
      protocol: line.protocol,
      region: line.region ?? null,
      enabled: state.enabled,
      priority: line.priority,
      weight: line.weight,
      circuit: state.circuit.state,
      retry_after_ms: state.circuit.admits ? null : state.circuit.retryAfterMs,
      rest_ms: Math.ceil(state.restMs),
      in_flight: state.inFlight,
      first_byte_ms: rounded(state.firstByteMs),
      tokens_per_second: rounded(state.tokensPerSecond),
    }
  }

  /** The same, and how its attempts of the last minute ended. */
  figures(line: Line): LineFigures {
    const { all: attempts, marked: failures } = this.stateOf(line).recent.totals
    const share = attempts === 0 ? null : Math.round((failures / attempts) * 1000) / 1000
    return { ...this.status(line), recent_attempts: attempts, recent_failures: failures, error_share: share }
  }

  /**
   * Switches lines on and off, those made later too. What is not among the switches is as configured.
   *
   * @param switches whether lines are on, by their ids.
   */
  applySwitches(switches: ReadonlyMap<string, boolean>): void {
    this.#switches = switches
    for (const state of this.#inUse) this.#switch(state)
  }

  #switch(state: LineState): void {
    state.enabled = this.#switches.get(state.line.id) ?? state.line.enabled
  }

  /**
   * Makes ready for a catalogue that takes the place of the present one; call it right before the middlewares see that.
   * A line that goes to the same upstream as before, under the same id, keeps its connections, its circuit, its rest
   * and what was measured of it. The state of every other line ends with the last of its running calls.
   *
   * @example
   * lines.adopt(next)
   * current = next // behind route({ catalog: () => current, lines })
   */
  adopt({ lines }: Catalog): void {
    const known = new Map([...this.#inUse].map((state) => [state.line.id, state]))
    const gone = new Set(this.#inUse)
    for (const line of lines) {
      const state = known.get(line.id)
      if (!state || !sameUpstream(state.line, line)) continue
      state.line = line
      this.#switch(state)
      this.#states.set(line, state)
      gone.delete(state)
    }
    for (const state of gone) this.#retire(state)
  }

  #retire(state: LineState): void {
    this.#inUse.delete(state)
    this.#retiring.add(state)
    const forget = (): void => void this.#retiring.delete(state)
    state.retire().then(forget, forget)
  }

  /** Ends all connections and timers. */
  async close(): Promise<void> {
    const states = [...this.#inUse, ...this.#retiring]
    this.#inUse.clear()
    await Promise.all(states.map((state) => state.close()))
  }
}

/** Whether what is known of one holds for the other: same address, same credentials, same circuit. */
function sameUpstream(one: Line, other: Line): boolean {
  return isDeepStrictEqual(upstreamOf(one), upstreamOf(other))
}

function upstreamOf({ protocol, origin, basePath, apiKey, headers, timeouts, circuit }: Line): object {
  return { protocol, origin, basePath, apiKey, headers, connectMs: timeouts.connectMs, circuit }
}

function rounded(value: number | undefined): number | null {
  return value === undefined ? null : Math.round(value * 10) / 10
}
