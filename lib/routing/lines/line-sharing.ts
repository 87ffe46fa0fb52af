import { randomUUID } from 'node:crypto'
import { type Logger, quietLogger } from '../../core/call/index.ts'
import { upstreamName } from '../../core/catalog/index.ts'
import {
  aFunction,
  aLogger,
  anObjectWith,
  checkOptions,
  type OptionRules,
  required,
} from '../../core/options/index.ts'
import { aPollTime, Polling, StoreGuard } from '../../core/store-guard/index.ts'
import { type LineRegistry, upstreamKey } from './line-registry.ts'
import type { LineState, ModelState, Rest, StateSharing } from './line-state.ts'
import type { LineStateStore, StandingNote } from './line-state-store.ts'
import { SharedCircuit, SharedRest, type SharedState, type SharingProcess } from './shared-state.ts'

/** Options of {@link LineSharing}. */
export interface LineSharingOptions {
  /** The store of the notes that processes exchange: a `RedisLineStateStore`, or an object with these methods. */
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

/**
 * Shares the rests of lines, and until when circuits are open, between processes: the others know at once. It belongs to a
 * line with the same upstream and credentials. No call waits for the store: while it is away, each process goes by what it
 * finds itself.
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
  /** The states with a change to send or to repeat. */
  readonly #active = new Set<SharedState>()
  /** The states that had a standing note after the last exchange. */
  #noted: ReadonlySet<SharedState> = new Set()
  /** The notes that stand, by the key in their ids. */
  #standing: ReadonlyMap<string, readonly (readonly [string, StandingNote])[]> = new Map()
  #soon: NodeJS.Immediate | undefined

  constructor(options: LineSharingOptions) {
    checkOptions('LineSharing', options, RULES)
    const { store, lines, pollMs = POLL_MS, onStoreChange } = options
    this.#store = store
    this.#guard = new StoreGuard({
      name: 'line states',
      effect: 'each process has circuits and rests of its own',
      logger: quietLogger(options.logger),
      timeoutMs: STORE_TIMEOUT_MS,
      ...(onStoreChange && { onChange: onStoreChange }),
    })
    this.#polling = new Polling(() => this.#exchange(), pollMs)
    this.#endWatch = store.watch(() => this.#exchangeSoon())
    lines.share(this)
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
    clearImmediate(this.#soon)
    this.#polling.close()
  }

  addLine(state: LineState): void {
    const { line, circuit } = state
    const key = JSON.stringify([line.id, upstreamKey(line)])
    this.#add(new SharedCircuit(key, circuit, this))
  }

  addModel({ line }: LineState, id: string, model: ModelState): void {
    const key = JSON.stringify([line.id, upstreamKey(line), id, upstreamName(line, id) ?? null])
    this.#add(new SharedCircuit(key, model.circuit, this))
    this.#add(new SharedRest(`${key} rest`, model, this))
  }

  addLookUps({ line }: LineState, path: string, rest: Rest): void {
    const key = JSON.stringify([line.id, upstreamKey(line), 'look-ups', path])
    this.#add(new SharedRest(`${key} rest`, rest, this))
  }

  announce(shared: SharedState): void {
    if (this.#polling.closed) return
    this.#active.add(shared)
    this.#exchangeSoon()
  }

  forget(shared: SharedState): void {
    this.#active.delete(shared)
    if (this.#states.get(shared.key) === shared) this.#states.delete(shared.key)
  }

  #add(shared: SharedState): void {
    this.#states.set(shared.key, shared)
    if (this.#standing.size > 0) shared.read(this.#standingOf(shared))
  }

  #exchangeSoon(): void {
    if (this.#polling.closed || this.#soon) return
    this.#soon = setImmediate(() => {
      this.#soon = undefined
      this.#polling.now().catch(() => {})
    })
  }

  async #exchange(): Promise<void> {
    const notes = [...this.#active].flatMap((shared) => shared.notes())
    const standing = await this.#guard.insist(() => this.#store.exchange(notes))
    if (this.#polling.closed) return
    this.#standing = Map.groupBy(standing, ([id]) => keyIn(id))
    const named = new Set([...this.#standing.keys()].flatMap((key) => this.#states.get(key) ?? []))
    for (const shared of new Set([...this.#active, ...this.#noted, ...named]))
      shared.read(this.#standingOf(shared))
    this.#noted = named
    for (const shared of this.#active) if (!shared.isActive) this.#active.delete(shared)
  }

  #standingOf({ key }: SharedState): ReadonlyMap<string, StandingNote> {
    return new Map(this.#standing.get(key))
  }
}

/** An id is a kind of note, whose it is, and a key. */
function keyIn(id: string): string {
  return id.slice(id.indexOf(' ', id.indexOf(' ') + 1) + 1)
}
