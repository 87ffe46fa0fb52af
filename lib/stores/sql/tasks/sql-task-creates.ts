import type { IdempotencyClaim } from '../../../core/call/index.ts'
import { shareOfEntry } from '../../../core/usage/index.ts'
import type { CreatedTask, Intended, TaskIntent, VideoTask } from '../../../endpoints/video/index.ts'
import {
  FIRST_POLL_MS,
  intendedTask,
  KEPT_KEY_MS,
  takenTask,
} from '../../../endpoints/video/tasks/new-task.ts'
import { chargedEntry } from '../../../endpoints/video/tasks/task-charge.ts'
import { PINNED_UNTIL } from '../../../middleware/idempotency/idempotency-store.ts'
import { lockFreeRows } from '../driver/row-locks.ts'
import type { Database, VideoTasksTable } from '../driver/tables.ts'
import { FREE_CLAIMS } from '../ledger/settlement-statements.ts'
import { addUsage, UsageTally } from '../usage/usage-tally.ts'
import { type TaskRows, toColumns, toTask } from './sql-task-rows.ts'

/** A placeholder for a task within a transaction. It is never committed. */
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
  finished_at: 0n,
}

/** Writes the creates of tasks: intended, redirected, created, withdrawn, in doubt. */
export class TaskCreates {
  readonly #rows: TaskRows

  constructor(rows: TaskRows) {
    this.#rows = rows
  }

  async intend(trx: Database, intent: TaskIntent): Promise<Intended> {
    const { holds } = this.#rows
    const { requestId, account, key, budgets, hold: amount } = intent
    const hold = { id: requestId, account, key, budgets, amount }
    const wallets = await holds.lock(trx, hold)
    const standing = await trx
      .selectFrom('video_tasks')
      .selectAll()
      .where('id', '=', intent.id)
      .executeTakeFirst()
    if (standing) return { kind: 'held', task: toTask(standing) }
    const refusal = holds.judge(wallets, hold)
    if (refusal) return { kind: 'refused', ...refusal }
    const { claim, answerBy } = intent
    if (claim && !(await pinClaim(trx, claim))) return { kind: 'claim_lost' }
    await holds.open(trx, wallets, hold)
    const task = intendedTask(intent)
    await trx
      .insertInto('video_tasks')
      .values({
        ...toColumns(task),
        claim_id: claim?.id ?? null,
        claim_owner: claim?.owner ?? null,
        answer_by: BigInt(answerBy),
        poll_at: null,
        poll_owner: null,
      })
      .execute()
    return { kind: 'held', task }
  }

  async redirect(
    trx: Database,
    id: string,
    { answerBy, ...target }: Pick<VideoTask, 'line' | 'upstreamModel' | 'price'> & { answerBy: number },
  ): Promise<boolean> {
    const row = await this.#rows.lock(trx, id)
    if (row?.state !== 'intended') return false
    await this.#rows.save(trx, { ...toTask(row), ...target }, { answer_by: BigInt(answerBy) })
    return true
  }

  async created(trx: Database, id: string, created: CreatedTask, at: number): Promise<VideoTask | undefined> {
    const row = await this.#rows.lock(trx, id)
    if (!row) return undefined
    const before = toTask(row)
    const taken = takenTask(before, created, at)
    if (!taken) return before
    const { task, money } = taken
    await this.#rows.settle(trx, taken, at)
    await this.#rows.completeClaim(trx, row, created.claim?.keepUntil ?? at + KEPT_KEY_MS)
    const { entry } = created
    if (entry) await this.#rows.log(trx, chargedEntry(entry, task))
    await this.#rows.save(trx, task, {
      answer_by: null,
      claim_id: null,
      claim_owner: null,
      poll_at: money === null ? BigInt(at + FIRST_POLL_MS) : null,
    })
    const share = entry && shareOfEntry(entry)
    if (share) await addUsage(trx, new UsageTally([share]))
    return task
  }

  async withdraw(trx: Database, id: string): Promise<void> {
    const row = (await this.#rows.lock(trx, id)) ?? (await this.#lockLate(trx, id))
    if (row && row.upstream_id === null && row.finished_at === null) {
      await this.#rows.holds.release(trx, row.request_id, row)
      await trx.deleteFrom('video_tasks').where('id', '=', id).execute()
      const { claim_id, claim_owner: owner } = row
      if (claim_id !== null && owner !== null) await FREE_CLAIMS.run(trx, [[claim_id, owner]])
    }
  }

  /**
   * Locks the row of an intent that is just being committed without anybody waiting. The row is not visible yet, but an
   * insert with the same id waits for it.
   */
  async #lockLate(trx: Database, id: string): Promise<VideoTasksTable | undefined> {
    const free = await trx
      .insertInto('video_tasks')
      .values({ ...NO_TASK, id })
      .onConflict((conflict) => conflict.column('id').doNothing())
      .returning('id')
      .executeTakeFirst()
    if (!free) return this.#rows.lock(trx, id)
    await trx.deleteFrom('video_tasks').where('id', '=', id).execute()
    return undefined
  }

  async doubt(db: Database, id: string, at: number): Promise<void> {
    await db
      .updateTable('video_tasks')
      .set({ state: 'unresolved', answer_by: null, updated_at: BigInt(at) })
      .where('id', '=', id)
      .where('state', '=', 'intended')
      .execute()
  }

  async doubtUnanswered(db: Database, now: number, limit: number): Promise<VideoTask[]> {
    const unanswered = db
      .selectFrom('video_tasks')
      .select('id')
      .where('answer_by', '<=', BigInt(now))
      .orderBy('answer_by')
      .limit(limit)
    const rows = await db
      .updateTable('video_tasks')
      .set({ state: 'unresolved', answer_by: null, updated_at: BigInt(now) })
      .where('id', 'in', lockFreeRows(db, unanswered))
      .where('state', '=', 'intended')
      .returningAll()
      .execute()
    return rows.map(toTask)
  }
}

/**
 * Keeps the record of an Idempotency-Key from expiring until it is completed or freed.
 *
 * @returns false if the owner has lost the claim.
 */
async function pinClaim(trx: Database, { id, owner }: IdempotencyClaim): Promise<boolean> {
  const { numUpdatedRows } = await trx
    .updateTable('idempotency')
    .set({ expires_at: BigInt(PINNED_UNTIL) })
    .where('id', '=', id)
    .where('owner', '=', owner)
    .where('state', '=', 'running')
    .executeTakeFirst()
  return numUpdatedRows > 0n
}
