import type { IdempotencyClaim } from '../../../core/call/index.ts'
import type { VideoTask } from './task.ts'
import type { TaskPage, TaskQuery } from './task-store.ts'

/** A task in memory, and what the store alone knows of it. */
export interface TaskRow {
  task: VideoTask
  /** Kept from being free; null once that is settled. */
  claim: IdempotencyClaim | null
  /** null once the create was answered. */
  answerBy: number | null
  /** null where it is not polled. */
  pollAt: number | null
  pollOwner: string | null
}

/** The tasks of a process, of which those that are over are bounded. */
export class TaskTable {
  readonly #maxFinished: number
  readonly #open = new Map<string, TaskRow>()
  /** In the order in which they ended. */
  readonly #finished = new Map<string, TaskRow>()
  /** One for good: a new one would each time walk over all that was deleted before. */
  readonly #oldest = this.#finished.keys()

  constructor(maxFinished: number) {
    this.#maxFinished = maxFinished
  }

  get(id: string): TaskRow | undefined {
    return this.#open.get(id) ?? this.#finished.get(id)
  }

  add(kept: TaskRow): void {
    this.#open.set(kept.task.id, kept)
  }

  /** It is over; the oldest that is gives way. */
  finish(kept: TaskRow): void {
    const { id } = kept.task
    this.#open.delete(id)
    this.#finished.set(id, kept)
    if (this.#finished.size <= this.#maxFinished) return
    const oldest = this.#oldest.next().value
    if (oldest !== undefined) this.#finished.delete(oldest)
  }

  delete(id: string): void {
    this.#open.delete(id)
    this.#finished.delete(id)
  }

  prune(finishedBefore: number, limit: number): number {
    let pruned = 0
    for (const [id, { task }] of this.#finished) {
      if (pruned >= limit) break
      // Not in the order of their times: what ended is told late, now and then.
      if ((task.finishedAt ?? 0) >= finishedBefore) continue
      this.#finished.delete(id)
      pruned++
    }
    return pruned
  }

  unfinished(): TaskRow[] {
    return [...this.#open.values()]
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
