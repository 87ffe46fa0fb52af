import type { CallLogEntry, IdempotencyClaim } from '../../../core/call/index.ts'
import type { ChangeOrigin } from '../../../core/change-log/index.ts'
import { FairQueue } from '../../../core/fair-queue/index.ts'
import {
  aNumber,
  anObjectWith,
  checkOptions,
  type OptionRules,
  required,
} from '../../../core/options/index.ts'
import type { CallUsage } from '../../../core/usage/index.ts'
import type { Hold, HoldRefusal } from '../../../ledger/hold.ts'
import { acceptedTask, FIRST_POLL_MS, intendedTask, KEPT_KEY_MS } from '../../../ledger/tasks/new-task.ts'
import {
  type CreateTarget,
  isFinished,
  type Observation,
  type TaskIntent,
  type VideoTask,
} from '../../../ledger/tasks/task.ts'
import { chargedEntry, usageOfTask } from '../../../ledger/tasks/task-charge.ts'
import { expiredTask, type Progress, progressOf } from '../../../ledger/tasks/task-progress.ts'
import { type Resolved, resolvedTask, type TaskResolution } from '../../../ledger/tasks/task-resolution.ts'
import type {
  CreatedTask,
  Intended,
  Observed,
  PollAgain,
  PollClaim,
  TaskPage,
  TaskQuery,
  TaskStore,
} from '../../../ledger/tasks/task-store.ts'

/** The operations of a ledger that {@link MemoryTaskStore} needs. `MemoryLedger.holds` has them. */
export interface TaskMoney {
  /** Holds an amount; returns why it cannot be held, or undefined if it is held. */
  open(hold: Hold): HoldRefusal | undefined
  /** Charges once and closes the hold. */
  charge(
    charge: Hold & { readonly at: number; readonly usage: CallUsage; readonly cost?: bigint | null },
  ): void
  release(id: string): void
}

/** The operations on Idempotency-Keys that {@link MemoryTaskStore} needs. `MemoryIdempotencyStore` has them. */
export interface TaskClaims {
  /** Keeps a claim from expiring; returns false if the claim was lost. */
  pin(claim: IdempotencyClaim): boolean
  complete(claim: IdempotencyClaim, keepUntil: number): Promise<boolean>
  free(claim: IdempotencyClaim): void
}

/** The operation of a call log that {@link MemoryTaskStore} needs. `MemoryCallStore` has it. */
export interface TaskCalls {
  /** Changes an entry. */
  amend(id: string, change: (entry: CallLogEntry) => CallLogEntry): void
}

/** Options of {@link MemoryTaskStore}. */
export interface MemoryTaskStoreOptions {
  /** The ledger's holds, such as `new MemoryLedger(config).holds`. */
  money: TaskMoney
  /** The store of `idempotency`. Defaults to none: a key is free again if its create was not answered. */
  claims?: TaskClaims
  /** The store of the call log. Defaults to none: entries do not show the cost of a task. */
  calls?: TaskCalls
  /** Most ended tasks to hold; of the account with the most, the oldest are dropped. Defaults to 20000. */
  maxFinished?: number
}

const RULES: OptionRules<MemoryTaskStoreOptions> = {
  money: required(
    anObjectWith('the holds of a ledger, such as MemoryLedger.holds', 'open', 'charge', 'release'),
  ),
  claims: anObjectWith('the store of idempotency, such as a MemoryIdempotencyStore', 'pin', 'free'),
  calls: anObjectWith('the store of the call log, such as a MemoryCallStore', 'amend'),
  maxFinished: aNumber('at least 1', 1),
}

/**
 * A task store in this process's memory. It serves one process and ends with it; tasks that are still running then are
 * not charged.
 *
 * @throws TypeError at construction if an option is invalid.
 * @example
 * const ledger = new MemoryLedger(config)
 * const claims = new MemoryIdempotencyStore()
 * const tasks = new MemoryTaskStore({ money: ledger.holds, claims })
 */
export class MemoryTaskStore implements TaskStore {
  readonly settlesRecords = false
  readonly #money: TaskMoney
  readonly #claims: TaskClaims | undefined
  readonly #calls: TaskCalls | undefined
  readonly #kept: TaskTable

  constructor(options: MemoryTaskStoreOptions) {
    checkOptions('MemoryTaskStore', options, RULES)
    const { money, claims, calls, maxFinished = 20_000 } = options
    this.#money = money
    this.#claims = claims
    this.#calls = calls
    this.#kept = new TaskTable(maxFinished)
  }

