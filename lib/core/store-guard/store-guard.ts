import { type Logger, quietLogger } from '../call/index.ts'
import {
  aFunction,
  aLogger,
  aNumber,
  aString,
  checkOptions,
  notify,
  type OptionRules,
  oneOf,
  required,
  someMilliseconds,
} from '../options/index.ts'
import { machine } from '../timing/index.ts'
import { Distance } from './distance.ts'
import { Outage } from './outage.ts'

/** Says that a store failed or did not answer in time. What was asked may have happened nevertheless. */
export class StoreAway extends Error {
  override readonly name = 'StoreAway'
}

/** Says that one record of a store is broken or locked: the calls that need it fail, and the store is not away. */
export class BrokenRecord extends Error {
  override readonly name = 'BrokenRecord'
}

/**
 * The number of slices of the time limit. One timer counts them for all running operations. While the event loop is blocked no
 * slice passes, so that the delay of this process does not count as the store's.
 */
const SLICES = 10
/** How many times as long as the shortest answer an operation may take. */
const DISTANCES = 5
/** How long no operation must have been late until a part of the store counts as back, in milliseconds. */
const PART_IS_BACK_MS = 60_000

/** Ends an operation that has no answer yet: it has failed, or is late. */
type GiveUp = (error: unknown, isLate?: boolean) => void

/** How long an operation has run. */
interface Running {
  /** When it began, on the monotonic clock. */
  readonly askedAt: number
  /** How many slices of the time limit have passed for it. */
  slices: number
}

/** Options of {@link StoreGuard}. */
export interface StoreGuardOptions {
  /** The name of the store in the log. */
  name: string
  /** The effect on callers while the store is away, for the log. Defaults to nothing. */
  effect?: string
  /** Receives the beginning and the end of each outage. Defaults to the console. */
  logger?: Logger | undefined
  /** An operation that takes longer than this counts as failed, in milliseconds. Defaults to 250. */
  timeoutMs?: number
  /**
   * The most that the limit grows to for a store that is far away, or has become slow: to five times the least that it has
   * lately taken. Defaults to `timeoutMs`.
   */
  farTimeoutMs?: number
  /**
   * How long an operation may take while the store answers others, in milliseconds, before it counts as failed. That is logged
   * as an outage of a part of the store, such as a node of a cluster that hangs. Defaults to `timeoutMs`, and no such line.
   */
  lateTimeoutMs?: number
  /** How often an operation tries the store while it is away, in milliseconds. Defaults to 500. */
  probeMs?: number
  /**
   * Whether an operation that rejects in time may fail alone, such as for one row that is broken. Then the others go on
   * asking, and the store counts as away once all have failed for as long as `timeoutMs`. Defaults to false: one that
   * fails begins an outage.
   */
  rejectsAlone?: boolean
  /** Runs when an outage begins and when it ends, for metrics. Defaults to nothing. */
  onStoreChange?: ((away: boolean) => void) | undefined
}

const RULES: OptionRules<StoreGuardOptions> = {
  name: required(aString()),
  effect: aString(),
  logger: aLogger,
  timeoutMs: someMilliseconds,
  farTimeoutMs: someMilliseconds,
  lateTimeoutMs: someMilliseconds,
  probeMs: aNumber('milliseconds from 0 on', 0),
  rejectsAlone: oneOf(true, false),
  onStoreChange: aFunction(),
}

/**
 * Keeps calls from waiting for a store that is away: no operation takes longer than its time limit, and during an outage
 * only one in `probeMs` is tried. Logs one line when an outage begins and one when it ends.
 *
 * @example
 * const guard = new StoreGuard({ name: 'redis' })
 * await guard.run(() => redis.ping()) // throws StoreAway within 250 ms
 */
