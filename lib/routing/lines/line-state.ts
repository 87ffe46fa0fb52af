import { type CircuitSettings, type Line, upstreamName } from '../../core/catalog/index.ts'
import { signerOf } from '../credentials/line-signer.ts'
import { SignedWire } from '../credentials/signed-wire.ts'
import type { LineSigner } from '../credentials/signer.ts'
import { FailureStreak, isInUse } from './availability.ts'
import { Circuit } from './circuit.ts'
import { RecentCounts } from './recent-counts.ts'
import { UpstreamPool, type Wire } from './upstream-pool.ts'

/** The time constant of measurements: after it a measurement weighs 1/e. */
const DECAY_MS = 10_000

/** The longest rest at a time, whatever the upstream asks for. */
const MAX_REST_MS = 60_000
/** The rests after answers that do not say how long: the first, and the longest. */
const FIRST_REST_MS = 2000
const MAX_UNSAID_REST_MS = 30_000
/** More than the error that sums and differences of the clock's fractions have. */
const CLOCK_ERROR_MS = 0.001

/** How many names that patterns match have a state of their own on a line. */
const MAX_NAMES = 1000
/** The least time between two searches for names that are not in use any more. */
const SWEEP_MS = 1000

/** Ties the states of lines to those of other processes. */
export interface StateSharing {
  /** Runs when a line gets a state. */
  addLine(state: LineState): void
  /** Runs when a model gets a state on a line. */
  addModel(state: LineState, id: string, model: ModelState): void
  /** Runs when the look-ups of a path get a rest. */
  addLookUps(state: LineState, path: string, rest: Rest): void
}

/** The state of a line in this process: connections, circuits, rests, load and speed. */
export class LineState {
  /** The line as in the current catalogue. */
  line: Line
  /** Stands for what concerns all models: connections, and what the line holds of our account. */
  readonly circuit: Circuit
  readonly streak = new FailureStreak()
  /** The states of its models, by model id; '' for requests that name none. */
  readonly models = new Map<string, ModelState>()
  /** The ids of `models` that a pattern matches. */
  readonly #matched = new Set<string>()
  #sweptAt = -Infinity
  /** The rests of look-ups, by path. A 429 of a look-up keeps nothing from the line but look-ups of the same path. */
  readonly #lookUps = new Map<string, Rest>()
  /** Sends requests, with the line's credentials where these are no fixed text. */
  readonly wire: Wire
  /** Gives requests those credentials; undefined if there are none. */
  readonly signer: LineSigner | undefined
  readonly #pool: UpstreamPool
  /** Counts the attempts of the last minute, and marks those that failed through the line's fault. */
  readonly recent = new RecentCounts(10_000, 6)
  /** Whether the line is on. Operators can switch it; it starts as configured. */
  enabled: boolean
  inFlight = 0
  #isOver = false
  #sharing: StateSharing | undefined
  #firstByteMs: number | undefined
  #firstByteAt = 0
  #tokensPerSecond: number | undefined

