import type { IdempotencyClaim } from '../../../core/call/index.ts'
import { FairQueue } from '../../../core/fair-queue/index.ts'
import type { VideoTask } from '../../../ledger/tasks/task.ts'
import type { TaskPage, TaskQuery } from '../../../ledger/tasks/task-store.ts'

/** A task in memory, with the members that only the store needs. */
export interface TaskRow {
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
export class TaskTable {
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
