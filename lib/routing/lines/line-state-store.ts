/** A note that one process leaves for the others. */
export interface LineNote {
  /** Names the subject of the note and its author. */
  readonly id: string
  readonly value: string
  /** How long it stands, in milliseconds. 0 takes away the note that stands. */
  readonly lifeMs: number
  /**
   * When it takes the place of the note that stands under its id:
   * - `unchanged`: the value that stands is `base`, or none stands and `base` is undefined;
   * - `longer`: none stands, or one that ends earlier.
   */
  readonly when: 'unchanged' | 'longer'
  readonly base?: string | undefined
}

/** A note that stands. */
export interface StandingNote {
  readonly value: string
  /** Milliseconds until it ends. */
  readonly leftMs: number
}

/** Keeps the notes that processes exchange about their lines. Each process has a handle of its own. */
export interface LineStateStore {
  /**
   * Leaves notes, each if its condition holds, and returns all that stand then, by their ids. All at once: nobody else's
   * notes come in between.
   */
  exchange(notes: readonly LineNote[]): Promise<ReadonlyMap<string, StandingNote>>
  /**
   * Calls a function soon after the exchange of another handle has changed what stands; repeated notes change nothing. Calls
   * may get lost.
   *
   * @returns a function that ends it.
   */
  watch(changed: () => void): () => void
}

/**
 * Keeps the notes that the registries of one process exchange about their lines, such as those of two gateways
 * in one app.
 *
 * @example
 * const store = new MemoryLineStateStore()
 * new LineSharing({ store, lines: new LineRegistry() })
 */
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
