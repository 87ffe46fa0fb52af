import type {
  Observation,
  Observed,
  PollAgain,
  PollClaim,
  VideoTask,
} from '../../../endpoints/video/index.ts'
import { expiredTask, progressOf } from '../../../endpoints/video/tasks/task-progress.ts'
import { lockFreeRows } from '../driver/row-locks.ts'
import type { Database, VideoTasksTable } from '../driver/tables.ts'
import { UsageTally } from '../usage/usage-tally.ts'
import { type TaskRows, toTask } from './sql-task-rows.ts'

/** Polls, observes and ends tasks that a line has. */
export class TaskPolls {
  readonly #db: Database
  readonly #rows: TaskRows

  constructor(db: Database, rows: TaskRows) {
    this.#db = db
    this.#rows = rows
  }

  observe(id: string, observation: Observation, at: number, poll?: PollAgain): Promise<Observed | undefined> {
    const rows = this.#rows
    return rows.revise<Observed>(id, async (found) => {
      const before = toTask(found.row)
      const progress = progressOf(before, observation, at)
      if (!progress) return { writes: [], result: { task: before, finished: false } }
      const { task, money } = progress
      const usage = new UsageTally()
      const writes = [
        rows.save(found, task, money === null ? pollColumns(found.row, poll) : NOT_POLLED),
        ...rows.settle(found, progress, at, usage),
        ...(money === 'charge' ? await rows.logCharge(task) : []),
        usage.write(),
      ]
      return { writes, result: { task, finished: money !== null } }
    })
  }

  /** Claims due tasks in one statement, so that concurrent processes get different tasks. */
  async claimDue({
    owner,
    now,
    until,
    latest = Number.MAX_SAFE_INTEGER,
    limit,
  }: PollClaim): Promise<VideoTask[]> {
    const db = this.#db
    const tasks = db.selectFrom('video_tasks').select('id').orderBy('poll_at').limit(limit)
    // One by one: a condition on both would have all tasks between them read, too.
    const due = lockFreeRows(db, tasks.where('poll_at', '<=', BigInt(now)))
    const tooLate = lockFreeRows(db, tasks.where('poll_at', '>', BigInt(latest)))
    const ids = db
      .selectFrom(due.as('due'))
      .select('id')
      .unionAll(db.selectFrom(tooLate.as('too_late')).select('id'))
      .limit(limit)
    const rows = await db
      .updateTable('video_tasks')
      .set({ poll_at: BigInt(until), poll_owner: owner })
      .where('id', 'in', ids)
      .returningAll()
      .execute()
    return rows.map(toTask)
  }

  async postpone(id: string, { owner, next }: PollAgain): Promise<void> {
    await this.#db
      .updateTable('video_tasks')
      .set({ poll_at: BigInt(next), poll_owner: null })
      .where('id', '=', id)
      .where('poll_owner', '=', owner)
      .execute()
  }

  /** Returns the ids of tasks that have not ended, and their accounts, without those of some accounts. */
  open(
    createdBefore: number,
    limit: number,
    without: readonly string[],
  ): Promise<{ id: string; account: string }[]> {
    return this.#db
      .selectFrom('video_tasks')
      .select(['id', 'account'])
      .where('finished_at', 'is', null)
      .where('created_at', '<', BigInt(createdBefore))
      .where('account', 'not in', [...without, ''])
      .orderBy('created_at')
      .limit(limit)
      .execute()
  }

  /** Expires a task; returns undefined if it has ended already. */
  expire(id: string, at: number, keepUntil: number): Promise<VideoTask | undefined> {
    const rows = this.#rows
    return rows.revise<VideoTask | undefined>(id, (found) => {
      if (found.row.finished_at !== null) return { writes: [], result: undefined }
      const task = expiredTask(toTask(found.row), at)
      const writes = [
        rows.save(found, task, { ...NOT_POLLED, answer_by: null, claim_id: null, claim_owner: null }),
        ...rows.settle(found, { task, money: 'release' }, at, new UsageTally()),
        rows.completeClaim(found, keepUntil),
      ]
      return { writes, result: task }
    })
  }
}

const NOT_POLLED = { poll_at: null, poll_owner: null } as const

/** Returns the poll columns. Only the process that has claimed a task sets its next poll. */
function pollColumns(row: VideoTasksTable, poll: PollAgain | undefined): Partial<VideoTasksTable> {
  if (!poll || row.poll_owner !== poll.owner) return {}
  return { poll_at: BigInt(poll.next), poll_owner: null }
}
