import { isDeepStrictEqual } from 'node:util'
import type { Catalog, Line } from '../../core/catalog/index.ts'
import { Circuit, type CircuitState } from './circuit.ts'
import { RollingCounts } from './rolling-counts.ts'
import { UpstreamPool } from './upstream-pool.ts'

/** The time constant of measurements: after it a measurement weighs 1/e. */
const DECAY_MS = 10_000

/** The state of a line in this process: connections, circuit, rest, load and speed. */
export class LineState {
  /** The line as in the current catalogue. */
  line: Line
  readonly circuit: Circuit
  readonly pool: UpstreamPool
  /** Counts the attempts of the last minute, and marks those that failed through the line's fault. */
  readonly recent = new RollingCounts(10_000, 6)
  /** Whether the line is on. Operators can switch it; it starts as configured. */
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

  /** Milliseconds until the rest of the line ends; 0 if it does not rest. */
  get restMs(): number {
    return this.#restUntil === 0 ? 0 : Math.max(0, this.#restUntil - performance.now())
  }

  /** Rests the line after a 429 that named a wait. */
  rest(forMs: number): void {
    this.#restUntil = Math.max(this.#restUntil, performance.now() + forMs)
  }

  /** Peak-sensitive moving average of the time to first byte, in milliseconds; undefined before the first answer. */
  get firstByteMs(): number | undefined {
    return this.#firstByteMs
  }

  /**
   * The time to first byte to expect: the average, which fades while nothing is measured. Without fading, one slow
   * answer would keep every later call away, and with them the measurement that would correct the average.
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

  /** Records a throughput. It ignores a measurement without tokens or time. */
  observeThroughput(outputTokens: number, ms: number): void {
    if (!(outputTokens > 0 && ms > 0)) return
    const measured = (outputTokens * 1000) / ms
    const last = this.#tokensPerSecond
    this.#tokensPerSecond = last === undefined ? measured : last * 0.8 + measured * 0.2
  }

  /** Ends the connections of a removed line as its running calls end. Resolves when the last has ended. */
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

/** What callers see of a line. It holds no address, no secret, and nothing that tells how much others use the line. */
export interface LineOutline {
  readonly id: string
  readonly provider: string
  readonly protocol: string
  readonly region: string | null
  readonly enabled: boolean
  readonly priority: number
  readonly weight: number
  readonly circuit: CircuitState
}

/** The status of a line for operators. It holds no address and no secret. */
export interface LineStatus extends LineOutline {
  readonly retry_after_ms: number | null
  readonly rest_ms: number
  readonly in_flight: number
  readonly first_byte_ms: number | null
  readonly tokens_per_second: number | null
}

/** The status of a line with the figures that only operators see. */
export interface LineFigures extends LineStatus {
  /** Attempts in this process that ended in the last minute, without those that callers left. */
  readonly recent_attempts: number
  /** Those attempts that failed through the line's fault, 429s and empty answers included. */
  readonly recent_failures: number
  /** The share of failures among the attempts; null if there were none. */
  readonly error_share: number | null
}

/** The figures of a line for metrics. */
export interface LineReading {
  readonly inFlight: number
  readonly circuit: CircuitState
  /** How often the circuit has entered each state. */
  readonly circuitChanges: Readonly<Record<CircuitState, number>>
}

const UNUSED: LineReading = {
  inFlight: 0,
  circuit: 'closed',
  circuitChanges: { closed: 0, open: 0, half_open: 0 },
}

/**
 * The states of all lines of a process: connections, circuits, rests and measurements. A state is made when it is
 * first needed. Middlewares that are given the same registry share the states. Close it at shutdown, when no call
 * runs any more.
 *
 * @example
 * const lines = new LineRegistry()
 * app.post('/v1/chat/completions', readRequest({ catalog }), route({ catalog, lines }))
 * app.use('/v1', modelRoutes({ catalog, lineStatus: (line) => lines.outline(line) }))
 */
export class LineRegistry {
  /** Includes lines of former catalogues: a call that began with one still finds their states. */
  readonly #states = new WeakMap<Line, LineState>()
  readonly #inUse = new Set<LineState>()
  readonly #retiring = new Set<LineState>()
  #switches: ReadonlyMap<string, boolean> = new Map()

  /** Returns the state of a line, and makes it if there is none yet. */
  stateOf(line: Line): LineState {
    const known = this.#states.get(line)
    if (known) return known
    const state = new LineState(line)
    this.#switch(state)
    this.#states.set(line, state)
    this.#inUse.add(state)
    return state
  }

  /** Returns the figures of a line for metrics, without making a state for an unused line. */
  reading(line: Line): LineReading {
    const state = this.#states.get(line)
    if (!state) return UNUSED
    const { inFlight, circuit } = state
    return { inFlight, circuit: circuit.state, circuitChanges: circuit.changes }
  }

  /** Returns what callers may see of a line. */
  outline(line: Line): LineOutline {
    const { enabled, circuit } = this.stateOf(line)
    const { id, provider, protocol, region = null, priority, weight } = line
    return { id, provider, protocol, region, enabled, priority, weight, circuit: circuit.state }
  }

  /** Returns the status of a line, without address or secret. Times are milliseconds. */
  status(line: Line): LineStatus {
    const state = this.stateOf(line)
    return {
      ...this.outline(line),
      retry_after_ms: state.circuit.admits ? null : state.circuit.retryAfterMs,
      rest_ms: Math.ceil(state.restMs),
      in_flight: state.inFlight,
      first_byte_ms: rounded(state.firstByteMs),
      tokens_per_second: rounded(state.tokensPerSecond),
    }
  }

  /** Returns the status of a line and how its attempts of the last minute ended. */
  figures(line: Line): LineFigures {
    const { all: attempts, marked: failures } = this.stateOf(line).recent.totals
    const share = attempts === 0 ? null : Math.round((failures / attempts) * 1000) / 1000
    return { ...this.status(line), recent_attempts: attempts, recent_failures: failures, error_share: share }
  }

  /**
   * Switches lines on and off, including lines that are added later. A line without a switch is as configured.
   *
   * @param switches whether lines are on, by line id.
   */
  applySwitches(switches: ReadonlyMap<string, boolean>): void {
    this.#switches = switches
    for (const state of this.#inUse) this.#switch(state)
  }

  #switch(state: LineState): void {
    state.enabled = this.#switches.get(state.line.id) ?? state.line.enabled
  }

  /**
   * Prepares for a new catalogue. Call it right before the middlewares see that catalogue. A line with the same id
   * and the same upstream as before keeps its connections, circuit, rest and measurements. The state of every other
   * line ends with the last of its running calls.
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

/** Whether two lines share a state: same address, same credentials, same circuit settings. */
function sameUpstream(one: Line, other: Line): boolean {
  return isDeepStrictEqual(upstreamOf(one), upstreamOf(other))
}

function upstreamOf({ protocol, origin, basePath, apiKey, headers, timeouts, circuit }: Line): object {
  return { protocol, origin, basePath, apiKey, headers, connectMs: timeouts.connectMs, circuit }
}

function rounded(value: number | undefined): number | null {
  return value === undefined ? null : Math.round(value * 10) / 10
}
