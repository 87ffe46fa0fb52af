import type {
  Observation,
  Observed,
  PollAgain,
  PollClaim,
  VideoTask,
} from '../../../endpoints/video/index.ts'
import { expiredTask, hasChanged, progressOf } from '../../../endpoints/video/tasks/task-progress.ts'
import { lockFreeRows } from '../driver/row-locks.ts'
import type { Database, VideoTasksTable } from '../driver/tables.ts'
import { type TaskRows, toTask } from './sql-task-rows.ts'

/** Polls, observes and ends tasks that a line has. */
export class TaskPolls {
  readonly #rows: TaskRows

  constructor(rows: TaskRows) {
    this.#rows = rows
  }

  async observe(
    trx: Database,
    id: string,
    observation: Observation,
    at: number,
    poll?: PollAgain,
  ): Promise<Observed | undefined> {
    const row = await this.#rows.lock(trx, id)
    if (!row) return undefined
    const before = toTask(row)
    const progress = progressOf(before, observation, at)
    if (!progress) return { task: before, result: 'unchanged' }
    const { task, money } = progress
    await this.#rows.settle(trx, progress, at)
    if (money === 'charge') await this.#rows.logCharge(trx, task)
    await this.#rows.save(trx, task, money === null ? pollColumns(row, poll) : NOT_POLLED)
    if (money !== null) return { task, result: 'finished' }
    return { task, result: hasChanged(before, task) ? 'changed' : 'unchanged' }
  }

  /** Claims due tasks in one statement, so that concurrent processes get different tasks. */
  async claimDue(db: Database, { owner, now, until, limit }: PollClaim): Promise<VideoTask[]> {
    const due = db
      .selectFrom('video_tasks')
      .select('id')
      .where('poll_at', '<=', BigInt(now))
      .orderBy('poll_at')
      .limit(limit)
    const rows = await db
      .updateTable('video_tasks')
      .set({ poll_at: BigInt(until), poll_owner: owner })
      .where('id', 'in', lockFreeRows(db, due))
      .returningAll()
      .execute()
    return rows.map(toTask)
  }

  async putOff(db: Database, id: string, { owner, next }: PollAgain): Promise<void> {
    await db
      .updateTable('video_tasks')
      .set({ poll_at: BigInt(next), poll_owner: null })
      .where('id', '=', id)
      .where('poll_owner', '=', owner)
      .execute()
  }

  /** Returns the ids of tasks that have not ended. */
  async open(db: Database, createdBefore: number, limit: number): Promise<string[]> {
    const rows = await db
      .selectFrom('video_tasks')
      .select('id')
      .where('finished_at', 'is', null)
      .where('created_at', '<', BigInt(createdBefore))
      .orderBy('created_at')
      .limit(limit)
      .execute()
    return rows.map(({ id }) => id)
  }

  /** Expires a task; returns undefined if it has ended already. */
  async expire(trx: Database, id: string, at: number, keepUntil: number): Promise<VideoTask | undefined> {
    const row = await this.#rows.lock(trx, id)
    if (!row || row.finished_at !== null) return undefined
    const task = expiredTask(toTask(row), at)
    await this.#rows.settle(trx, { task, money: 'release' }, at)
    await this.#rows.completeClaim(trx, row, keepUntil)
    await this.#rows.save(trx, task, { ...NOT_POLLED, answer_by: null, claim_id: null, claim_owner: null })
    return task
  }
}

const NOT_POLLED = { poll_at: null, poll_owner: null } as const

/** Returns the poll columns. Only the process that has claimed a task sets its next poll. */
function pollColumns(row: VideoTasksTable, poll: PollAgain | undefined): Partial<VideoTasksTable> {
  if (!poll || row.poll_owner !== poll.owner) return {}
  return { poll_at: BigInt(poll.next), poll_owner: null }
}
