import type { KeyDirectory, KeyRecord } from './key-directory.ts'

/** Bounds of the cache in front of a directory. */
export interface KeyCacheOptions {
  /** How long an answer is used, in milliseconds, counted from the moment it was asked for. */
  freshMs: number
  /** While the directory cannot be reached, an answer this old is still used. */
  staleMs: number
  /** Most keys remembered; unknown secrets have a store of a tenth of it, so that guesses cannot push out keys. */
  maxEntries: number
}

interface Entry {
  readonly record: KeyRecord | undefined
  readonly askedAt: number
}

/**
 * Remembers a directory's answers, "no such key" included, each for a short while. Look-ups of the same secret at the
 * same time are one look-up.
 *
 * A directory that is away cannot have been told of a change either, so its last answers stand in for up to `staleMs`.
 */
export class KeyCache implements KeyDirectory {
  readonly #directory: KeyDirectory
  readonly #options: KeyCacheOptions
  readonly #known = new Map<string, Entry>()
  readonly #unknown = new Map<string, Entry>()
  readonly #pending = new Map<string, Promise<KeyRecord | undefined>>()

  constructor(directory: KeyDirectory, options: KeyCacheOptions) {
    this.#directory = directory
    this.#options = options
  }

  find(secretHash: string): KeyRecord | undefined | Promise<KeyRecord | undefined> {
    const entry = this.#known.get(secretHash) ?? this.#unknown.get(secretHash)
    const askedAt = performance.now()
    if (entry && askedAt - entry.askedAt < this.#options.freshMs) return entry.record
    return this.#pending.get(secretHash) ?? this.#ask(secretHash, askedAt, entry)
  }

  #ask(
    secretHash: string,
    askedAt: number,
    last: Entry | undefined,
  ): KeyRecord | undefined | Promise<KeyRecord | undefined> {
    const answer = this.#directory.find(secretHash)
    if (!(answer instanceof Promise)) {
      this.#remember(secretHash, { record: answer, askedAt })
      return answer
    }
    const pending = answer
      .then((record) => {
        this.#remember(secretHash, { record, askedAt })
        return record
      })
      .catch((error: unknown) => {
        if (last && askedAt - last.askedAt < this.#options.staleMs) return last.record
        throw error
      })
      .finally(() => this.#pending.delete(secretHash))
    this.#pending.set(secretHash, pending)
    return pending
  }

  #remember(secretHash: string, entry: Entry): void {
    this.#known.delete(secretHash)
    this.#unknown.delete(secretHash)
    const store = entry.record ? this.#known : this.#unknown
    store.set(secretHash, entry)
    const most = entry.record ? this.#options.maxEntries : Math.ceil(this.#options.maxEntries / 10)
    if (store.size > most) store.delete(store.keys().next().value as string)
  }
}
