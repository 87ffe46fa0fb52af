import { within } from '../../core/time-limit/index.ts'
import type { KeyDirectory, KeyRecord } from './key-directory.ts'

/** Bounds of the cache in front of a directory. */
export interface KeyCacheOptions {
  /** How long an answer is used, in milliseconds, counted from the moment it was asked for. */
  freshMs: number
  /** While the directory cannot be reached, an answer this old is still used. */
  staleMs: number
  /** After this long without an answer, in milliseconds, the directory counts as away; sooner for a key that it told of. */
  lookupMs: number
  /** Most keys remembered; unknown secrets have a store of a tenth of it, so that guesses cannot push out keys. */
  maxEntries: number
}

/** Where an earlier answer can stand in, no request waits for a new one for longer than this, in milliseconds. */
const STAND_IN_AFTER_MS = 500

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
  /** One of each for good: a new one would each time walk over all that was deleted before. */
  readonly #oldestKnown = this.#known.keys()
  readonly #oldestUnknown = this.#unknown.keys()
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
    const { lookupMs } = this.#options
    const patience = this.#mayStandIn(last, askedAt) ? Math.min(lookupMs, STAND_IN_AFTER_MS) : lookupMs
    const pending = within(patience, remembered, () => {
      throw new Error(`the key directory has not answered for ${patience} ms`)
    })
      .catch((error: unknown) => this.#standIn(last, askedAt, error))
      .finally(() => this.#pending.delete(secretHash))
    this.#pending.set(secretHash, pending)
    return pending
  }

  #mayStandIn(last: Entry | undefined, askedAt: number): last is Entry & { record: KeyRecord } {
    return last?.record !== undefined && askedAt - last.askedAt < this.#options.staleMs
  }

  #standIn(last: Entry | undefined, askedAt: number, error: unknown): KeyRecord {
    if (this.#mayStandIn(last, askedAt)) return last.record
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
    if (store.size > most) this.#forgetOldest(store)
  }

  #forgetOldest(store: Map<string, Entry>): void {
    const oldest = (store === this.#known ? this.#oldestKnown : this.#oldestUnknown).next().value
    if (oldest !== undefined) store.delete(oldest)
  }
}
