import type { LineNote, LineStateStore, StandingNote } from '../../lib/routing/lines/line-state-store.ts'

/** Keeps the notes that the registries of one process exchange about their lines. */
export class MemoryLineStateStore implements LineStateStore {
  readonly #shared: SharedNotes

  /** @param sharedWith a handle of the same store; without one the store is new. */
  constructor(sharedWith?: MemoryLineStateStore) {
    this.#shared = sharedWith ? sharedWith.#shared : { notes: new Map(), watchers: new Map() }
  }

  async exchange(notes: readonly LineNote[]): Promise<ReadonlyMap<string, StandingNote>> {
    const now = performance.now()
    const { notes: standing, watchers } = this.#shared
    for (const [id, { endsAt }] of standing) if (endsAt <= now) standing.delete(id)
    let hasChanged = false
    for (const note of notes) {
      const known = standing.get(note.id)
      if (!mayTakePlace(note, known, now)) continue
      if (note.lifeMs === 0 ? known : known?.value !== note.value) hasChanged = true
      if (note.lifeMs === 0) standing.delete(note.id)
      else standing.set(note.id, { value: note.value, endsAt: now + note.lifeMs })
    }
    if (hasChanged) for (const [changed, store] of watchers) if (store !== this) setImmediate(changed)
    return new Map([...standing].map(([id, { value, endsAt }]) => [id, { value, leftMs: endsAt - now }]))
  }

  watch(changed: () => void): () => void {
    const { watchers } = this.#shared
    watchers.set(changed, this)
    return () => void watchers.delete(changed)
  }
}

interface Kept {
  readonly value: string
  readonly endsAt: number
}

interface SharedNotes {
  readonly notes: Map<string, Kept>
  readonly watchers: Map<() => void, MemoryLineStateStore>
}

function mayTakePlace({ when, base, lifeMs }: LineNote, known: Kept | undefined, now: number): boolean {
  if (when === 'unchanged') return known?.value === base
  return known === undefined || known.endsAt < now + lifeMs
}
