import { randomUUID } from 'node:crypto'
import { type Logger, quietLogger } from '../../core/call/index.ts'
import {
  aFunction,
  aLogger,
  anObjectWith,
  checkOptions,
  type OptionRules,
  required,
} from '../../core/options/index.ts'
import { aPollTime, Polling, StoreGuard } from '../../core/store-guard/index.ts'
import type { FailureCounts } from './circuit-link.ts'
import type { LineRegistry } from './line-registry.ts'
import type { LineState, ModelState, StateSharing } from './line-state.ts'
import type { LineStateStore, StandingNote } from './line-state-store.ts'
import { readCounts } from './note-values.ts'
import { SharedCircuit, type SharedState, type SharingProcess } from './shared-circuit.ts'
import { SharedRest } from './shared-rest.ts'
import { upstreamKey } from './upstream-key.ts'

/** Options of {@link LineSharing}. */
export interface LineSharingOptions {
  /** Where processes tell each other: a `RedisLineStateStore`, or an object with these methods. */
  store: LineStateStore
  /** The registry of `route`, whose circuits and rests are shared. */
  lines: LineRegistry
  /** How often the store is read if nothing happens, in milliseconds; at most 4000. Defaults to 800. */
  pollMs?: number
  /** Logs outages of the store. Defaults to the console. */
  logger?: Logger
  /** Called when an outage of the store begins and ends, for metrics. Defaults to nothing. */
  onStoreChange?: (away: boolean) => void
}

const RULES: OptionRules<LineSharingOptions> = {
  store: required(anObjectWith('a LineStateStore, such as a RedisLineStateStore', 'exchange', 'watch')),
  lines: required(anObjectWith('the LineRegistry that route has', 'share')),
  pollMs: aPollTime,
  logger: aLogger,
  onStoreChange: aFunction(),
}

const POLL_MS = 800
const STORE_TIMEOUT_MS = 500
/** The least time between two exchanges for failures that open no circuit, in milliseconds. */
const GATHER_MS = 50

/**
 * Shares the circuits and rests of lines between processes: what one process finds, the others know at once, and one at a time
 * probes. What is shared belongs to a line with the same upstream and credentials. No call waits for the store: while it is
 * away, each process goes by what it finds itself.
 *
 * @throws TypeError at construction when an option is unusable.
 * @example
 * const lines = new LineRegistry()
 * const sharing = new LineSharing({ store: new RedisLineStateStore({ redis }), lines })
 * await sharing.refresh()
 */
export class LineSharing implements StateSharing, SharingProcess {
  readonly id = randomUUID()
  readonly #store: LineStateStore
  readonly #guard: StoreGuard
  readonly #polling: Polling
  readonly #endWatch: () => void
  readonly #states = new Map<string, SharedState>()
  /** Those with something to tell or to repeat. */
  readonly #active = new Set<SharedState>()
  /** Those that something stood of after the last exchange. */
  #told: ReadonlySet<SharedState> = new Set()
  #standing: ReadonlyMap<string, StandingNote> = new Map()
  #timer: NodeJS.Timeout | undefined
  #isUrgent = false
  #toldAt = 0

  constructor(options: LineSharingOptions) {
    checkOptions('LineSharing', options, RULES)
    const { store, lines, pollMs = POLL_MS, onStoreChange } = options
    this.#store = store
    this.#guard = new StoreGuard({
      name: 'line states',
      logger: quietLogger(options.logger),
      timeoutMs: STORE_TIMEOUT_MS,
      ...(onStoreChange && { onChange: onStoreChange }),
    })
    this.#polling = new Polling(() => this.#exchange(), pollMs)
    this.#endWatch = store.watch(() => this.#soon(true))
    lines.share(this)
  }

  /** Whether the other processes cannot be asked. */
  get isAlone(): boolean {
    return this.#guard.away
  }

  /**
   * Exchanges with the store now.
   *
   * @throws {StoreAway} if the store does not answer; lines stay as they are.
   */
  refresh(): Promise<void> {
    return this.#polling.now()
  }

  close(): void {
    this.#endWatch()
    clearTimeout(this.#timer)
    this.#polling.close()
  }

  addLine(state: LineState): void {
    const { line, circuit } = state
    const key = JSON.stringify([line.id, upstreamKey(line)])
    this.#add(new SharedCircuit(key, circuit, line.circuit, this))
  }

  addModel({ line }: LineState, id: string, model: ModelState): void {
    const key = JSON.stringify([line.id, upstreamKey(line), id, line.models.get(id) ?? null])
    this.#add(new SharedCircuit(key, model.circuit, line.circuit, this))
    this.#add(new SharedRest(`${key} rest`, model, this))
  }

  tell(shared: SharedState, isUrgent: boolean): void {
    if (this.#polling.closed) return
    this.#active.add(shared)
    this.#soon(isUrgent)
  }

  forget(shared: SharedState): void {
    this.#active.delete(shared)
    if (this.#states.get(shared.key) === shared) this.#states.delete(shared.key)
  }

  #add(shared: SharedState): void {
    this.#states.set(shared.key, shared)
    if (this.#standing.size > 0) shared.read(this.#standing)
  }

  /** Exchanges at once; what is not urgent waits if there was an exchange a moment ago. */
  #soon(isUrgent: boolean): void {
    if (this.#polling.closed || (this.#timer && (this.#isUrgent || !isUrgent))) return
    clearTimeout(this.#timer)
    this.#isUrgent = isUrgent
    const exchange = (): void => {
      this.#timer = undefined
      this.#polling.now().catch(() => {})
    }
    const waitMs = isUrgent ? 0 : Math.max(0, this.#toldAt + GATHER_MS - performance.now())
    this.#timer = setTimeout(exchange, waitMs).unref()
  }

  async #exchange(): Promise<void> {
    this.#toldAt = performance.now()
    const notes = [...this.#active].flatMap((shared) => shared.notes())
    try {
      this.#standing = await this.#guard.insist(() => this.#store.exchange(notes))
    } catch (error) {
      for (const shared of this.#active) shared.leaveAlone()
      throw error
    }
    if (this.#polling.closed) return
    this.#takeIn()
  }

  #takeIn(): void {
    const counts = this.#countsElsewhere()
    const standing = new Set<SharedState>()
    for (const id of this.#standing.keys()) {
      const shared = this.#states.get(keyIn(id))
      if (shared) standing.add(shared)
    }
    for (const shared of new Set([...this.#active, ...this.#told, ...standing]))
      shared.read(this.#standing, counts.get(shared.key))
    this.#told = standing
    for (const shared of this.#active) if (!shared.isActive) this.#active.delete(shared)
  }

  /** What the other processes have counted, by the key of a circuit. */
  #countsElsewhere(): ReadonlyMap<string, FailureCounts> {
    const sums = new Map<string, FailureCounts>()
    for (const [id, { value }] of this.#standing) {
      const [kind, by] = id.split(' ', 2)
      const counts = kind === 'counts' && by !== this.id ? readCounts(value) : undefined
      if (!counts) continue
      const key = keyIn(id)
      const sum = sums.get(key)
      const { all, failures, account } = counts
      const isSame = !sum || sum.account === account
      sums.set(key, {
        all: all + (sum?.all ?? 0),
        failures: failures + (sum?.failures ?? 0),
        account: isSame ? account : null,
      })
    }
    return sums
  }
}

/** An id is a kind of note, whose it is, and a key. */
function keyIn(id: string): string {
  return id.slice(id.indexOf(' ', id.indexOf(' ') + 1) + 1)
}
