import { type Logger, quietLogger } from '../../core/call/index.ts'
import { aLogger, anObjectWith, checkOptions, type OptionRules, required } from '../../core/options/index.ts'
import { boundedStore } from '../../core/store-guard/index.ts'
import type { KeyStore } from './key-store.ts'

/** Options of {@link KeyUses}. */
export interface KeyUsesOptions {
  /** The store of keys. */
  keys: Pick<KeyStore, 'noteUses'>
  /** Logs when the store fails. Defaults to the console. */
  logger?: Logger
}

const RULES: OptionRules<KeyUsesOptions> = {
  keys: required(anObjectWith('a KeyStore, such as new SqlKeyStore(db)', 'noteUses')),
  logger: aLogger,
}

/** How long a use waits for those of other keys. */
const BATCH_MS = 5000
/** How long a key rests after its use was written. */
const REST_MS = 60_000
const BATCH_SIZE = 500

/** The last use of a key, and when one was written. */
interface Use {
  at: number
  written: boolean
  writtenAt: number
}

/**
 * Writes when keys were used last, in batches, off the path of calls: each key at most once a minute. Pass
 * {@link KeyUses.note} to `authenticate`, and `close` at shutdown. Uses that cannot be written are tried again with the next
 * batch; those of a process that is killed in between are lost.
 *
 * @throws TypeError at construction without a store.
 * @example
 * const uses = new KeyUses({ keys: new SqlKeyStore(db) })
 * app.use('/v1', authenticate({ keys: new SqlKeyDirectory(db), onUse: uses.note }))
 */
export class KeyUses {
  readonly #keys: Pick<KeyStore, 'noteUses'>
  readonly #logger: Logger
  readonly #uses = new Map<string, Use>()
  #timer: NodeJS.Timeout | undefined
  #failing = false
  #closed = false

  constructor(options: KeyUsesOptions) {
    checkOptions('KeyUses', options, RULES)
    this.#keys = boundedStore('keys', options.keys)
    this.#logger = quietLogger(options.logger)
  }

  /** Notes that a key was used at a time, in milliseconds since the epoch. */
  readonly note = (keyId: string, at: number): void => {
    const use = this.#uses.get(keyId)
    if (!use) this.#uses.set(keyId, { at, written: false, writtenAt: Number.NEGATIVE_INFINITY })
    else if (at > use.at) {
      use.at = at
      use.written = false
    }
    this.#schedule()
  }

  /** Writes what was noted last. */
  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#timer)
    await this.#write(Number.NEGATIVE_INFINITY)
  }

  #schedule(): void {
    if (this.#closed || this.#uses.size === 0) return
    this.#timer ??= setTimeout(() => {
      const now = performance.now()
      void this.#write(REST_MS).then(() => {
        this.#timer = undefined
        for (const [id, use] of this.#uses)
          if (use.written && now - use.writtenAt >= REST_MS) this.#uses.delete(id)
        this.#schedule()
      })
    }, BATCH_MS).unref()
  }

  /** Writes the uses of keys that have rested for so long. Never rejects. */
  async #write(restMs: number): Promise<void> {
    const now = performance.now()
    const due = [...this.#uses].filter(([, use]) => !use.written && now - use.writtenAt >= restMs)
    try {
      for (let i = 0; i < due.length; i += BATCH_SIZE) {
        const batch = due.slice(i, i + BATCH_SIZE).map(([id, use]) => ({ id, use, at: use.at }))
        await this.#keys.noteUses(new Map(batch.map(({ id, at }) => [id, at])))
        for (const { use, at } of batch) Object.assign(use, { written: use.at === at, writtenAt: now })
      }
      this.#failing = false
    } catch (error) {
      if (!this.#failing) this.#logger.warn({ err: error }, 'the last uses of keys could not be written')
      this.#failing = true
    }
  }
}
