import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { Catalog, Line } from '../../core/catalog/index.ts'
import { LineState } from './line-state.ts'
import {
  figuresOf,
  type LineFigures,
  type LineOutline,
  type LineReading,
  type LineStatus,
  type LineView,
  outlineOf,
  readingOf,
  statusOf,
} from './line-status.ts'
import { loadUndici } from './upstream-pool.ts'

const UNUSED: LineReading = {
  inFlight: 0,
  connections: 0,
  availability: 'unknown',
  failure: null,
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
  #onState: ((state: LineState) => void) | undefined

  constructor() {
    // The requests that need it report a failure.
    loadUndici().catch(() => {})
  }

  /** Returns the state of a line, and makes it if there is none yet. */
  stateOf(line: Line): LineState {
    const known = this.#states.get(line)
    if (known) return known
    // A call may be the first to need a line of the catalogue before.
    const state = this.#inUseAs(line) ?? this.#newState(line)
    this.#states.set(line, state)
    return state
  }

  #newState(line: Line): LineState {
    const state = new LineState(line)
    this.#switch(state)
    this.#inUse.add(state)
    this.#onState?.(state)
    return state
  }

  /** Returns the state that a line shares with the one of another catalogue: same id, same upstream. */
  #inUseAs(line: Line): LineState | undefined {
    for (const state of this.#inUse)
      if (state.line.id === line.id && sameUpstream(state.line, line)) return state
    return undefined
  }

  /** Calls `tie` with the state of each line that has one, and of each that gets one. `LineSharing` uses it. */
  share(tie: (state: LineState) => void): void {
    this.#onState = tie
    for (const state of this.#inUse) tie(state)
  }

  /** Returns the figures of a line for metrics, without making a state for an unused line. */
  reading(line: Line): LineReading {
    const state = this.#states.get(line)
    if (!state) return UNUSED
    return readingOf(state)
  }

  /**
   * Returns what callers may see of a line.
   *
   * @param view the caller and the model; without it the circuits of all models and accounts are looked at.
   */
  outline(line: Line, view?: LineView): LineOutline {
    return outlineOf(line, this.stateOf(line), view)
  }

  /** Returns the status of a line, without address or secret. Times are milliseconds. */
  status(line: Line): LineStatus {
    return statusOf(line, this.stateOf(line))
  }

  /** Returns the status of a line, how its attempts of the last minute ended, and what of it rests or is open. */
  figures(line: Line): LineFigures {
    return figuresOf(line, this.stateOf(line))
  }

  /** Ends the rests of a line in this process. */
  liftRests(lineId: string): void {
    for (const state of this.#inUse) if (state.line.id === lineId) state.liftRests()
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
    const enabled = this.#switches.get(state.line.id) ?? state.line.enabled
    // An operator who switches a line on wants it to be tried at once.
    if (enabled && !state.enabled) state.liftRests()
    state.enabled = enabled
  }

  /**
   * Prepares for a new catalogue. Call it right before the middlewares see that catalogue. A line with the same id
   * and the same upstream as before keeps its connections, circuits, rests and measurements. The state of every other
   * line ends with the last of its running calls.
   *
   * @example
   * lines.adopt(next)
   * current = next // behind route({ catalog: () => current, lines })
   */
  adopt({ lines }: Catalog): void {
    const gone = new Set(this.#inUse)
    for (const line of lines) {
      const state = this.#inUseAs(line)
      if (!state) {
        // The state of a line that was gone and comes back has ended.
        this.#states.delete(line)
        continue
      }
      state.adopt(line)
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

/** Returns what of a line decides where its requests go and how they are let in, and when its circuits open. */
function upstreamOf({ timeouts, ...line }: Line): object {
  const { protocol, origin, basePath, paths, query, apiKey, credential, sign, headers, proxy, tls, circuit } =
    line
  const access = [apiKey, credential, sign, headers, proxy, tls]
  return { protocol, origin, basePath, paths, query, access, connectMs: timeouts.connectMs, circuit }
}

const upstreamKeys = new WeakMap<Line, string>()

/** Returns a short text that is the same for lines with the same upstream, in all processes. It reveals no secret. */
export function upstreamKey(line: Line): string {
  const key = upstreamKeys.get(line) ?? digest(JSON.stringify(upstreamOf(line), plain))
  upstreamKeys.set(line, key)
  return key
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 12)
}

function plain(_name: string, value: unknown): unknown {
  return value instanceof Map || value instanceof Set ? [...value] : value
}
