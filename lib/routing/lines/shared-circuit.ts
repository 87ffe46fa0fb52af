import type { CircuitSettings } from '../../core/catalog/index.ts'
import type { Circuit } from './circuit.ts'
import type { CircuitLink, CircuitOpening, FailureCounts } from './circuit-link.ts'
import type { LineNote, StandingNote } from './line-state-store.ts'
import { countsValue, readTold, type Told, toldValue } from './note-values.ts'
import { ProbeClaims } from './probe-claims.ts'

/** How long it is known after its end that a circuit was open or closed, in milliseconds. */
const KEPT_MS = 600_000
const NOTHING: FailureCounts = { all: 0, failures: 0, account: undefined }

/** A state of a line, or of a model on it, that all processes share. */
export interface SharedState {
  /** Names it in the notes. */
  readonly key: string
  /** Whether there is something to tell or to repeat. */
  readonly isActive: boolean
  /** Returns what to tell the others now. */
  notes(): LineNote[]
  /** Takes in what stands after an exchange, and what the other processes have counted. */
  read(standing: ReadonlyMap<string, StandingNote>, counts?: FailureCounts): void
  /** The others cannot be asked any more. */
  leaveAlone(): void
}

/** What a shared state needs of the process that it is in. */
export interface SharingProcess {
  /** An id that no other process has. */
  readonly id: string
  /** Whether the other processes cannot be asked. */
  readonly isAlone: boolean
  /** Exchanges what there is to tell, at once or within 50 ms. */
  tell(shared: SharedState, isUrgent: boolean): void
  forget(shared: SharedState): void
}

/** Keeps a circuit the same in all processes: what one finds holds for all, and one of them probes. */
export class SharedCircuit implements CircuitLink, SharedState {
  readonly key: string
  elsewhere = NOTHING
  readonly #circuit: Circuit
  readonly #process: SharingProcess
  readonly #settings: CircuitSettings
  readonly #ofHolder: ProbeClaims
  readonly #ofOthers: ProbeClaims
  /** The value of the note on the state that stands, as far as this process knows. */
  #base: string | undefined
  /** How often the circuit had turned when the others were last told. */
  #toldTurns = 0
  #sent: { readonly value: string; readonly turns: number } | undefined
  #hasToldCounts = false

  constructor(key: string, circuit: Circuit, settings: CircuitSettings, process: SharingProcess) {
    this.key = key
    this.#circuit = circuit
    this.#settings = settings
    this.#process = process
    this.#ofHolder = new ProbeClaims(`probe holder ${key}`, process.id)
    this.#ofOthers = new ProbeClaims(`probe others ${key}`, process.id)
    circuit.link = this
  }

  mayProbe(ofOthers: boolean): boolean {
    return this.#process.isAlone || this.#claims(ofOthers).mayProbe
  }

