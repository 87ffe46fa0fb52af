import type { KeyDirectory, KeyRecord } from './key-directory.ts'

/** Bounds of the cache in front of a directory. */
export interface KeyCacheOptions {
  /** How long an answer is used, in milliseconds, counted from the moment it was asked for. */
  freshMs: number
  /** While the directory cannot be reached, an answer this old is still used. */
  staleMs: number
  /** After this long without an answer, in milliseconds, the directory counts as away. */
  lookupMs: number
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
 * A directory that is away cannot have been told of a change either, so keys it last told of stand in for up to
 * `staleMs`. "No such key" does not: it would be a final no to a key made since.
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
    let answer: ReturnType<KeyDirectory['find']>
    try {
      answer = this.#directory.find(secretHash)
    } catch (error) {
      return this.#standIn(last, askedAt, error)
    }
    if (!(answer instanceof Promise)) {
      this.#remember(secretHash, { record: answer, askedAt })
      return answer
    }
    const remembered = answer.then((record) => {
      this.#remember(secretHash, { record, askedAt })
      return record
    })
    const pending = within(this.#options.lookupMs, remembered)
      .catch((error: unknown) => this.#standIn(last, askedAt, error))
      .finally(() => this.#pending.delete(secretHash))
    this.#pending.set(secretHash, pending)
    return pending
  }

  #standIn(last: Entry | undefined, askedAt: number, error: unknown): KeyRecord {
    if (last?.record && askedAt - last.askedAt < this.#options.staleMs) return last.record
    throw error
  }

  #remember(secretHash: string, entry: Entry): void {
    const known = this.#known.get(secretHash) ?? this.#unknown.get(secretHash)
    // An answer that came too late to be waited for may be older than what is known by now.
    if (known && known.askedAt > entry.askedAt) return
    this.#known.delete(secretHash)
    this.#unknown.delete(secretHash)
    const store = entry.record ? this.#known : this.#unknown
    store.set(secretHash, entry)
    const most = entry.record ? this.#options.maxEntries : Math.ceil(this.#options.maxEntries / 10)
    if (store.size > most) store.delete(store.keys().next().value as string)
  }
}

/** The answer, or an error if it takes too long. */
async function within<T>(ms: number, answer: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`the key directory has not answered for ${ms} ms`)), ms)
  })
  try {
    return await Promise.race([answer, late])
  } finally {
    clearTimeout(timer)
  }
}
