import { withinMemory } from '../../core/bytes/index.ts'
import type { IdempotencyClaim } from '../../core/call/index.ts'
import { aNumber, checkOptions } from '../../core/options/index.ts'
import {
  type ClaimRequest,
  type IdempotencyRecord,
  type IdempotencyStore,
  PINNED_UNTIL,
} from './idempotency-store.ts'

/** Options of {@link MemoryIdempotencyStore}. */
export interface MemoryIdempotencyStoreOptions {
  /**
   * The largest number of completed records. Beyond it the oldest are dropped, freeing their keys. Defaults to
   * 200000.
   */
  maxCompleted?: number
  /**
   * The most memory that answers for repetitions take, in characters. Beyond it the oldest are dropped: their keys stay used
   * up. Defaults to 64 Mi, less where the process may take less than 1 GiB.
   */
  maxAnswerLength?: number
}

/**
 * Keeps records in the memory of one process. They are lost when it ends.
 *
 * @throws TypeError at construction when an option is unusable.
 * @example
 * app.use(idempotency({ store: new MemoryIdempotencyStore({ maxCompleted: 50_000 }) }))
 */
export class MemoryIdempotencyStore implements IdempotencyStore {
  readonly #maxCompleted: number
  readonly #maxAnswerLength: number
  readonly #running = new Map<string, IdempotencyRecord>()
  /** Completed records, in the order of their completion. */
  readonly #completed = new Map<string, IdempotencyRecord>()
  /** The answers of completed records, in the order of their completion. */
  readonly #answers = new Map<string, string>()
  #answerLength = 0
  /** Reused, because a new iterator would walk over all deleted entries. */
  readonly #oldest = this.#completed.keys()

  constructor(options: MemoryIdempotencyStoreOptions = {}) {
    checkOptions<MemoryIdempotencyStoreOptions>('MemoryIdempotencyStore', options, {
      maxCompleted: aNumber('at least 1', 1),
      maxAnswerLength: aNumber('a number of characters from 0 up', 0),
    })
    const { maxCompleted = 200_000, maxAnswerLength = withinMemory(64 * 1024 * 1024) } = options
    this.#maxCompleted = maxCompleted
    this.#maxAnswerLength = maxAnswerLength
  }

  /** The number of records, expired ones that were not pruned yet included. */
  get size(): number {
    return this.#running.size + this.#completed.size
  }

  async claim({ id, owner, fingerprint, now, leaseUntil }: ClaimRequest) {
    const existing = this.#running.get(id) ?? this.#completed.get(id)
    const own = existing?.state === 'running' && existing.owner === owner
    if (existing && existing.expiresAt > now && !own) {
      const answer = this.#answers.get(id)
      return answer === undefined ? existing : { ...existing, answer }
    }
    this.#forget(id)
    this.#running.set(id, { owner, fingerprint, state: 'running', expiresAt: leaseUntil })
    return undefined
  }

  async renew(claims: readonly IdempotencyClaim[], leaseUntil: number): Promise<boolean[]> {
    return claims.map(({ id, owner }) => {
      const record = this.#running.get(id)
      if (record?.owner !== owner) return false
      if (record.expiresAt !== PINNED_UNTIL) this.#running.set(id, { ...record, expiresAt: leaseUntil })
      return true
    })
  }

  /**
   * Keeps a claim from expiring. `MemoryTaskStore` needs this because the outcome of a video task may be known long
   * after its call, or never.
   *
   * @returns false if the claim was lost. Then it changes nothing.
   */
  pin({ id, owner }: IdempotencyClaim): boolean {
    const record = this.#running.get(id)
    if (record?.owner !== owner) return false
    this.#running.set(id, { ...record, expiresAt: PINNED_UNTIL })
    return true
  }

  /** Frees the key of a claim, pinned or not, that is not completed. Does nothing for a lost claim. */
  free({ id, owner }: IdempotencyClaim): void {
    if (this.#running.get(id)?.owner === owner) this.#running.delete(id)
  }

  async complete({ id, owner }: IdempotencyClaim, keepUntil: number, answer?: string): Promise<boolean> {
    const record = this.#running.get(id) ?? this.#completed.get(id)
    if (record?.owner !== owner) return false
    this.#running.delete(id)
    this.#completed.set(id, { ...record, state: 'completed', expiresAt: keepUntil })
    if (answer !== undefined) this.#keep(id, answer)
    if (this.#completed.size > this.#maxCompleted) {
      const oldest = this.#oldest.next().value
      if (oldest !== undefined) this.#forget(oldest)
    }
    return true
  }

  async release(claim: IdempotencyClaim): Promise<void> {
    if (this.#running.get(claim.id)?.expiresAt !== PINNED_UNTIL) this.free(claim)
  }

  async prune(now: number, limit: number): Promise<number> {
    let forgotten = 0
    for (const records of [this.#completed, this.#running]) {
      for (const [id, { expiresAt }] of records) {
        if (forgotten >= limit) return forgotten
        if (expiresAt > now) {
          // Completed records are in the order in which they expire.
          if (records === this.#completed) break
          continue
        }
        if (records === this.#completed) this.#forget(id)
        else records.delete(id)
        forgotten++
      }
    }
    return forgotten
  }

  #keep(id: string, answer: string): void {
    this.#dropAnswer(id)
    this.#answers.set(id, answer)
    this.#answerLength += answer.length
    for (const [oldest] of this.#answers) {
      if (this.#answerLength <= this.#maxAnswerLength) return
      this.#dropAnswer(oldest)
    }
  }

  #forget(id: string): void {
    this.#completed.delete(id)
    this.#dropAnswer(id)
  }

  #dropAnswer(id: string): void {
    this.#answerLength -= this.#answers.get(id)?.length ?? 0
    this.#answers.delete(id)
  }
}