export class StoreGuard {
  readonly #name: string
  readonly #outage: Outage
  /** The outage of a part of the store, while other parts answer. */
  readonly #partOutage: Outage
  readonly #logger: Logger
  readonly #nearTimeoutMs: number
  readonly #farTimeoutMs: number
  /** The slices that pass for an operation while the store answers others. */
  readonly #lateSlices: number
  readonly #distance = new Distance()
  readonly #probeMs: number
  readonly #rejectsAlone: boolean
  readonly #onStoreChange: (away: boolean) => void
  #nextProbe = 0
  /** Whether operations get no answer in time, so that it costs a call time to ask. */
  #isSilent = false
  /** Since when the store has only rejected. */
  #rejectsSince: number | undefined
  /** When the store last answered an operation in time. */
  #answeredAt = Number.NEGATIVE_INFINITY
  /** When an operation was last late although the store answered others. */
  #lateAt = Number.NEGATIVE_INFINITY
  #outages = 0
  /** How to end each running operation, and how long it has run. */
  readonly #running = new Map<GiveUp, Running>()
  #timer: NodeJS.Timeout | undefined

  constructor(options: StoreGuardOptions) {
    checkOptions('StoreGuard', options, RULES)
    this.#name = options.name
    this.#logger = quietLogger(options.logger)
    const { effect } = options
    this.#outage = new Outage({ store: this.#name, effect, logger: this.#logger })
    this.#partOutage = new Outage({ store: `a part of ${this.#name}`, effect, logger: this.#logger })
    this.#nearTimeoutMs = options.timeoutMs ?? 250
    this.#farTimeoutMs = options.farTimeoutMs ?? this.#nearTimeoutMs
    this.#lateSlices = (SLICES * (options.lateTimeoutMs ?? this.#nearTimeoutMs)) / this.#nearTimeoutMs
    this.#probeMs = options.probeMs ?? 500
    this.#rejectsAlone = options.rejectsAlone ?? false
    this.#onStoreChange = options.onStoreChange ?? (() => {})
  }

