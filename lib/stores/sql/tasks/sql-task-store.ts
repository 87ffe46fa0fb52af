import { sql } from 'kysely'
import type { IdempotencyClaim } from '../../../core/call/index.ts'
import type { ChangeOrigin } from '../../../core/change-log/index.ts'
import { PINNED_UNTIL } from '../../../core/idempotency/index.ts'
import { shareOfEntry } from '../../../core/usage/index.ts'
import { acceptedTask, FIRST_POLL_MS, intendedTask, KEPT_KEY_MS } from '../../../ledger/tasks/new-task.ts'
import type { CreateTarget, Observation, TaskIntent, VideoTask } from '../../../ledger/tasks/task.ts'
import { chargedEntry } from '../../../ledger/tasks/task-charge.ts'
import { expiredTask, progressOf } from '../../../ledger/tasks/task-progress.ts'
import {
  type Resolved,
  resolutionChange,
  resolvedTask,
  type TaskResolution,
} from '../../../ledger/tasks/task-resolution.ts'
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
import { changeWrite } from '../accounts/sql-change-log.ts'
import { checkDatabase } from '../driver/database.ts'
import { lockFreeRows } from '../driver/row-locks.ts'
import { RowStatement, type RowWrite } from '../driver/row-statement.ts'
import type { Database, VideoTasksTable } from '../driver/tables.ts'
import { writePlanned, writeTogether } from '../driver/write-together.ts'
import { openHold, openKeyOf, refusalOf, releaseHold } from '../ledger/sql-ledger-holds.ts'
import { UsageTally } from '../usage/usage-tally.ts'
import {
  TaskRows,
  taskRow,
  toColumns,
  toTask,
  UNLESS_WITHDRAWN,
  WITHDRAWN,
  WRITE_TASKS,
} from './task-rows.ts'

/** Stands for a task within a transaction. It is never committed. */
const NO_TASK: Omit<VideoTasksTable, 'id'> = {
  request_id: '',
  account: '',
  key: null,
  model: '',
  protocol: 'openai',
  line: '',
  upstream_id: null,
  state: 'intended',
  hold: 0n,
  detail: '{}',
  claim_id: null,
  claim_owner: null,
  answer_by: null,
  poll_at: null,
  poll_owner: null,
  missing_since: null,
  created_at: 0n,
  updated_at: 0n,
  finished_at: null,
}

/** An intent is on its way for no longer. */
const WITHDRAWN_MS = 600_000

/** Keeps the record of an Idempotency-Key from expiring until it is completed or freed. */
const PIN_CLAIMS = RowStatement.update(
  'idempotency',
  { id: 'text', owner: 'text' },
  `expires_at = ${PINNED_UNTIL}`,
  `found.id = given.id and found.owner = given.owner and found.state = 'running'`,
)

const DELETE_INTENTS = RowStatement.delete(
  'video_tasks',
  { id: 'text' },
  'found.id = given.id and found.upstream_id is null and found.finished_at is null',
  { loose: false },
)

const NOTE_WITHDRAWN = RowStatement.insert(
  'idempotency',
  { id: 'text', owner: 'text', fingerprint: 'text', state: 'text', expires_at: 'bigint' },
  'on conflict (id) do update set expires_at = excluded.expires_at',
)

/**
 * Returns the writes that withdraw an intent whose caller no longer waits. If it is just being committed, its row is not
 * visible yet, but an insert with the same id waits for it, and fails; if it comes later, it fails.
 */
function withdrawnLate(id: string): RowWrite[] {
  const until = Date.now() + WITHDRAWN_MS
  return [
    { statement: WRITE_TASKS, rows: [taskRow({ ...NO_TASK, id })] },
    { statement: DELETE_INTENTS, rows: [[id]] },
    { statement: NOTE_WITHDRAWN, rows: [[WITHDRAWN + id, id, '', 'completed', until]] },
  ]
}

const NOT_POLLED = { poll_at: null, poll_owner: null } as const

