import { type CallLogEntry, lineOf } from '../../../core/call/index.ts'
import type { CallQuery } from '../../../middleware/call-log/index.ts'
import type { Cell } from '../driver/columns.ts'
import { RowStatement } from '../driver/row-statement.ts'

/*
 * What calls are searched by, beside the columns of `calls`: a row for each label of a call. An index of `calls` itself would
 * have to be built over all of them at once when a database is migrated.
 */

export const WRITE_LABELS = RowStatement.insert(
  'call_labels',
  { label: 'text', id: 'text' },
  'on conflict (label, id) do nothing',
  { loose: true },
)

export const DELETE_LABELS = RowStatement.delete(
  'call_labels',
  { id: 'text', label: 'text' },
  'found.id = given.id and found.label = given.label',
)

/** The label of calls that usage does not have yet, because it was locked. */
export const UNCOUNTED = 'uncounted'

/** Almost all calls end with a status of a lower class. */
const LABELLED_CLASS = 3
/** Durations from which on a call has a label, ascending. Shorter calls are many. */
const LONG_MS = [10_000, 60_000]

/** Returns the rows of the labels of some calls. */
export function labelRows(entries: Iterable<CallLogEntry>): Cell[][] {
  const rows: Cell[][] = []
  for (const entry of entries) for (const label of labelsOf(entry)) rows.push([label, entry.id])
  return rows
}

function labelsOf(entry: CallLogEntry): string[] {
  const { account, key, user, tags, status, duration_ms: duration, client_request_id: clientId } = entry
  const line = lineOf(entry)
  const labels: string[] = []
  if (key !== null) labels.push(labelOf('key', key))
  if (line !== null) labels.push(labelOf('line', line))
  const scoped: string[] = []
  if (clientId !== null) scoped.push(labelOf('client', clientId))
  if (typeof user === 'string') scoped.push(labelOf('user', user))
  for (const name in tags) scoped.push(labelOf('tag', `${name}=${tags[name]}`))
  const statusClass = Math.floor(status / 100)
  if (statusClass >= LABELLED_CLASS) scoped.push(labelOf('status', statusClass))
  for (const long of LONG_MS) if (duration >= long) scoped.push(labelOf('over', long))
  labels.push(...scoped)
  if (account !== null) for (const label of scoped) labels.push(ofAccount(account, label))
  return labels
}

function labelOf(kind: string, value: string | number): string {
  return `${kind}\n${value}`
}

function ofAccount(account: string, label: string): string {
  return `${label}\n${account}`
}

/** Returns the labels that the calls of a query have, the one that fewest other calls have first. */
export function labelsIn(query: CallQuery): string[] {
  const { account, user, tags = {}, key, line, clientRequestId } = query
  const scoped: string[] = []
  if (clientRequestId !== undefined) scoped.push(labelOf('client', clientRequestId))
  if (user !== undefined) scoped.push(labelOf('user', user))
  const { statusClass = 0 } = query
  if (statusClass >= LABELLED_CLASS) scoped.push(labelOf('status', statusClass))
  const long = LONG_MS.findLast((each) => each <= (query.minDurationMs ?? 0))
  if (long !== undefined) scoped.push(labelOf('over', long))
  for (const name in tags) scoped.push(labelOf('tag', `${name}=${tags[name]}`))
  const labels = account === undefined ? scoped : scoped.map((label) => ofAccount(account, label))
  if (key !== undefined) labels.push(labelOf('key', key))
  if (line !== undefined) labels.push(labelOf('line', line))
  return labels
}
