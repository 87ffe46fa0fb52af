import type { IdempotencyClaim } from '../../../core/call/index.ts'
import { shareOfEntry } from '../../../core/usage/index.ts'
import type {
  CreatedTask,
  CreateTarget,
  Intended,
  TaskIntent,
  VideoTask,
} from '../../../endpoints/video/index.ts'
import {
  acceptedTask,
  FIRST_POLL_MS,
  intendedTask,
  KEPT_KEY_MS,
} from '../../../endpoints/video/tasks/new-task.ts'
import { chargedEntry } from '../../../endpoints/video/tasks/task-charge.ts'
import { PINNED_UNTIL } from '../../../middleware/idempotency/idempotency-store.ts'
import { lockFreeRows } from '../driver/row-locks.ts'
import { RowStatement, type RowWrite } from '../driver/row-statement.ts'
import type { Database, VideoTasksTable } from '../driver/tables.ts'
import { writePlanned, writeTogether } from '../driver/write-together.ts'
import { openHold, refusalOf, releaseHold } from '../ledger/sql-ledger-holds.ts'
import { UsageTally } from '../usage/usage-tally.ts'
import { type TaskRows, toColumns, toTask } from './sql-task-rows.ts'
import { taskRow, UNLESS_WITHDRAWN, WITHDRAWN, WRITE_TASKS } from './task-statements.ts'

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

/** Writes the creates of tasks: intended, redirected, created, withdrawn, in doubt. */
export class TaskCreates {
  readonly #db: Database
  readonly #rows: TaskRows

  constructor(db: Database, rows: TaskRows) {
    this.#db = db
    this.#rows = rows
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
      return isOwned ? { writes, result: held } : { writes: [], result: { kind: 'claim_lost' } }
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
      .updateTable('video_tasks')
      .set({ state: 'unresolved', answer_by: null, updated_at: BigInt(now) })
      .where('id', 'in', lockFreeRows(this.#db, unanswered))
      .where('state', '=', 'intended')
      .returningAll()
      .execute()
    return rows.map(toTask)
  }
}

/**
 * Returns the writes that withdraw an intent for which nobody waits any more. If it is just being committed, its row is not
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
