import type { CallLogEntry } from '../../../core/call/index.ts'
import type { VideoTask } from '../../../ledger/tasks/task.ts'
import { basisOf, chargedEntry, usageOfTask } from '../../../ledger/tasks/task-charge.ts'
import type { Progress } from '../../../ledger/tasks/task-progress.ts'
import { labelRows, WRITE_LABELS } from '../calls/call-labels.ts'
import { SqlCallStore } from '../calls/sql-call-store.ts'
import { type Cell, cellsOf, toBigint, toNumber } from '../driver/columns.ts'
import { RowStatement, type RowWrite } from '../driver/row-statement.ts'
import type { Database, VideoTasksTable } from '../driver/tables.ts'
import { type Planned, writePlanned } from '../driver/write-together.ts'
import { CALL_COLUMNS } from '../ledger/charge-rows.ts'
import { COMPLETE_CLAIMS, FREE_CLAIMS, WRITE_CALLS } from '../ledger/settlement-writes.ts'
import { chargeHold, releaseHold, type StandingHold } from '../ledger/sql-ledger-holds.ts'
import type { UsageTally } from '../usage/usage-tally.ts'

/** Before the id of a task, the id of a record that stands for its withdrawal. */
export const WITHDRAWN = 'withdrawn '

const TASK_COLUMNS = {
  id: 'text',
  request_id: 'text',
  account: 'text',
  key: 'text',
  model: 'text',
  protocol: 'text',
  hold: 'bigint',
  created_at: 'bigint',
} as const

/** The columns that change. */
const STATE_COLUMNS = {
  line: 'text',
  upstream_id: 'text',
  state: 'text',
  detail: 'text',
  claim_id: 'text',
  claim_owner: 'text',
  answer_by: 'bigint',
  poll_at: 'bigint',
  poll_owner: 'text',
  missing_since: 'bigint',
  updated_at: 'bigint',
  finished_at: 'bigint',
} as const

const ALL_COLUMNS = { ...TASK_COLUMNS, ...STATE_COLUMNS }
const NAMES = Object.keys(ALL_COLUMNS) as (keyof typeof ALL_COLUMNS)[]
const STATES = Object.keys(STATE_COLUMNS) as (keyof typeof STATE_COLUMNS)[]

/** Waits for who is writing or withdrawing a task of that id. */
export const WRITE_TASKS = RowStatement.insert('video_tasks', ALL_COLUMNS, 'on conflict (id) do nothing')

/** Fails for a task that was withdrawn before it came. Behind {@link WRITE_TASKS}, it sees what that has waited for. */
export const UNLESS_WITHDRAWN = RowStatement.update(
  'video_tasks',
  { id: 'text' },
  'updated_at = found.updated_at',
  `found.id = given.id
    and not exists (select 1 from idempotency where idempotency.id = '${WITHDRAWN}' || given.id)`,
)

/** Fails if the task has changed since it was read. */
const SAVE_TASKS = RowStatement.update(
  'video_tasks',
  {
    id: 'text',
    ...STATE_COLUMNS,
    ...Object.fromEntries(STATES.map((name) => [`was_${name}`, STATE_COLUMNS[name]])),
  },
  STATES.map((name) => `${name} = given.${name}`).join(),
  [
    'found.id = given.id',
    ...STATES.map((name) => `found.${name} is not distinct from given.was_${name}`),
  ].join(' and '),
)

/** Returns the cells of {@link WRITE_TASKS}. */
export function taskRow(row: VideoTasksTable): Cell[] {
  return NAMES.map((name) => row[name])
}

/** Returns the cells of a task that change. */
function stateCells(row: Pick<VideoTasksTable, (typeof STATES)[number]>): Cell[] {
  return STATES.map((name) => row[name])
}

/** The members of a task that are stored as JSON. */
type Detail = Pick<
  VideoTask,
  | 'user'
  | 'tags'
  | 'upstreamModel'
  | 'facts'
  | 'price'
  | 'lineCost'
  | 'usage'
  | 'charge'
  | 'error'
  | 'progress'
  | 'contentUrl'
>