  wanted(ofOthers: boolean): void {
    const claims = this.#claims(ofOthers)
    claims.wanted()
    if ((ofOthers || this.#circuit.state === 'half_open') && claims.ask()) this.#process.tell(this, true)
  }

  halfOpened(): void {
    if (this.#ofHolder.ask()) this.#process.tell(this, true)
  }

  changed(): void {
    this.#process.tell(this, true)
  }

  failed(): void {
    this.#process.tell(this, false)
  }

  ended(): void {
    this.#process.forget(this)
  }

  get isActive(): boolean {
    const { turns, failures } = this.#circuit
    const isProbing =
      this.#ofHolder.isTold ||
      this.#ofOthers.isTold ||
      this.#circuit.probes(false) ||
      this.#circuit.probes(true)
    return isProbing || turns !== this.#toldTurns || failures !== undefined || this.#hasToldCounts
  }

  notes(): LineNote[] {
    const state = this.#stateNote()
    const counts = this.#countsNote()
    const claims = [
      this.#ofHolder.note(this.#circuit.holdsUp(false)),
      this.#ofOthers.note(this.#circuit.holdsUp(true)),
    ]
    return [state, counts, ...claims].filter((note) => note !== undefined)
  }

  read(standing: ReadonlyMap<string, StandingNote>, counts: FailureCounts = NOTHING): void {
    this.#ofHolder.read(standing)
    this.#ofOthers.read(standing)
    this.elsewhere = counts
    this.#readState(standing.get(stateId(this.key)))
    this.#circuit.judge()
  }

  leaveAlone(): void {
    this.elsewhere = NOTHING
  }

  #claims(ofOthers: boolean): ProbeClaims {
    return ofOthers ? this.#ofOthers : this.#ofHolder
  }

  #stateNote(): LineNote | undefined {
    this.#sent = undefined
    const { turns, opening } = this.#circuit
    if (turns === this.#toldTurns) return undefined
    const { holder = null, othersProbe = false, leftMs = 0, failedForMs = 0 } = opening ?? {}
    const told = { isOpen: opening !== undefined, holder, othersProbe, failedForMs }
    const value = toldValue(told, { by: this.#process.id, turns })
    this.#sent = { value, turns }
    const lifeMs = Math.max(0, leftMs) + KEPT_MS
    return { id: stateId(this.key), value, lifeMs, when: 'unchanged', base: this.#base }
  }

  #countsNote(): LineNote | undefined {
    const { failures } = this.#circuit
    if (!failures && !this.#hasToldCounts) return undefined
    this.#hasToldCounts = failures !== undefined
    return {
      id: `counts ${this.#process.id} ${this.key}`,
      value: countsValue(failures),
      lifeMs: failures ? this.#settings.windowMs : 0,
      when: 'always',
    }
  }

  #readState(note: StandingNote | undefined): void {
    const sent = this.#sent
    this.#sent = undefined
    const known = this.#base
    this.#base = note?.value
    if (sent && sent.value === note?.value) {
      this.#toldTurns = sent.turns
      return
    }
    const circuit = this.#circuit
    const isTold = circuit.turns === this.#toldTurns
    if (!note) {
      // The others have forgotten it, such as a Redis that was started again.
      if (isTold && known !== undefined && circuit.opening) this.#toldTurns = -1
      if (circuit.turns !== this.#toldTurns) this.#process.tell(this, true)
      return
    }
    if (!isTold && note.value === known) {
      // It turned while the others were being asked, who stand where they stood.
      this.#process.tell(this, true)
      return
    }
    const told = readTold(note.value)
    if (!told) {
      // Of another version, whose state this one leaves alone until it has something to tell itself.
      if (!isTold) this.#process.tell(this, true)
      return
    }
    const opening = openingOf(told, note)
    if (!isTold) this.#reconcile(opening)
    else if (!opening) {
      if (circuit.opening) circuit.follow(undefined)
    } else if (known !== note.value || (!circuit.opening && opening.leftMs > 0)) this.#follow(opening)
  }

  #follow(opening: CircuitOpening): void {
    const { holder, leftMs, failedForMs } = opening
    const openedAt = performance.now() + leftMs - this.#settings.resetMs
    // Where the line has served meanwhile, what is out of order is the other process, or its way to the line.
    const isWell = holder === undefined && this.#circuit.wentWellSince(openedAt - failedForMs)
    if (this.#circuit.opening || !isWell) this.#circuit.follow(opening)
  }

  /** The circuit has turned here, and elsewhere at the same time. */
  #reconcile(elsewhere: CircuitOpening | undefined): void {
    const here = this.#circuit.opening
    // What opened here holds; what closed here does not, if another process has found the line ill since.
    if (here && (!elsewhere || here.holder !== elsewhere.holder)) {
      // Open for different accounts: several have failed.
      const opening = elsewhere && { ...here, holder: undefined, othersProbe: false }
      if (opening) this.#circuit.follow(opening)
      this.#process.tell(this, true)
      return
    }
    this.#toldTurns = this.#circuit.turns
    if (elsewhere && !here) this.#follow(elsewhere)
  }
}

/** The id of the note on the state of a circuit. */
function stateId(key: string): string {
  return `circuit state ${key}`
}

function openingOf(told: Told, { leftMs }: StandingNote): CircuitOpening | undefined {
  const { isOpen, holder, othersProbe, failedForMs } = told
  if (!isOpen) return undefined
  return { holder: holder ?? undefined, othersProbe, failedForMs, leftMs: leftMs - KEPT_MS }
}
