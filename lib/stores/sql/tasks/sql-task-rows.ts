import type { CallLogEntry } from '../../../core/call/index.ts'
import type { VideoTask } from '../../../endpoints/video/index.ts'
import { basisOf, chargedEntry, usageOfTask } from '../../../endpoints/video/tasks/task-charge.ts'
import type { Progress } from '../../../endpoints/video/tasks/task-progress.ts'
import { labelRows, WRITE_LABELS } from '../calls/call-labels.ts'
import { SqlCallStore } from '../calls/sql-call-store.ts'
import { cellsOf } from '../driver/columns.ts'
import { toBigint, toNumber } from '../driver/nullable-cells.ts'
import { lockRows } from '../driver/row-locks.ts'
import type { Database, VideoTasksTable } from '../driver/tables.ts'
import { CALL_COLUMNS } from '../ledger/settlement-columns.ts'
import { COMPLETE_CLAIMS, WRITE_CALLS } from '../ledger/settlement-statements.ts'
import { HoldRows } from '../ledger/sql-ledger-holds.ts'

/** The members of a task that are stored as JSON. */
type Detail = Pick<
  VideoTask,
  | 'user'
  | 'tags'
  | 'upstreamModel'
  | 'facts'
  | 'price'
  | 'usage'
  | 'charge'
  | 'error'
  | 'progress'
  | 'contentUrl'
>

/** The columns that are derived from a task. */
export type TaskColumns = Omit<
  VideoTasksTable,
  'claim_id' | 'claim_owner' | 'answer_by' | 'poll_at' | 'poll_owner'
>

export function toTask(row: TaskColumns): VideoTask {
  return {
    ...readDetail(row.detail),
    id: row.id,
    requestId: row.request_id,
    account: row.account,
    key: row.key,
    model: row.model,
    protocol: row.protocol,
    line: row.line,
    upstreamId: row.upstream_id,
    state: row.state,
    hold: row.hold,
    missingSince: toNumber(row.missing_since),
    createdAt: Number(row.created_at),
    updatedAt: Number(row.updated_at),
    finishedAt: toNumber(row.finished_at),
  }
}

export function toColumns(task: VideoTask): TaskColumns {
  const { user, tags, upstreamModel, facts, price, usage, charge, error, progress, contentUrl } = task
  const detail = {
    user,
    tags,
    upstreamModel,
    facts,
    price,
    usage,
    charge,
    error,
    progress,
    contentUrl,
  } as Detail
  return {
    id: task.id,
    request_id: task.requestId,
    account: task.account,
    key: task.key,
    model: task.model,
    protocol: task.protocol,
    line: task.line,
    upstream_id: task.upstreamId,
    state: task.state,
    hold: task.hold,
    detail: writeDetail(detail),
    missing_since: toBigint(task.missingSince),
    created_at: BigInt(task.createdAt),
    updated_at: BigInt(task.updatedAt),
    finished_at: toBigint(task.finishedAt),
  }
}

/** An amount in JSON, which has no integers of that size. */
interface WrittenAmount {
  readonly nanos: string
}

function writeDetail(detail: Detail): string {
  return JSON.stringify(detail, (_name, value: unknown) =>
    typeof value === 'bigint' ? ({ nanos: value.toString() } satisfies WrittenAmount) : value,
  )
}

function readDetail(json: string): Detail {
  return JSON.parse(json, (_name, value: unknown) => (isWrittenAmount(value) ? BigInt(value.nanos) : value))
}

function isWrittenAmount(value: unknown): value is WrittenAmount {
  return typeof value === 'object' && value !== null && 'nanos' in value
}

/** Reads and writes tasks, and settles their money, within a transaction. */
export class TaskRows {
  readonly holds = new HoldRows()
  readonly #calls: SqlCallStore

  constructor(db: Database) {
    this.#calls = new SqlCallStore(db)
  }

  /** Locks the row of a task. It is locked before its wallets, its claim and its call. */
  lock(trx: Database, id: string): Promise<VideoTasksTable | undefined> {
    const row = trx.selectFrom('video_tasks').selectAll().where('id', '=', id)
    return lockRows(trx, row).executeTakeFirst()
  }

  async save(trx: Database, task: VideoTask, others: Partial<VideoTasksTable> = {}): Promise<void> {
    await trx
      .updateTable('video_tasks')
      .set({ ...toColumns(task), ...others })
      .where('id', '=', task.id)
      .execute()
  }

  /** Settles the money that is held for a task, and adds a charge to the log entry of its call. */
  async settle(trx: Database, { task, money }: Progress, at: number): Promise<void> {
    const { requestId, account, key, charge } = task
    if (money === 'release') await this.holds.release(trx, requestId, task)
    if (money !== 'charge' || !charge) return
    const { amount } = charge
    const usage = usageOfTask(task)
    await this.holds.charge(trx, { requestId, account, key, amount, at, usage, basis: basisOf(task) })
  }

  /** Completes the Idempotency-Key that the task was intended with. */
  async completeClaim(
    trx: Database,
    { claim_id, claim_owner: owner }: VideoTasksTable,
    keepUntil: number,
  ): Promise<void> {
    if (claim_id !== null && owner !== null) await COMPLETE_CLAIMS.run(trx, [[claim_id, owner, keepUntil]])
  }

  /** Writes the log entry of the call that creates a task. */
  async log(trx: Database, entry: CallLogEntry): Promise<void> {
    await WRITE_CALLS.run(trx, [cellsOf(CALL_COLUMNS, entry)])
    await WRITE_LABELS.run(trx, labelRows([entry]))
  }

  /** Adds the charge of a task to its log entry; does nothing if the entry no longer exists. */
  async logCharge(trx: Database, task: VideoTask): Promise<void> {
    const entry = await this.#calls.findWithin(trx, task.requestId)
    if (entry) await this.log(trx, chargedEntry(entry, task))
  }
}
