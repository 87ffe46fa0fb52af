import { type RawBuilder, sql } from 'kysely'
import type { CallQuery } from '../../../middleware/call-log/index.ts'
import { isPostgres } from '../driver/is-postgres.ts'
import type { Database } from '../driver/tables.ts'
import { LABELLED_CLASS, labelOf, OWN_TOOK_MS, ofAccount, TOOK_MS } from './call-labels.ts'
import { type CallList, everyCall, indexed, labelled } from './call-lists.ts'

/** A filter of a search, and what a call must be for it. */
export interface Filtered {
  readonly name: string
  readonly condition: RawBuilder<unknown>
}

/** A list of calls, and the filters that each of them passes. */
export interface SearchList {
  readonly ids: CallList
  readonly covers: ReadonlySet<string>
}

/** Returns the filters of a query, but for the ids and times. */
export function filtersOf(db: Database, query: CallQuery): Filtered[] {
  const { account, key, model, status, statusClass, code, minDurationMs = 0 } = query
  const filters: Filtered[] = []
  const add = (name: string, condition: RawBuilder<unknown>) => void filters.push({ name, condition })
  if (account !== undefined) add('account', sql`calls.account = ${account}`)
  if (key !== undefined) add('key', sql`calls.key = ${key}`)
  if (model !== undefined) add('model', sql`calls.model = ${model}`)
  if (status !== undefined) add('status', sql`calls.status = ${status}`)
  if (statusClass !== undefined)
    add('class', sql`calls.status >= ${statusClass * 100} and calls.status < ${statusClass * 100 + 100}`)
  if (code !== undefined) add('code', sql`calls.error_code = ${code}`)
  for (const [name, label] of labelsIn(query)) {
    const whole = account === undefined || name === 'line' ? label : ofAccount(account, label)
    add(
      name,
      sql`exists (select 1 from call_labels as more where more.label = ${whole} and more.id = calls.id)`,
    )
  }
  if (minDurationMs > 0) add('duration', sql`${durationIn(db)} >= ${minDurationMs}`)
  return filters
}

/** Returns lists that have all calls of a query; one at least. */
export function listsOf(query: CallQuery): SearchList[] {
  const { account, key, minDurationMs = 0 } = query
  const lists: SearchList[] = []
  const add = (ids: CallList, ...covers: string[]) => void lists.push({ ids, covers: new Set(covers) })
  const own = (ids: CallList, name: string) => add(ids, name, 'account')
  if (account === undefined) for (const [name, label] of labelsOfAll(query)) add(labelled(label), name)
  else for (const [name, ids] of ownLists(account, query)) own(ids, name)
  if (minDurationMs > 0) {
    const labels = tookFrom(minDurationMs).map((ms) => labelOf('took', ms))
    const covered = TOOK_MS.includes(minDurationMs) ? ['duration'] : []
    if (account === undefined || minDurationMs < OWN_TOOK_MS) add(labelled(...labels), ...covered)
    else add(labelled(...labels.map((label) => ofAccount(account, label))), 'account', ...covered)
  }
  if (key !== undefined) add(labelled(labelOf('key', key)), 'key')
  if (query.line !== undefined) add(labelled(labelOf('line', query.line)), 'line')
  if (account !== undefined && !lists.some(({ covers }) => covers.has('account')))
    add(indexed('calls_by_account', { account }), 'account')
  if (lists.length === 0) add(everyCall)
  return lists
}

/** Returns the lists within an account. */
function ownLists(account: string, query: CallQuery): [name: string, ids: CallList][] {
  const { model, status, code } = query
  const lists: [string, CallList][] = labelsIn(query)
    .filter(([name]) => name !== 'line')
    .map(([name, label]) => [name, labelled(ofAccount(account, label))])
  const classLabel = classLabelIn(query)
  if (classLabel !== undefined) lists.push(['class', labelled(ofAccount(account, classLabel))])
  if (model !== undefined) lists.push(['model', indexed('calls_by_model', { account, model })])
  // As literals, so that SQLite matches them with the conditions of the indexes: for that it does not look at parameters.
  if (status !== undefined && status !== 200)
    lists.push(['status', indexed('calls_by_status', { account, status }, sql`status <> 200`)])
  if (code !== undefined)
    lists.push([
      'code',
      indexed('calls_by_error', { account, error_code: code }, sql`error_code is not null`),
    ])
  return lists
}

/** Returns the labels that calls of all accounts have together. */
function labelsOfAll(query: CallQuery): [name: string, label: string][] {
  const { model, status, code } = query
  const labels = labelsIn(query).filter(([name]) => name !== 'line')
  const classLabel = classLabelIn(query)
  if (classLabel !== undefined) labels.push(['class', classLabel])
  if (model !== undefined) labels.push(['model', labelOf('model', model)])
  if (status !== undefined && status !== 200) labels.push(['status', labelOf('status', status)])
  if (code !== undefined) labels.push(['code', labelOf('code', code)])
  return labels
}

/** Returns the labels of what no column of `calls` has. */
function labelsIn({ user, tags = {}, line, clientRequestId }: CallQuery): [name: string, label: string][] {
  const labels: [string, string][] = []
  if (clientRequestId !== undefined) labels.push(['client', labelOf('client', clientRequestId)])
  if (user !== undefined) labels.push(['user', labelOf('user', user)])
  for (const name in tags) labels.push([`tag ${name}`, labelOf('tag', `${name}=${tags[name]}`)])
  if (line !== undefined) labels.push(['line', labelOf('line', line)])
  return labels
}

function classLabelIn({ statusClass = 0 }: CallQuery): string | undefined {
  return statusClass >= LABELLED_CLASS ? labelOf('status', statusClass) : undefined
}

/** Returns the labelled durations that calls reach which take as long or longer. */
function tookFrom(minDurationMs: number): readonly number[] {
  const from = TOOK_MS.findLastIndex((ms) => ms <= minDurationMs)
  return TOOK_MS.slice(from)
}

function durationIn(db: Database): RawBuilder<number> {
  const text = isPostgres(db)
    ? sql`calls.entry::json ->> 'duration_ms'`
    : sql`calls.entry ->> '$.duration_ms'`
  return sql`cast(${text} as bigint)`
}
