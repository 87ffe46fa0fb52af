import type { Circuit } from './circuit.ts'
import type { Rest, RestLink } from './line-state.ts'
import type { LineNote, StandingNote } from './line-state-store.ts'

/** A state of a line, or of a model on it, that all processes share. */
export interface SharedState {
  /** Names it in the notes. */
  readonly key: string
  /** Whether there is a change to send or to repeat. */
  readonly isActive: boolean
  /** Returns the notes for the other processes. */
  notes(): LineNote[]
  /** Takes in the notes on it that stand after an exchange, by their ids. */
  read(standing: ReadonlyMap<string, StandingNote>): void
}

/** The process that a shared state is in. */
export interface SharingProcess {
  /** An id that no other process has. */
  readonly id: string
  /** Exchanges the notes at once. */
  announce(shared: SharedState): void
  forget(shared: SharedState): void
}

/** Shares to which accounts a circuit is open, and until when. A process that follows makes a trial of its own afterwards. */
export class SharedCircuit implements SharedState {
  readonly key: string
  readonly #circuit: Circuit
  readonly #process: SharingProcess

  constructor(key: string, circuit: Circuit, process: SharingProcess) {
    this.key = key
    this.#circuit = circuit
    this.#process = process
    circuit.onOpen = () => process.announce(this)
    circuit.onEnd = () => process.forget(this)
  }

  get isActive(): boolean {
    return this.#circuit.openings.length > 0
  }

  notes(): LineNote[] {
    return this.#circuit.openings.map(({ account, leftMs, failedForMs }) => ({
      id: `open ${Buffer.from(account).toString('base64url')} ${this.key}`,
      value: `${Math.ceil(failedForMs)} ${this.#process.id}`,
      lifeMs: leftMs,
      when: 'longer',
    }))
  }

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
export class SharedRest implements SharedState, RestLink {
  readonly key: string
  readonly #rest: Rest
  readonly #process: SharingProcess
  /** The value of the note that stands, as far as this process knows. */
  #base: string | undefined
  #rests = 0
  /** The rest that the other processes do not know yet, and the one that is being sent to them. */
  #unsent: Unsent | undefined
  #sent: Unsent | undefined

  constructor(key: string, rest: Rest, process: SharingProcess) {
    this.key = key
    this.#rest = rest
    this.#process = process
    rest.link = this
  }

  rested(unsaidMs: number): void {
    this.#unsent = { unsaidMs, rest: ++this.#rests }
    this.#process.announce(this)
  }

  lifted(): void {
    this.#unsent = this.#base === undefined ? undefined : 'lifted'
    if (this.#unsent) this.#process.announce(this)
  }

  ended(): void {
    this.#process.forget(this)
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
