import { type CircuitSettings, type Line, upstreamName } from '../../core/catalog/index.ts'
import { signerOf } from '../credentials/line-signer.ts'
import type { LineSigner } from '../credentials/signer.ts'
import { SigningTransport } from '../credentials/signing-transport.ts'
import { FailureStreak, isInUse } from './availability.ts'
import { Circuit } from './circuit.ts'
import { RecentCounts } from './recent-counts.ts'
import { Rest } from './rest.ts'
import { type Transport, UpstreamPool } from './upstream-pool.ts'

/** The time constant of measurements: after it a measurement weighs 1/e. */
const DECAY_MS = 10_000

/** How many names that patterns match have a state of their own on a line. */
const MAX_NAMES = 1000
/** The least time between two searches for names that are not in use any more. */
const SWEEP_MS = 1000

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
  readonly lookUps = new Map<string, Rest>()
  /** Sends requests, with the line's credentials where these are no fixed text. */
  readonly transport: Transport
  /** Gives requests those credentials; undefined if there are none. */
  readonly signer: LineSigner | undefined
  readonly #pool: UpstreamPool
  /** Counts the attempts of the last minute, and marks those that failed through the line's fault. */
  readonly recent = new RecentCounts(10_000, 6)
  /** Whether the line is on. Operators can switch it; it starts as configured. */
  enabled: boolean
  inFlight = 0
  /** Called when a model gets a state. */
  onModel: ((id: string, model: ModelState) => void) | undefined
  /** Called when the look-ups of a path get a rest. */
  onLookUps: ((path: string, rest: Rest) => void) | undefined
  #isOver = false
  #firstByteMs: number | undefined
  #firstByteAt = 0
  #tokensPerSecond: number | undefined

  constructor(line: Line) {
    this.line = line
    this.enabled = line.enabled
    this.circuit = new Circuit(line.circuit)
    this.#pool = new UpstreamPool(line)
    this.signer = signerOf(line)
    this.transport = this.signer ? new SigningTransport(this.#pool, this.signer, line) : this.#pool
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
    else this.onModel?.(id, state)
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
    const known = this.lookUps.get(path)
    if (known) return known
    const rest = new Rest()
    this.lookUps.set(path, rest)
    if (!this.#isOver) this.onLookUps?.(path, rest)
    return rest
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
    for (const rest of [...this.models.values(), ...this.lookUps.values()]) rest.lift()
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
    for (const rest of this.lookUps.values()) rest.close()
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
