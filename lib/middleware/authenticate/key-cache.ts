import type { KeyDirectory, KeyRecord } from '../../core/key-directory/index.ts'
import { StoreAway } from '../../core/store-guard/index.ts'
import { within } from '../../core/timing/index.ts'

export interface KeyCacheOptions {
  /** How long an answer is used, in milliseconds, counted from its request. */
  freshMs: number
  /** The largest age of a cached answer while the directory cannot be reached, in milliseconds. */
  staleKeysMs: number
  /** How long the directory may take before it counts as unreachable, in milliseconds. */
  storeTimeoutMs: number
  /** The largest number of cached keys. Unknown secrets have a cache of a tenth of it: guesses cannot evict keys. */
  maxEntries: number
}

/** The longest wait for the directory if a cached answer can be used instead, in milliseconds. */
const STALE_AFTER_MS = 500

interface Entry {
  readonly record: KeyRecord | undefined
  readonly askedAt: number
}

/**
 * Caches a directory's answers for a short time, including "no such key". Simultaneous look-ups of one secret share
 * one request.
 *
 * While the directory is unreachable, cached keys are used up to the age `staleKeysMs`: nobody could have reported a
 * change to the directory either. "No such key" is not used then, because the key may have been created since.
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
      return this.#useStale(last, askedAt, error)
    }
    if (!(answer instanceof Promise)) {
      this.#remember(secretHash, { record: answer, askedAt })
      return answer
    }
    const remembered = answer.then((record) => {
      this.#remember(secretHash, { record, askedAt })
      return record
    })
    const { storeTimeoutMs } = this.#options
    const timeoutMs = this.#mayUseStale(last, askedAt)
      ? Math.min(storeTimeoutMs, STALE_AFTER_MS)
      : storeTimeoutMs
    const pending = within(timeoutMs, remembered, () => {
      throw new StoreAway(`the key directory has not answered for ${timeoutMs} ms`)
    })
      .catch((error: unknown) => this.#useStale(last, askedAt, error))
      .finally(() => this.#pending.delete(secretHash))
    this.#pending.set(secretHash, pending)
    return pending
  }

  #mayUseStale(last: Entry | undefined, askedAt: number): last is Entry & { record: KeyRecord } {
    return last?.record !== undefined && askedAt - last.askedAt < this.#options.staleKeysMs
  }

  #useStale(last: Entry | undefined, askedAt: number, error: unknown): KeyRecord {
    if (this.#mayUseStale(last, askedAt)) return last.record
    throw error
  }

  #remember(secretHash: string, entry: Entry): void {
    const known = this.#known.get(secretHash) ?? this.#unknown.get(secretHash)
    // A late answer may be older than the cached one.
    if (known && known.askedAt > entry.askedAt) return
    this.#known.delete(secretHash)
    this.#unknown.delete(secretHash)
    const store = entry.record ? this.#known : this.#unknown
    store.set(secretHash, entry)
    const max = entry.record ? this.#options.maxEntries : Math.ceil(this.#options.maxEntries / 10)
    // An iterator that is kept would keep all that the Map ever held.
    const [oldest] = store.size > max ? store.keys() : []
    if (oldest !== undefined) store.delete(oldest)
  }
}