  constructor(line: Line) {
    this.line = line
    this.enabled = line.enabled
    this.circuit = new Circuit(line.circuit)
    this.#pool = new UpstreamPool(line)
    this.signer = signerOf(line)
    this.wire = this.signer ? new SignedWire(this.#pool, this.signer, line) : this.#pool
  }

  get connections(): number {
    return this.#pool.connections
  }

  /**
   * Returns the state of a model on this line, and makes it if there is none yet. If too many names that patterns match are
   * in use, further ones share the state of their pattern: callers can make up any number of them.
   *
   * @param pattern the pattern that matches the id; undefined = the catalogue has a model with this id.
   */
  modelState(id: string, pattern?: string): ModelState {
    const known = this.models.get(id)
    if (known) return known
    if (pattern !== undefined) {
      if (this.#matched.size >= MAX_NAMES) this.#forgetUnused()
      if (this.#matched.size >= MAX_NAMES) return this.modelState(pattern)
      this.#matched.add(id)
    }
    const state = new ModelState(this.line.circuit)
    this.models.set(id, state)
    // A call that began before the line was removed may come for it now.
    if (this.#isOver) state.close()
    else this.#sharing?.addModel(this, id, state)
    return state
  }

  #forgetUnused(): void {
    const now = performance.now()
    if (now - this.#sweptAt < SWEEP_MS) return
    this.#sweptAt = now
    for (const id of this.#matched) {
      const state = this.models.get(id)
      if (state && (isInUse(state.circuit) || state.restMs > 0)) continue
      state?.close()
      this.models.delete(id)
      this.#matched.delete(id)
    }
  }

  /** Returns the rest of the look-ups of a path, and makes it if there is none yet. */
  lookUpRest(path: string): Rest {
    const known = this.#lookUps.get(path)
    if (known) return known
    const rest = new Rest()
    this.#lookUps.set(path, rest)
    if (!this.#isOver) this.#sharing?.addLookUps(this, path, rest)
    return rest
  }

  /** Ties this state, and those of its models, to other processes. */
  share(sharing: StateSharing): void {
    this.#sharing = sharing
    sharing.addLine(this)
    for (const [id, model] of this.models) sharing.addModel(this, id, model)
    for (const [path, rest] of this.#lookUps) sharing.addLookUps(this, path, rest)
  }

  /** Follows a changed catalogue. The state of a model that the line has no more, or under another name, ends. */
  adopt(line: Line): void {
    for (const [id, state] of this.models) {
      if (id === '' || upstreamName(line, id) === upstreamName(this.line, id)) continue
      state.close()
      this.models.delete(id)
      this.#matched.delete(id)
    }
    this.line = line
  }

  /** Ends the rests of all models, and of look-ups. */
  liftRests(): void {
    for (const rest of [...this.models.values(), ...this.#lookUps.values()]) rest.lift()
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
    this.#closeCircuits()
    await this.#pool.retire()
  }

  /** Ends connections and timers at once. */
  async close(): Promise<void> {
    this.#closeCircuits()
    await this.#pool.close()
  }

  #closeCircuits(): void {
    this.#isOver = true
    this.circuit.close()
    for (const model of this.models.values()) model.close()
    for (const rest of this.#lookUps.values()) rest.close()
  }
}

/** Ties a rest to the same one in other processes. */
export interface RestLink {
  /** A rest has begun here. `unsaidMs` is its length if the upstream did not say one, else 0. */
  rested(unsaidMs: number): void
  /** The rest was ended here. */
  lifted(): void
  /** The rest is of no use any more. */
  ended(): void
}

/** The rests of a line after 429s, for one model or one path of look-ups. */
export class Rest {
  #restUntil = 0
  /** The length of the last rest that the upstream did not ask for; 0 if there was an answer since. */
  #unsaidMs = 0

  /** Ties the rest to other processes; undefined if there is no such tie. */
  link: RestLink | undefined

  /** Whole milliseconds until the rest ends; 0 if there is none. */
  get restMs(): number {
    if (this.#restUntil === 0) return 0
    // Without CLOCK_ERROR_MS a rest of 60 s could be one of 61.
    return Math.max(0, Math.ceil(this.#restUntil - performance.now() - CLOCK_ERROR_MS))
  }

  /** Whether there was nothing but 429 since the last rest began. */
  get recovering(): boolean {
    return this.#unsaidMs > 0
  }

  /**
   * Begins a rest after a 429.
   *
   * @param saidMs how long the upstream asks to wait; undefined if it does not say. The rests then double while the
   * 429s go on.
   * @returns the milliseconds until the rest ends.
   */
  rest(saidMs: number | undefined): number {
    const now = performance.now()
    if (saidMs !== undefined) this.#restUntil = Math.max(this.#restUntil, now + Math.min(MAX_REST_MS, saidMs))
    else if (this.restMs === 0) {
      // Calls that ran at the same time have begun the rest already.
      const goesOn = now - this.#restUntil < MAX_UNSAID_REST_MS - CLOCK_ERROR_MS
      this.#unsaidMs =
        goesOn && this.#unsaidMs > 0 ? Math.min(MAX_UNSAID_REST_MS, 2 * this.#unsaidMs) : FIRST_REST_MS
      this.#restUntil = now + this.#unsaidMs
    }
    this.link?.rested(this.#unsaidMs)
    return this.restMs
  }

  /** Rests as long as another process does, if that is longer. */
  restAlong(ms: number, unsaidMs: number): void {
    this.#restUntil = Math.max(this.#restUntil, performance.now() + Math.min(MAX_REST_MS, ms))
    this.#unsaidMs = Math.max(this.#unsaidMs, unsaidMs)
  }

  /** Notes an answer: the next rest is a first one again. A call that began before the rest says nothing about it. */
  answered(): void {
    if (this.#unsaidMs > 0 && this.restMs === 0) this.#unsaidMs = 0
  }

  /** Ends the rest. */
  lift(): void {
    this.#restUntil = 0
    this.#unsaidMs = 0
    this.link?.lifted()
  }

  close(): void {
    this.link?.ended()
  }
}

/** The state of one model on a line in this process: its circuit, its failures, and its rest after a 429. */
export class ModelState extends Rest {
  readonly circuit: Circuit
  readonly streak = new FailureStreak()

  constructor(settings: CircuitSettings) {
    super()
    this.circuit = new Circuit(settings)
  }

  override close(): void {
    this.circuit.close()
    super.close()
  }
}
