import type { IdempotencyClaim } from '../../core/call/index.ts'
import { FairQueue } from '../../core/fair-queue/index.ts'
import {
  type ClaimRequest,
  type IdempotencyRecord,
  type IdempotencyStore,
  PINNED_UNTIL,
} from '../../core/idempotency/index.ts'
import { withinMemory } from '../../core/memory/index.ts'
import { aNumber, checkOptions } from '../../core/options/index.ts'

/** Options of {@link MemoryIdempotencyStore}. */
export interface MemoryIdempotencyStoreOptions {
  /**
   * The largest number of completed records. Beyond it the oldest of the scope with the most are dropped, freeing their keys.
   * Defaults to 200000.
   */
  maxCompleted?: number
  /**
   * The most memory that answers for repetitions take, in characters. Beyond it the oldest of the scope with the most are
   * dropped: their keys stay used up. Defaults to 64 Mi, less where the process may take less than 1 GiB.
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
  readonly #running = new Map<string, ScopedRecord>()
  /** Completed records, in the order of their completion. */
  readonly #completed = new Map<string, ScopedRecord>()
  /** The answers of completed records. */
  readonly #answers = new Map<string, string>()
  readonly #completedOrder: FairQueue<string>
  readonly #answerOrder: FairQueue<string>

  constructor(options: MemoryIdempotencyStoreOptions = {}) {
    checkOptions<MemoryIdempotencyStoreOptions>('MemoryIdempotencyStore', options, {
      maxCompleted: aNumber('at least 1', 1),
      maxAnswerLength: aNumber('a number of characters from 0 up', 0),
    })
    const { maxCompleted = 200_000, maxAnswerLength = withinMemory(64 * 1024 * 1024) } = options
    this.#completedOrder = new FairQueue({ maxItems: maxCompleted })
    this.#answerOrder = new FairQueue({ maxBytes: maxAnswerLength })
  }

  /** The number of records, expired ones that were not pruned yet included. */
  get size(): number {
    return this.#running.size + this.#completed.size
  }

  async claim({ id, owner, scope = '', fingerprint, now, leaseUntil }: ClaimRequest) {
    const found = this.#running.get(id) ?? this.#completed.get(id)
    const existing = found && recordOf(found)
    const own = existing?.state === 'running' && existing.owner === owner
    if (existing && existing.expiresAt > now && !own) {
      const answer = this.#answers.get(id)
      return answer === undefined ? existing : { ...existing, answer }
    }
    this.#forget(id)
    this.#running.set(id, { owner, scope, fingerprint, state: 'running', expiresAt: leaseUntil })
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
    for (const dropped of this.#completedOrder.add(record.scope, id)) this.#forget(dropped)
    if (answer !== undefined && this.#completed.has(id)) this.#keep(record.scope, id, answer)
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

  #keep(scope: string, id: string, answer: string): void {
    this.#answerOrder.delete(scope, id)
    this.#answers.set(id, answer)
    for (const dropped of this.#answerOrder.add(scope, id, answer.length)) this.#answers.delete(dropped)
  }

  #forget(id: string): void {
    const record = this.#completed.get(id)
    if (!record) return
    this.#completed.delete(id)
    this.#completedOrder.delete(record.scope, id)
    this.#answerOrder.delete(record.scope, id)
    this.#answers.delete(id)
  }
}

interface ScopedRecord extends IdempotencyRecord {
  readonly scope: string
}

function recordOf({ scope: _, ...record }: ScopedRecord): IdempotencyRecord {
  return record
}
