import { sql } from 'kysely'
import type { ChangeOrigin } from '../../../core/change-log/index.ts'
import type {
  CreatedTask,
  CreateTarget,
  Intended,
  Observation,
  Observed,
  PollAgain,
  PollClaim,
  Resolved,
  TaskIntent,
  TaskPage,
  TaskQuery,
  TaskResolution,
  TaskStore,
  VideoTask,
} from '../../../endpoints/video/index.ts'
import { checkDatabase } from '../driver/check-database.ts'
import { lockFreeRows } from '../driver/row-locks.ts'
import type { Database } from '../driver/tables.ts'
import { TaskCreates } from './sql-task-creates.ts'
import { TaskPolls } from './sql-task-polls.ts'
import { resolveTask } from './sql-task-resolution.ts'
import { TaskRows, toTask } from './sql-task-rows.ts'

/**
 * A task store in a database, for all processes that share it. It uses the money of a `SqlLedger`, the Idempotency-Keys
 * of a `SqlIdempotencyStore` and the entries of a `SqlCallStore` in the same database.
 *
 * @example
 * const db = await openDatabase('postgres://gateway:secret@db.internal/gateway')
 * const tasks = new SqlTaskStore(db)
 */
export class SqlTaskStore implements TaskStore {
  readonly settlesRecords = true
  readonly #db: Database
  readonly #rows: TaskRows
  readonly #creates: TaskCreates
  readonly #polls: TaskPolls

  constructor(db: Database) {
    checkDatabase('SqlTaskStore', db)
    const rows = new TaskRows(db)
    this.#db = db
    this.#rows = rows
    this.#creates = new TaskCreates(db, rows)
    this.#polls = new TaskPolls(db, rows)
  }

  intend(intent: TaskIntent): Promise<Intended> {
    return this.#creates.intend(intent)
  }

  redirect(id: string, target: CreateTarget): Promise<boolean> {
    return this.#creates.redirect(id, target)
  }

  created(id: string, created: CreatedTask, at: number): Promise<VideoTask | undefined> {
    return this.#creates.created(id, created, at)
  }

  withdraw(id: string): Promise<void> {
    return this.#creates.withdraw(id)
  }

  async markUnresolved(id: string, at: number): Promise<void> {
    await this.#creates.markUnresolved(id, at)
  }

  observe(id: string, observation: Observation, at: number, poll?: PollAgain): Promise<Observed | undefined> {
    return this.#polls.observe(id, observation, at, poll)
  }

  resolve(id: string, resolution: TaskResolution, origin: ChangeOrigin): Promise<Resolved | undefined> {
    return resolveTask(this.#rows, id, resolution, origin)
  }

  async find(account: string, id: string): Promise<VideoTask | undefined> {
    const row = await this.#db
      .selectFrom('video_tasks')
      .selectAll()
      .where('id', '=', id)
      .where('account', '=', account)
      .executeTakeFirst()
    return row && toTask(row)
  }

  async list(query: TaskQuery, page: TaskPage): Promise<readonly VideoTask[]> {
    const { order, limit, after, skip = 0 } = page
    const newest = order === 'newest'
    let tasks = tasksOf(this.#db, query)
      .selectAll()
      .orderBy('id', newest ? 'desc' : 'asc')
      .limit(limit)
    if (after !== undefined) tasks = tasks.where('id', newest ? '<' : '>', after)
    if (skip > 0) tasks = tasks.offset(skip)
    return (await tasks.execute()).map(toTask)
  }

  async count(query: TaskQuery): Promise<number> {
    const { count } = await tasksOf(this.#db, query)
      .select(({ fn }) => fn.countAll<bigint>().as('count'))
      .executeTakeFirstOrThrow()
    return Number(count)
  }

  async remove(account: string, id: string): Promise<'removed' | 'unfinished' | 'absent'> {
    const { numDeletedRows } = await this.#db
      .deleteFrom('video_tasks')
      .where('id', '=', id)
      .where('account', '=', account)
      .where('finished_at', 'is not', null)
      .executeTakeFirst()
    if (numDeletedRows > 0n) return 'removed'
    return (await this.find(account, id)) ? 'unfinished' : 'absent'
  }

  claimDue(claim: PollClaim): Promise<readonly VideoTask[]> {
    return this.#polls.claimDue(claim)
  }

  postpone(id: string, again: PollAgain): Promise<void> {
    return this.#polls.postpone(id, again)
  }

  markUnanswered(now: number, limit: number): Promise<readonly VideoTask[]> {
    return this.#creates.markUnanswered(now, limit)
  }

  async expire(
    createdBefore: number,
    at: number,
    keepUntil: number,
    limit: number,
  ): Promise<readonly VideoTask[]> {
    const ended: VideoTask[] = []
    const failed = new Map<string, unknown>()
    // Where none of the oldest can be ended, the next ones have their turn.
    for (let isFull = true; isFull && ended.length === 0 && failed.size < limit; ) {
      const open = await this.#polls.open(createdBefore, limit, [...failed.keys()])
      isFull = open.length === limit
      for (const { id, account } of open) {
        // Its rows may be locked, for which each of its tasks would wait.
        if (failed.has(account)) continue
        try {
          const task = await this.#polls.expire(id, at, keepUntil)
          if (task) ended.push(task)
        } catch (error) {
          failed.set(account, error)
        }
      }
    }
    const [error] = failed.values()
    if (failed.size > 0 && ended.length === 0) throw error
    return ended
  }

  async prune(finishedBefore: number, limit: number): Promise<number> {
    const old = this.#db
      .selectFrom('video_tasks')
      .select('id')
      .where('finished_at', '<', BigInt(finishedBefore))
      .orderBy('finished_at')
      .limit(limit)
    const { numDeletedRows } = await this.#db
      .deleteFrom('video_tasks')
      .where('id', 'in', lockFreeRows(this.#db, old))
      .executeTakeFirst()
    return Number(numDeletedRows)
  }
}

function tasksOf(db: Database, { account, states, model, protocol, ids, taken }: TaskQuery) {
  let tasks = db.selectFrom('video_tasks')
  if (account !== undefined) tasks = tasks.where('account', '=', account)
  if (states?.length) tasks = tasks.where('state', 'in', states)
  if (model !== undefined) tasks = tasks.where('model', '=', model)
  if (protocol !== undefined) tasks = tasks.where('protocol', '=', protocol)
  if (ids?.length) tasks = tasks.where('id', 'in', ids)
  // Postgres has no empty list.
  if (states?.length === 0 || ids?.length === 0) return db.selectFrom('video_tasks').where(sql.lit(false))
  if (taken === true) tasks = tasks.where('upstream_id', 'is not', null)
  return tasks
}