/** Returns the poll columns. Only the process that has claimed a task sets its next poll. */
function pollColumns(row: VideoTasksTable, poll: PollAgain | undefined): Partial<VideoTasksTable> {
  if (!poll || row.poll_owner !== poll.owner) return {}
  return { poll_at: BigInt(poll.next), poll_owner: null }
}

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

  constructor(db: Database) {
    checkDatabase('SqlTaskStore', db)
    this.#db = db
    this.#rows = new TaskRows(db)
  }

  /** Almost always takes one round trip, in which the wallets are locked while they are written only. */
  async intend(intent: TaskIntent): Promise<Intended> {
    const { requestId, account, key, budgets, hold: amount, claim } = intent
    const hold = { id: requestId, account, key, budgets, amount }
    const task = intendedTask(intent)
    const row = {
      ...toColumns(task),
      claim_id: claim?.id ?? null,
      claim_owner: claim?.owner ?? null,
      answer_by: BigInt(intent.answerBy),
      poll_at: null,
      poll_owner: null,
    }
    const writes = [
      // First, so that who withdraws it meanwhile waits for it.
      { statement: WRITE_TASKS, rows: [taskRow(row)] },
      { statement: UNLESS_WITHDRAWN, rows: [[task.id]] },
      ...openHold(hold),
      { statement: PIN_CLAIMS, rows: claim ? [[claim.id, claim.owner]] : [] },
    ]
    const held: Intended = { kind: 'held', task }
    if (await writeTogether(this.#db, writes)) return held
    return writePlanned<Intended>(this.#db, async () => {
      const [standing, refusal, isOwned] = await Promise.all([
        this.#rows.find(intent.id),
        refusalOf(this.#db, hold),
        claim === null || this.#isRunning(claim),
      ])
      if (standing) return { writes: [], result: { kind: 'held', task: toTask(standing.row) } }
      if (refusal) return { writes: [], result: { kind: 'refused', ...refusal } }
      return isOwned
        ? { writes: [openKeyOf(hold), ...writes], result: held }
        : { writes: [], result: { kind: 'claim_lost' } }
    })
  }

  async #isRunning({ id, owner }: IdempotencyClaim): Promise<boolean> {
    const claims = this.#db.selectFrom('idempotency').select('id').where('id', '=', id)
    const own = claims.where('owner', '=', owner).where('state', '=', 'running')
    return (await own.executeTakeFirst()) !== undefined
  }

  async redirect(id: string, { answerBy, ...target }: CreateTarget): Promise<boolean> {
    const redirected = await this.#rows.revise(id, (found) => {
      if (found.row.state !== 'intended') return { writes: [], result: false }
      const task = { ...toTask(found.row), ...target }
      return { writes: [this.#rows.save(found, task, { answer_by: BigInt(answerBy) })], result: true }
    })
    return redirected ?? false
  }

  created(id: string, created: CreatedTask, at: number): Promise<VideoTask | undefined> {
    const rows = this.#rows
    return rows.revise(id, (found) => {
      const before = toTask(found.row)
      const taken = acceptedTask(before, created, at)
      if (!taken) return { writes: [], result: before }
      const { task, money } = taken
      const { entry } = created
      const share = entry && shareOfEntry(entry)
      const usage = new UsageTally(share ? [share] : [])
      const over = {
        answer_by: null,
        claim_id: null,
        claim_owner: null,
        poll_at: money === null ? BigInt(at + FIRST_POLL_MS) : null,
      }
      const writes = [
        rows.save(found, task, over),
        ...rows.settle(found, taken, at, usage),
        rows.completeClaim(found, created.claim?.keepUntil ?? at + KEPT_KEY_MS),
        ...(entry ? rows.log(chargedEntry(entry, task)) : []),
        usage.write(),
      ]
      return { writes, result: task }
    })
  }

  withdraw(id: string): Promise<void> {
    return writePlanned(this.#db, async () => {
      const found = await this.#rows.find(id)
      if (!found) return { writes: withdrawnLate(id), result: undefined }
      const { row, hold } = found
      const isOpen = row.upstream_id === null && row.finished_at === null
      const released = () => [
        { statement: DELETE_INTENTS, rows: [[id]] },
        ...releaseHold(hold, { requestId: row.request_id, account: row.account, key: row.key }),
        this.#rows.freeClaim(found),
      ]
      return { writes: isOpen ? released() : [], result: undefined }
    })
  }

  async markUnresolved(id: string, at: number): Promise<void> {
    await this.#db
      .updateTable('video_tasks')
      .set({ state: 'unresolved', answer_by: null, updated_at: BigInt(at) })
      .where('id', '=', id)
      .where('state', '=', 'intended')
      .execute()
  }

  async markUnanswered(now: number, limit: number): Promise<VideoTask[]> {
    const unanswered = this.#db
      .selectFrom('video_tasks')
      .select('id')
      .where('answer_by', '<=', BigInt(now))
      .orderBy('answer_by')
      .limit(limit)
    const rows = await this.#db
      .with('free', () => lockFreeRows(this.#db, unanswered))
      .updateTable('video_tasks')
      .set({ state: 'unresolved', answer_by: null, updated_at: BigInt(now) })
      .where('id', 'in', (eb) => eb.selectFrom('free').select('id'))
      .where('state', '=', 'intended')
      .returningAll()
      .execute()
    return rows.map(toTask)
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
    const rows = await db
      .with('due', () => due)
      .with('too_late', () => tooLate)
      .updateTable('video_tasks')
      .set({ poll_at: BigInt(until), poll_owner: owner })
      .where('id', 'in', (eb) =>
        eb.selectFrom('due').select('id').unionAll(eb.selectFrom('too_late').select('id')).limit(limit),
      )
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

  /** Its money, its Idempotency-Key and the record of the change go in one transaction. */
  resolve(id: string, resolution: TaskResolution, origin: ChangeOrigin): Promise<Resolved | undefined> {
    const rows = this.#rows
    return rows.revise<Resolved>(id, async (found) => {
      const before = toTask(found.row)
      const progress = resolvedTask(before, resolution, origin.at)
      if (typeof progress === 'string') return { writes: [], result: { kind: progress, task: before } }
      const { task, money } = progress
      const usage = new UsageTally()
      const over = { poll_at: null, poll_owner: null, answer_by: null, claim_id: null, claim_owner: null }
      const writes = [
        rows.save(found, task, over),
        ...rows.settle(found, progress, origin.at, usage),
        ...(money === 'charge'
          ? [rows.completeClaim(found, origin.at + KEPT_KEY_MS), ...(await rows.logCharge(task))]
          : [rows.freeClaim(found)]),
        changeWrite(resolutionChange(before, task, origin)),
        usage.write(),
      ]
      return { writes, result: { kind: 'resolved', task } }
    })
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
      const open = await this.#open(createdBefore, limit, [...failed.keys()])
      isFull = open.length === limit
      for (const { id, account } of open) {
        // Its rows may be locked, for which each of its tasks would wait.
        if (failed.has(account)) continue
        try {
          const task = await this.#expire(id, at, keepUntil)
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

  /** Returns the ids of tasks that have not ended, and their accounts, without those of some accounts. */
  #open(
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
  #expire(id: string, at: number, keepUntil: number): Promise<VideoTask | undefined> {
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

  async prune(finishedBefore: number, limit: number): Promise<number> {
    const old = this.#db
      .selectFrom('video_tasks')
      .select('id')
      .where('finished_at', '<', BigInt(finishedBefore))
      .orderBy('finished_at')
      .limit(limit)
    const { numDeletedRows } = await this.#db
      .with('free', () => lockFreeRows(this.#db, old))
      .deleteFrom('video_tasks')
      .where('id', 'in', (eb) => eb.selectFrom('free').select('id'))
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
