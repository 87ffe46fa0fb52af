import { Keyv, type KeyvStoreAdapter } from 'keyv'
import type { Logger } from '../../core/call/index.ts'
import { type AnswerRecord, answerRecordIn } from '../../core/repetition/index.ts'
import { StoreGuard } from '../../core/store-guard/index.ts'

/** A `Keyv`, or one of its storage adapters. */
export type CacheStore = Keyv | KeyvStoreAdapter

/** An answer as the store keeps it. */
export interface CachedAnswer {
  /** The id of the call that got it. */
  readonly id: string
  /** When it was kept, in milliseconds since the epoch. */
  readonly at: number
  /** The recorded answer. */
  readonly answer: string
}

/** An answer that was found. */
export interface FoundAnswer {
  /** The id of the call that got it. */
  readonly id: string
  readonly answer: AnswerRecord
}

export interface CachedAnswersOptions {
  readonly logger: Logger
  readonly onStoreChange: ((away: boolean) => void) | undefined
}

const NAMESPACE = 'gateway:cache'

/** A store that is far away, or reads a large answer, may take this long, in milliseconds. */
const FAR_TIMEOUT_MS = 1000

/** Keeps answers in a store of keyv. No call waits long for it, and none fails because of it. */
export class CachedAnswers {
  readonly #keyv: Keyv
  readonly #guard: StoreGuard
  /** Adapters may report a failure as an event, and return nothing. */
  #failures = 0
  #failure: unknown
  /** The answers that are being kept. */
  readonly #keeping = new Set<Promise<unknown>>()

  constructor(store: CacheStore, { logger, onStoreChange }: CachedAnswersOptions) {
    this.#keyv = keyvOf(store)
    this.#keyv.on('error', (error: unknown) => {
      this.#failures++
      this.#failure = error
    })
    this.#guard = new StoreGuard({
      name: 'cache',
      effect: 'requests run as if they were new, and their answers are not kept',
      logger,
      farTimeoutMs: FAR_TIMEOUT_MS,
      onStoreChange,
    })
  }

  /** Returns an answer that is younger than `ttl` milliseconds; undefined if there is none, or the store is away. */
  async find(key: string, ttl: number): Promise<FoundAnswer | undefined> {
    const found = await this.#ask(() => this.#keyv.get<unknown>(key))
    if (!isAnswer(found) || !(Date.now() - found.at < ttl)) return undefined
    const answer = answerRecordIn(found.answer)
    return answer && { id: found.id, answer }
  }

  /** Begins to keep an answer for `ttl` milliseconds, unless the store is away. */
  keep(key: string, answer: CachedAnswer, ttl: number): void {
    // Redis takes no parts of a millisecond.
    const keeping = this.#ask(async () => void (await this.#keyv.set(key, answer, Math.ceil(ttl))))
    this.#keeping.add(keeping)
    void keeping.then(() => this.#keeping.delete(keeping))
  }

  /** Resolves when the answers that are being kept are in the store, or cannot be. */
  async kept(): Promise<void> {
    await Promise.all(this.#keeping)
  }

  async #ask<T>(operate: () => Promise<T | undefined>): Promise<T | undefined> {
    try {
      return await this.#guard.run(async () => {
        const before = this.#failures
        const result = await operate().catch(unlessUnreadable)
        if (result === undefined && this.#failures !== before) throw this.#failure
        return result
      })
    } catch {
      // The guard has logged it.
      return undefined
    }
  }
}

/** Returns a Keyv that reports failures: of the adapter, or with the settings of another Keyv. */
function keyvOf(store: CacheStore): Keyv {
  const isKeyv = store instanceof Keyv || store.opts?.store !== undefined
  const options = isKeyv ? store.opts : { store, namespace: NAMESPACE }
  return new Keyv({ ...options, throwOnErrors: true })
}

/** Takes a text that cannot be parsed for no answer: it says nothing about the store. */
function unlessUnreadable(error: unknown): undefined {
  if (!(error instanceof SyntaxError)) throw error
}

function isAnswer(value: unknown): value is CachedAnswer {
  if (typeof value !== 'object' || value === null) return false
  const { id, at, answer } = value as Partial<CachedAnswer>
  return typeof id === 'string' && typeof at === 'number' && typeof answer === 'string'
}