  async intend(intent: TaskIntent): Promise<Intended> {
    const { id, requestId, account, key, budgets, hold, claim, answerBy } = intent
    const standing = this.#kept.get(id)
    if (standing) return { kind: 'held', task: standing.task }
    const refusal = this.#money.open({ id: requestId, account, key, budgets, amount: hold })
    if (refusal) return { kind: 'refused', ...refusal }
    if (claim && this.#claims?.pin(claim) === false) {
      this.#money.release(requestId)
      return { kind: 'claim_lost' }
    }
    const task = intendedTask(intent)
    this.#kept.add({ task, claim, answerBy, pollAt: null, pollOwner: null })
    return { kind: 'held', task }
  }

  async redirect(id: string, { answerBy, ...target }: CreateTarget): Promise<boolean> {
    const kept = this.#kept.get(id)
    if (kept?.task.state !== 'intended') return false
    kept.task = { ...kept.task, ...target }
    kept.answerBy = answerBy
    return true
  }

  async created(id: string, created: CreatedTask, at: number): Promise<VideoTask | undefined> {
    const kept = this.#kept.get(id)
    const taken = kept && acceptedTask(kept.task, created, at)
    if (!taken) return kept?.task
    const keepUntil = created.claim?.keepUntil ?? at + KEPT_KEY_MS
    if (kept.claim) void this.#claims?.complete(kept.claim, keepUntil)
    Object.assign(kept, { claim: null, answerBy: null, pollAt: at + FIRST_POLL_MS })
    this.#apply(kept, taken)
    return kept.task
  }

  async withdraw(id: string): Promise<void> {
    const kept = this.#kept.get(id)
    if (!kept || kept.task.upstreamId !== null || isFinished(kept.task)) return
    this.#money.release(kept.task.requestId)
    this.#kept.delete(id)
    if (kept.claim) this.#claims?.free(kept.claim)
  }

  async markUnresolved(id: string, at: number): Promise<void> {
    const kept = this.#kept.get(id)
    if (kept?.task.state === 'intended') this.#markUnresolved(kept, at)
  }

  async observe(
    id: string,
    observation: Observation,
    at: number,
    poll?: PollAgain,
  ): Promise<Observed | undefined> {
    const kept = this.#kept.get(id)
    if (!kept) return undefined
    const progress = progressOf(kept.task, observation, at)
    if (!progress) return { task: kept.task, finished: false }
    this.#apply(kept, progress)
    if (progress.money !== null) return { task: kept.task, finished: true }
    if (poll && kept.pollOwner === poll.owner) Object.assign(kept, { pollAt: poll.next, pollOwner: null })
    return { task: kept.task, finished: false }
  }

  async resolve(id: string, resolution: TaskResolution, origin: ChangeOrigin): Promise<Resolved | undefined> {
    const kept = this.#kept.get(id)
    if (!kept) return undefined
    const before = kept.task
    const progress = resolvedTask(before, resolution, origin.at)
    if (typeof progress === 'string') return { kind: progress, task: before }
    const { claim } = kept
    Object.assign(kept, { claim: null, answerBy: null })
    if (claim && progress.money === 'charge') void this.#claims?.complete(claim, origin.at + KEPT_KEY_MS)
    else if (claim) this.#claims?.free(claim)
    this.#apply(kept, progress)
    return { kind: 'resolved', task: kept.task }
  }

  async find(account: string, id: string): Promise<VideoTask | undefined> {
    const task = this.#kept.get(id)?.task
    return task?.account === account ? task : undefined
  }

  async list(query: TaskQuery, page: TaskPage): Promise<VideoTask[]> {
    return this.#kept.page(query, page)
  }

  async count(query: TaskQuery): Promise<number> {
    return this.#kept.matching(query).length
  }

  async remove(account: string, id: string): Promise<'removed' | 'unfinished' | 'absent'> {
    const task = await this.find(account, id)
    if (!task) return 'absent'
    if (!isFinished(task)) return 'unfinished'
    this.#kept.delete(id)
    return 'removed'
  }