  /** Whether the store still answers operations. One that freezes has answered some just before. */
  get #isAnswering(): boolean {
    return performance.now() - this.#answeredAt < this.#timeoutMs
  }

  /** How long an operation may take, in milliseconds. */
  get #timeoutMs(): number {
    const distantMs = Math.min(DISTANCES * this.#distance.ms, this.#farTimeoutMs)
    return machine.limit(Math.max(this.#nearTimeoutMs, distantMs))
  }

  /** Whether the store is away, as far as this process knows. */
  get away(): boolean {
    return this.#outage.isOn
  }

  /** The number of outages so far, for metrics. */
  get outages(): number {
    return this.#outages
  }

  /**
   * Runs an operation under the time limit.
   *
   * @throws {StoreAway} when it fails or does not answer in time, or when the store is away and another operation has
   *   tried it within `probeMs`.
   */
  run<T>(operation: () => Promise<T>): Promise<T> {
    if (!this.mayAsk()) return Promise.reject(new StoreAway(`${this.#name} is away`))
    return this.#ask(operation, true)
  }

  /**
   * Runs what failed before, in the background. It may end an outage and begins none, so that one operation that can never
   * succeed does not make the store away for all others.
   *
   * @throws {StoreAway} as {@link run} does.
   */
  retry<T>(operation: () => Promise<T>): Promise<T> {
    if (!this.mayAsk()) return Promise.reject(new StoreAway(`${this.#name} is away`))
    return this.#ask(operation, false)
  }

  /**
   * Runs an operation even while the store is away.
   *
   * @throws {StoreAway} when it fails or does not answer in time.
   */
  insist<T>(operation: () => Promise<T>): Promise<T> {
    return this.#ask(operation, true)
  }

  /**
   * Returns whether an operation may run now. {@link run} checks that itself; this is for operations that are gathered and
   * sent together by {@link insist}. While the store is away, true means that it is this operation's turn to try.
   */
  mayAsk(): boolean {
    if (!this.away || (this.#rejectsAlone && !this.#isSilent)) return true
    const now = performance.now()
    if (now < this.#nextProbe) return false
    this.#nextProbe = now + this.#probeMs
    return true
  }

  #ask<T>(operation: () => Promise<T>, beginsOutage: boolean): Promise<T> {
    return new Promise((resolve, reject) => {
      const askedAt = performance.now()
      const fail: GiveUp = (error, isLate = false) => {
        if (!this.#running.delete(fail)) return
        this.#unrefIfIdle()
        // While others get answers, a late operation does not mean that the store is away.
        const answers =
          error instanceof BrokenRecord || (error instanceof StoreAway && this.#answeredAt >= askedAt)
        reject(error instanceof StoreAway ? error : new StoreAway(`${this.#name} failed`, { cause: error }))
        if (answers && isLate && this.#isAnswering) this.#partGone(error)
        if (beginsOutage && !answers) this.#failed(error, isLate)
      }
      const succeed = (answer: T): void => {
        if (!this.#running.delete(fail)) {
          // A store that has become slow would otherwise stay away: its next answer would be late as well.
          if (this.away) this.#distance.reset(performance.now() - askedAt)
          return
        }
        this.#unrefIfIdle()
        this.#answeredAt = performance.now()
        this.#distance.answered(this.#answeredAt - askedAt)
        this.#back()
        resolve(answer)
      }
      this.#running.set(fail, { askedAt, slices: 0 })
      if (this.#timer) this.#timer.ref()
      else this.#timer = setTimeout(this.#passSlice, this.#timeoutMs / SLICES)
      try {
        operation().then(succeed, (error: unknown) => fail(error))
      } catch (error) {
        fail(error)
      }
    })
  }

  /** The slice goes on for the operations to come, but keeps no process alive for them. */
  #unrefIfIdle(): void {
    if (this.#running.size === 0) this.#timer?.unref()
  }

  /** Notes that one slice of the time limit has passed for every running operation. Runs while there are any. */
  readonly #passSlice = (): void => {
    this.#timer = undefined
    const isAnswering = this.#isAnswering
    for (const [giveUp, running] of this.#running) {
      const slices = isAnswering && this.#answeredAt >= running.askedAt ? this.#lateSlices : SLICES
      // The slice in which an operation began was shorter than the others.
      if (running.slices < slices) running.slices++
      // The answer may have arrived and only not be read yet.
      else
        setImmediate(
          giveUp,
          new StoreAway(
            `${this.#name} did not answer in ${Math.round((this.#timeoutMs / SLICES) * slices)} ms`,
          ),
          true,
        )
    }
    if (this.#running.size > 0) this.#timer = setTimeout(this.#passSlice, this.#timeoutMs / SLICES)
  }

  #failed(error: unknown, isLate: boolean): void {
    if (isLate) this.#isSilent = true
    else if (this.#rejectsAlone) {
      const now = performance.now()
      this.#rejectsSince ??= now
      if (now - this.#rejectsSince < this.#timeoutMs) return
    }
    this.#gone(error)
  }

  #gone(error: unknown): void {
    if (this.away) return
    this.#nextProbe = performance.now() + this.#probeMs
    this.#outages++
    this.#outage.begins(error)
    this.#announce(true)
  }

  #partGone(error: unknown): void {
    if (this.#lateSlices === SLICES) return
    this.#lateAt = performance.now()
    this.#partOutage.begins(error)
  }

  #back(): void {
    this.#rejectsSince = undefined
    this.#isSilent = false
    if (this.#partOutage.isOn && this.#answeredAt - this.#lateAt >= PART_IS_BACK_MS) this.#partOutage.ends()
    if (!this.away) return
    this.#outage.ends()
    this.#announce(false)
  }

  /** Calls the listener. A failure of the listener does not count as one of the store. */
  #announce(away: boolean): void {
    notify(this.#logger, 'a listener to store outages failed', () => this.#onStoreChange(away))
  }
}
