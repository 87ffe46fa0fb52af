import { type CallLogEntry, lineOf } from '../../../core/call/index.ts'
import { countsOf } from '../../../core/usage/index.ts'
import type { Cell } from '../driver/columns.ts'
import { RowStatement } from '../driver/row-statement.ts'

/*
 * Calls are searched by labels, beside the columns of `calls`: there is a row for each label of a call. An index of `calls` itself would
 * have to be built over all of them at once when a database is migrated.
 */

export const WRITE_LABELS = RowStatement.insert(
  'call_labels',
  { label: 'text', id: 'text' },
  'on conflict (label, id) do nothing',
  { loose: true, order: ['label', 'id'] },
)

/** Takes the cells of {@link WRITE_LABELS}. */
export const DELETE_LABELS = RowStatement.delete(
  'call_labels',
  { label: 'text', id: 'text' },
  'found.id = given.id and found.label = given.label',
)

/** The label of calls that usage does not have yet, because it was locked. */
export const UNCOUNTED = 'uncounted'

/** The label of calls that usage does not count. */
export const LOOK_UP = 'look-up'
/** All but `completed`, which almost all calls are. */
export const LABELLED_OUTCOMES: readonly string[] = ['refused', 'failed', 'interrupted']

/** Almost all calls end with a status of a lower class. */
export const LABELLED_CLASS = 3
/**
 * Durations, ascending. Each call has a label of the last one that it reached, so that the calls that took as long or longer are
 * those of a few labels. They are the round numbers that people ask for: then no call of a label is too short.
 */
export const TOOK_MS = [
  1, 2, 5, 10, 20, 50, 100, 200, 300, 500, 1000, 1500, 2000, 3000, 5000, 10_000, 15_000, 20_000, 30_000,
  45_000, 60_000, 90_000, 120_000, 180_000, 300_000, 600_000, 1_200_000, 1_800_000, 3_600_000,
]
/** From this duration on a call has a label within its account too. Shorter ones are many. */
export const OWN_TOOK_MS = 10_000

/** Returns the rows of the labels of a call. */
export function labelRows(entry: CallLogEntry): Cell[][] {
  const { id, account, key, model, user, tags, status, duration_ms: duration, error_code: code } = entry
  const { client_request_id: clientId, outcome } = entry
  const line = lineOf(entry)
  const rows: Cell[][] = []
  const add = (kind: string, value: string | number) => void rows.push([labelOf(kind, value), id])
  const addScoped = (kind: string, value: string | number) => {
    add(kind, value)
    if (account !== null) rows.push([ofAccount(account, labelOf(kind, value)), id])
  }
  if (key !== null) add('key', key)
  if (model !== null) add('model', model)
  if (line !== null) add('line', line)
  if (status !== 200) add('status', status)
  if (code !== null) add('code', code)
  if (outcome !== 'completed') addScoped('outcome', outcome)
  const counts = countsOf(entry)
  if (counts.length === 0) rows.push([LOOK_UP, id])
  for (const count of counts) if (count !== 'requests') addScoped('counted', count)
  if (clientId !== null) addScoped('client', clientId)
  if (user !== null) addScoped('user', user)
  for (const name in tags) addScoped('tag', `${name}=${tags[name]}`)
  const statusClass = Math.floor(status / 100)
  if (statusClass >= LABELLED_CLASS) addScoped('status', statusClass)
  const took = tookOf(duration)
  if (took !== undefined) (took >= OWN_TOOK_MS ? addScoped : add)('took', took)
  return rows
}

/** Returns the last of the labelled durations that a call reached. */
function tookOf(duration: number): number | undefined {
  let reached: number | undefined
  for (const ms of TOOK_MS) {
    if (ms > duration) break
    reached = ms
  }
  return reached
}

export function labelOf(kind: string, value: string | number): string {
  return `${kind}\n${value}`
}

export function ofAccount(account: string, label: string): string {
  return `${label}\n${account}`
}