  async claimDue({ owner, now, until, latest = Infinity, limit }: PollClaim): Promise<VideoTask[]> {
    return this.#kept.due(now, latest, limit).map((kept) => {
      Object.assign(kept, { pollAt: until, pollOwner: owner })
      return kept.task
    })
  }

  async postpone(id: string, { owner, next }: PollAgain): Promise<void> {
    const kept = this.#kept.get(id)
    if (kept?.pollOwner === owner) Object.assign(kept, { pollAt: next, pollOwner: null })
  }

  async markUnanswered(now: number, limit: number): Promise<VideoTask[]> {
    const late = this.#kept.unfinished().filter(({ answerBy }) => answerBy !== null && answerBy <= now)
    return late.slice(0, limit).map((kept) => this.#markUnresolved(kept, now))
  }

  async expire(createdBefore: number, at: number, keepUntil: number, limit: number): Promise<VideoTask[]> {
    const old = this.#kept.unfinished().filter(({ task }) => task.createdAt < createdBefore)
    return old.slice(0, limit).map((kept) => {
      if (kept.claim) void this.#claims?.complete(kept.claim, keepUntil)
      kept.claim = null
      kept.answerBy = null
      this.#apply(kept, { task: expiredTask(kept.task, at), money: 'release' })
      return kept.task
    })
  }

  async prune(finishedBefore: number, limit: number): Promise<number> {
    return this.#kept.prune(finishedBefore, limit)
  }

  #apply(kept: TaskRow, { task, money }: Progress): void {
    kept.task = task
    if (money === null) return
    const { requestId, account, key, charge } = task
    if (money === 'charge' && charge) {
      const at = task.finishedAt ?? Date.now()
      const { amount, cost = null } = charge
      this.#money.charge({ id: requestId, account, key, amount, cost, at, usage: usageOfTask(task) })
      this.#calls?.amend(requestId, (entry) => chargedEntry(entry, task))
    } else this.#money.release(requestId)
    Object.assign(kept, { pollAt: null, pollOwner: null })
    this.#kept.finish(kept)
  }

  #markUnresolved(kept: TaskRow, at: number): VideoTask {
    kept.task = { ...kept.task, state: 'unresolved', updatedAt: at }
    kept.answerBy = null
    return kept.task
  }
}

/** A task in memory, with the members that only the store needs. */
interface TaskRow {
  task: VideoTask
  /** The claim that is kept from expiring; null once it is completed or freed. */
  claim: IdempotencyClaim | null
  /** null once the create was answered. */
  answerBy: number | null
  /** null while the task is not polled. */
  pollAt: number | null
  pollOwner: string | null
}

/** The tasks of a process. The number of those that have ended is bounded. */
class TaskTable {
  readonly #open = new Map<string, TaskRow>()
  readonly #finished = new Map<string, TaskRow>()
  /** In the order in which the tasks ended. */
  readonly #order: FairQueue<string>

  constructor(maxFinished: number) {
    this.#order = new FairQueue({ maxItems: maxFinished })
  }

  get(id: string): TaskRow | undefined {
    return this.#open.get(id) ?? this.#finished.get(id)
  }

  add(kept: TaskRow): void {
    this.#open.set(kept.task.id, kept)
  }

  /** Moves a task to those that have ended; drops the oldest of the account with the most if there are too many. */
  finish(kept: TaskRow): void {
    const { id, account } = kept.task
    this.#open.delete(id)
    this.#finished.set(id, kept)
    for (const dropped of this.#order.add(account, id)) this.#finished.delete(dropped)
  }

  delete(id: string): void {
    const finished = this.#finished.get(id)
    if (finished) this.#order.delete(finished.task.account, id)
    this.#open.delete(id)
    this.#finished.delete(id)
  }

  prune(finishedBefore: number, limit: number): number {
    let pruned = 0
    for (const [id, { task }] of this.#finished) {
      if (pruned >= limit) break
      // The order is not quite that of the times: an end may be recorded late.
      if ((task.finishedAt ?? 0) >= finishedBefore) continue
      this.delete(id)
      pruned++
    }
    return pruned
  }

  unfinished(): TaskRow[] {
    return [...this.#open.values()]
  }

  /** Returns the open tasks that are to be polled by now, or only later than `latest`; those that have waited longest first. */
  due(now: number, latest: number, limit: number): TaskRow[] {
    const due = this.unfinished().filter(
      ({ pollAt }) => pollAt !== null && (pollAt <= now || pollAt > latest),
    )
    due.sort((one, other) => (one.pollAt ?? 0) - (other.pollAt ?? 0))
    return due.slice(0, limit)
  }

  page(query: TaskQuery, { order, limit, after, skip = 0 }: TaskPage): VideoTask[] {
    const newest = order === 'newest'
    const behind = ({ id }: VideoTask) => after === undefined || (newest ? id < after : id > after)
    const found = this.matching(query).filter(behind)
    found.sort((one, other) => (one.id < other.id === newest ? 1 : -1))
    return found.slice(skip, skip + limit)
  }

  matching({ account, states, model, protocol, ids, taken }: TaskQuery): VideoTask[] {
    const kept = [...this.#open.values(), ...this.#finished.values()]
    return kept
      .map(({ task }) => task)
      .filter(
        (task) =>
          (account === undefined || task.account === account) &&
          (states === undefined || states.includes(task.state)) &&
          (model === undefined || task.model === model) &&
          (protocol === undefined || task.protocol === protocol) &&
          (ids === undefined || ids.includes(task.id)) &&
          (taken !== true || task.upstreamId !== null),
      )
  }
}
