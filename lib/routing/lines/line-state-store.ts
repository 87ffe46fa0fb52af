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