/** The columns that are derived from a task. */
type TaskColumns = Omit<VideoTasksTable, 'claim_id' | 'claim_owner' | 'answer_by' | 'poll_at' | 'poll_owner'>

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
  const { user, tags, upstreamModel, facts, price, lineCost, usage, charge, error, progress, contentUrl } =
    task
  const detail = {
    user,
    tags,
    upstreamModel,
    facts,
    price,
    lineCost,
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

/** A task, and what stands of its money and of its Idempotency-Key. */
interface FoundTask {
  readonly row: VideoTasksTable
  readonly hold: StandingHold
  /** Whether the record of the Idempotency-Key still belongs to the task. */
  readonly claimed: boolean
}

/** Reads tasks, and returns the writes that change them and settle their money. A task is written before its wallets. */
export class TaskRows {
  readonly #db: Database
  readonly #calls: SqlCallStore

  constructor(db: Database) {
    this.#db = db
    this.#calls = new SqlCallStore(db)
  }

  /** Reads a task, in one round trip. */
  async find(id: string): Promise<FoundTask | undefined> {
    const rows = await this.#db
      .selectFrom('video_tasks as task')
      .leftJoin('holds', 'holds.request_id', 'task.request_id')
      .leftJoin('budget_holds', 'budget_holds.request_id', 'task.request_id')
      .leftJoin('charges', 'charges.request_id', 'task.request_id')
      .leftJoin('voids', 'voids.request_id', 'task.request_id')
      .leftJoin('idempotency as claim', (join) =>
        join.onRef('claim.id', '=', 'task.claim_id').onRef('claim.owner', '=', 'task.claim_owner'),
      )
      .selectAll('task')
      .select(['holds.amount as held', 'budget_holds.wallet as budget', 'claim.id as claimed'])
      .select(['charges.request_id as charged', 'voids.request_id as voided'])
      .where('task.id', '=', id)
      .orderBy('budget_holds.wallet')
      .execute()
    const [first] = rows
    if (!first) return undefined
    const { held, budget: _, claimed, charged, voided, ...row } = first
    const budgets = rows.flatMap(({ budget }) => budget ?? [])
    const hold = { held: held ?? 0n, budgets, charged: charged !== null || voided !== null }
    return { row, hold, claimed: claimed !== null }
  }

  /**
   * Writes what follows from a task; returns undefined if there is none.
   *
   * @param plan is called again if the task changes meanwhile.
   */
  revise<Result>(
    id: string,
    plan: (found: FoundTask) => Planned<Result> | Promise<Planned<Result>>,
  ): Promise<Result | undefined> {
    return writePlanned<Result | undefined>(this.#db, async () => {
      const found = await this.find(id)
      return found ? plan(found) : { writes: [], result: undefined }
    })
  }

  save({ row }: FoundTask, task: VideoTask, others: Partial<VideoTasksTable> = {}): RowWrite {
    const now = { ...row, ...toColumns(task), ...others }
    return { statement: SAVE_TASKS, rows: [[row.id, ...stateCells(now), ...stateCells(row)]] }
  }

  settle({ hold }: FoundTask, { task, money }: Progress, at: number, usage: UsageTally): RowWrite[] {
    const { requestId, account, key, charge } = task
    if (money === 'release') return releaseHold(hold, task)
    if (money !== 'charge' || !charge) return []
    const { amount, cost = null } = charge
    const charged = {
      requestId,
      account,
      key,
      amount,
      cost,
      at,
      usage: usageOfTask(task),
      basis: basisOf(task),
    }
    return chargeHold(hold, charged, usage)
  }

  /** Completes the Idempotency-Key that the task was intended with. */
  completeClaim({ row: { claim_id, claim_owner: owner }, claimed }: FoundTask, keepUntil: number): RowWrite {
    const rows = claimed && claim_id !== null && owner !== null ? [[claim_id, owner, keepUntil]] : []
    return { statement: COMPLETE_CLAIMS, rows }
  }

  /** Frees it. */
  freeClaim({ row: { claim_id, claim_owner: owner } }: FoundTask): RowWrite {
    return { statement: FREE_CLAIMS, rows: claim_id !== null && owner !== null ? [[claim_id, owner]] : [] }
  }

  log(entry: CallLogEntry): RowWrite[] {
    return [
      { statement: WRITE_CALLS, rows: [cellsOf(CALL_COLUMNS, entry)] },
      { statement: WRITE_LABELS, rows: labelRows(entry) },
    ]
  }

  /** Adds the charge of a task to its log entry; does nothing if the entry no longer exists. */
  async logCharge(task: VideoTask): Promise<RowWrite[]> {
    const entry = await this.#calls.find(task.requestId)
    return entry ? this.log(chargedEntry(entry, task)) : []
  }
}
