import type { LineNote, LineStateStore, StandingNote } from './line-state-store.ts'

/**
 * Keeps what the registries of one process tell each other about their lines, such as those of two gateways in one app.
 *
 * @example
 * const store = new MemoryLineStateStore()
 * new LineSharing({ store, lines: new LineRegistry() })
 */
export class MemoryLineStateStore implements LineStateStore {
  readonly #board: Board

  /** @param beside a handle of the same store; without one the store is new. */
  constructor(beside?: MemoryLineStateStore) {
    this.#board = beside ? beside.#board : { notes: new Map(), watchers: new Map() }
  }

  async exchange(notes: readonly LineNote[]): Promise<ReadonlyMap<string, StandingNote>> {
    const now = performance.now()
    const { notes: standing, watchers } = this.#board
    for (const [id, { endsAt }] of standing) if (endsAt <= now) standing.delete(id)
    let hasChanged = false
    for (const note of notes) {
      const known = standing.get(note.id)
      if (!mayTakePlace(note, known, now)) continue
      if (note.when !== 'always' && (note.lifeMs === 0 ? known : known?.value !== note.value))
        hasChanged = true
      if (note.lifeMs === 0) standing.delete(note.id)
      else standing.set(note.id, { value: note.value, endsAt: now + note.lifeMs })
    }
    if (hasChanged) for (const [changed, store] of watchers) if (store !== this) setImmediate(changed)
    return new Map([...standing].map(([id, { value, endsAt }]) => [id, { value, leftMs: endsAt - now }]))
  }

  watch(changed: () => void): () => void {
    const { watchers } = this.#board
    watchers.set(changed, this)
    return () => void watchers.delete(changed)
  }
}

interface Kept {
  readonly value: string
  readonly endsAt: number
}

interface Board {
  readonly notes: Map<string, Kept>
  readonly watchers: Map<() => void, MemoryLineStateStore>
}

function mayTakePlace(
  { when, value, base, lifeMs }: LineNote,
  known: Kept | undefined,
  now: number,
): boolean {
  switch (when) {
    case 'always':
      return true
    case 'unchanged':
      return known?.value === base
    case 'free':
      return known === undefined || known.value === value
    case 'longer':
      return known === undefined || known.endsAt < now + lifeMs
  }
}
