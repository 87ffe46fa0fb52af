import type { ModelState, RestLink } from './line-state.ts'
import type { LineNote, StandingNote } from './line-state-store.ts'
import { readRest, restValue } from './note-values.ts'
import type { SharedState, SharingProcess } from './shared-circuit.ts'

/** How long after a rest the next one still counts as its continuation, in milliseconds. */
const KEPT_MS = 30_000

/** A rest that has begun, by its number in this process, or that it was lifted. */
type Untold = { readonly unsaidMs: number; readonly rest: number } | 'lifted'

/** Makes a model that one process found to rest on a line rest in all. */
export class SharedRest implements SharedState, RestLink {
  readonly key: string
  readonly #model: ModelState
  readonly #process: SharingProcess
  /** The value of the note that stands, as far as this process knows. */
  #base: string | undefined
  #rests = 0
  /** What the others are not told yet, and of that what they are being told. */
  #untold: Untold | undefined
  #sent: Untold | undefined

  constructor(key: string, model: ModelState, process: SharingProcess) {
    this.key = key
    this.#model = model
    this.#process = process
    model.link = this
  }

  rested(unsaidMs: number): void {
    this.#untold = { unsaidMs, rest: ++this.#rests }
    this.#process.tell(this, true)
  }

  lifted(): void {
    this.#untold = this.#base === undefined ? undefined : 'lifted'
    if (this.#untold) this.#process.tell(this, true)
  }

  ended(): void {
    this.#process.forget(this)
  }

  get isActive(): boolean {
    return this.#untold !== undefined
  }

  notes(): LineNote[] {
    const { id } = this
    const untold = this.#untold
    this.#sent = untold
    if (!untold) return []
    if (untold === 'lifted') return [{ id, value: '', lifeMs: 0, when: 'unchanged', base: this.#base }]
    const value = restValue({ ...untold, by: this.#process.id })
    return [{ id, value, lifeMs: this.#model.restMs + KEPT_MS, when: 'longer' }]
  }

  read(standing: ReadonlyMap<string, StandingNote>): void {
    const note = standing.get(this.id)
    const isNew = note?.value !== this.#base
    this.#base = note?.value
    // A lifted rest must not come back before the others have lifted it, too.
    const isLifted = this.#untold === 'lifted'
    if (this.#sent === this.#untold) this.#untold = undefined
    if (!note || !isNew || isLifted) return
    const told = readRest(note.value)
    if (told && told.by !== this.#process.id && note.leftMs > KEPT_MS)
      this.#model.restAlong(note.leftMs - KEPT_MS, told.unsaidMs)
  }

  leaveAlone(): void {}

  /** The id of its note. */
  get id(): string {
    return `rest - ${this.key}`
  }
}
