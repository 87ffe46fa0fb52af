import { randomUUID } from 'node:crypto'
import type { Logger } from '../../core/call/index.ts'
import { upstreamName } from '../../core/catalog/index.ts'
import {
  aFunction,
  aLogger,
  anObjectWith,
  aPollTime,
  checkOptions,
  type OptionRules,
  required,
} from '../../core/options/index.ts'
import { StoreGuard } from '../../core/store-guard/index.ts'
import { BackgroundLoop } from '../../core/timing/index.ts'
import type { Circuit } from './circuit.ts'
import { type LineRegistry, upstreamKey } from './line-registry.ts'
import type { LineState } from './line-state.ts'
import type { LineNote, LineStateStore, StandingNote } from './line-state-store.ts'
import type { Rest } from './rest.ts'

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
export class LineSharing {
  /** An id that no other process has. */
  readonly id = randomUUID()
  readonly #store: LineStateStore
  readonly #guard: StoreGuard
  readonly #polling: BackgroundLoop
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
    const { store, lines, pollMs = 800, logger, onStoreChange } = options
    this.#store = store
    this.#guard = new StoreGuard({
      name: 'line states',
      effect: 'each process has circuits and rests of its own',
      logger,
      timeoutMs: STORE_TIMEOUT_MS,
      onStoreChange,
    })
    this.#polling = new BackgroundLoop(() => this.#exchange(), pollMs)
    this.#endWatch = store.watch(() => this.#exchangeSoon())
    lines.share((state) => this.#addLine(state))
  }

  /**
   * Exchanges with the store now.
   *
   * @throws {StoreAway} if the store does not answer; lines stay as they are.
   */
  refresh(): Promise<void> {
    return this.#polling.runNow()
  }

  close(): void {
    this.#endWatch()
    clearImmediate(this.#soon)
    void this.#polling.close()
  }

  #addLine(state: LineState): void {
    const ofLine = (): string[] => [state.line.id, upstreamKey(state.line)]
    this.#add(new SharedCircuit(JSON.stringify(ofLine()), state.circuit, this))
    state.onModel = (id, model) => {
      const key = JSON.stringify([...ofLine(), id, upstreamName(state.line, id) ?? null])
      this.#add(new SharedCircuit(key, model.circuit, this))
      this.#add(new SharedRest(`${key} rest`, model, this))
    }
    state.onLookUps = (path, rest) => {
      const key = JSON.stringify([...ofLine(), 'look-ups', path])
      this.#add(new SharedRest(`${key} rest`, rest, this))
    }
    for (const [id, model] of state.models) state.onModel(id, model)
    for (const [path, rest] of state.lookUps) state.onLookUps(path, rest)
  }

  /** Sends the notes of a state that has changed. */
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
      this.#polling.runNow().catch(() => {})
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

/** A state of a line, or of a model on it, that all processes share. */
type SharedState = SharedCircuit | SharedRest

/** Shares to which accounts a circuit is open, and until when. A process that follows makes a trial of its own afterwards. */
class SharedCircuit {
  /** Names it in the notes. */
  readonly key: string
  readonly #circuit: Circuit
  readonly #process: LineSharing

  constructor(key: string, circuit: Circuit, process: LineSharing) {
    this.key = key
    this.#circuit = circuit
    this.#process = process
    circuit.onOpen = () => process.announce(this)
    circuit.onEnd = () => process.forget(this)
  }

  /** Whether there is a change to send or to repeat. */
  get isActive(): boolean {
    return this.#circuit.openings.length > 0
  }

  /** Returns the notes for the other processes. */
  notes(): LineNote[] {
    return this.#circuit.openings.map(({ account, leftMs, failedForMs }) => ({
      id: `open ${Buffer.from(account).toString('base64url')} ${this.key}`,
      value: `${Math.ceil(failedForMs)} ${this.#process.id}`,
      lifeMs: leftMs,
      when: 'longer',
    }))
  }

  /** Takes in the notes on it that stand after an exchange, by their ids. */
  read(standing: ReadonlyMap<string, StandingNote>): void {
    for (const [id, { value, leftMs }] of standing) {
      const [kind, account = ''] = id.split(' ', 2)
      const [failed, by] = value.split(' ')
      const failedForMs = Number(failed || Number.NaN)
      // A note of another version may have another form.
      if (kind !== 'open' || by === this.#process.id || !(failedForMs >= 0)) continue
      this.#circuit.follow({ account: Buffer.from(account, 'base64url').toString(), leftMs, failedForMs })
    }
  }
}

/** How long after a rest the next one still counts as its continuation, in milliseconds. */
const KEPT_MS = 30_000

/** A rest that has begun, by its number in this process, or that it was lifted. */
type Unsent = { readonly unsaidMs: number; readonly rest: number } | 'lifted'

/** Makes a rest that one process has begun a rest in all. */
class SharedRest {
  readonly key: string
  readonly #rest: Rest
  readonly #process: LineSharing
  /** The value of the note that stands, as far as this process knows. */
  #base: string | undefined
  #rests = 0
  /** The rest that the other processes do not know yet, and the one that is being sent to them. */
  #unsent: Unsent | undefined
  #sent: Unsent | undefined

  constructor(key: string, rest: Rest, process: LineSharing) {
    this.key = key
    this.#rest = rest
    this.#process = process
    rest.onRest = (unsaidMs) => this.#rested(unsaidMs)
    rest.onLift = () => this.#lifted()
    rest.onEnd = () => process.forget(this)
  }

  #rested(unsaidMs: number): void {
    this.#unsent = { unsaidMs, rest: ++this.#rests }
    this.#process.announce(this)
  }

  #lifted(): void {
    this.#unsent = this.#base === undefined ? undefined : 'lifted'
    if (this.#unsent) this.#process.announce(this)
  }

  get isActive(): boolean {
    return this.#unsent !== undefined
  }

  notes(): LineNote[] {
    const { id } = this
    const unsent = this.#unsent
    this.#sent = unsent
    if (!unsent) return []
    if (unsent === 'lifted') return [{ id, value: '', lifeMs: 0, when: 'unchanged', base: this.#base }]
    const value = `${unsent.unsaidMs} ${this.#process.id} ${unsent.rest}`
    return [{ id, value, lifeMs: this.#rest.restMs + KEPT_MS, when: 'longer' }]
  }

  read(standing: ReadonlyMap<string, StandingNote>): void {
    const note = standing.get(this.id)
    const isNew = note?.value !== this.#base
    this.#base = note?.value
    // A lifted rest must not come back before the others have lifted it, too.
    const isLifted = this.#unsent === 'lifted'
    if (this.#sent === this.#unsent) this.#unsent = undefined
    if (!note || !isNew || isLifted) return
    const noted = readRest(note.value)
    if (noted && noted.by !== this.#process.id && note.leftMs > KEPT_MS)
      this.#rest.restAlong(note.leftMs - KEPT_MS, noted.unsaidMs)
  }

  /** The id of its note. */
  get id(): string {
    return `rest - ${this.key}`
  }
}

/** Reads the value of a note. It is undefined if another version has left the note in another form. */
function readRest(value: string): { readonly unsaidMs: number; readonly by: string } | undefined {
  const [unsaid, by] = value.split(' ')
  const unsaidMs = Number(unsaid || Number.NaN)
  return Number.isFinite(unsaidMs) && unsaidMs >= 0 && by ? { unsaidMs, by } : undefined
}
