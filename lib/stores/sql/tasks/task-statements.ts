import type { Cell } from '../driver/columns.ts'
import { RowStatement } from '../driver/row-statement.ts'
import type { VideoTasksTable } from '../driver/tables.ts'

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

/** Those that change. */
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

/** Fails if somebody has changed the task since it was read. */
export const SAVE_TASKS = RowStatement.update(
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
export function stateCells(row: Pick<VideoTasksTable, (typeof STATES)[number]>): Cell[] {
  return STATES.map((name) => row[name])
}
