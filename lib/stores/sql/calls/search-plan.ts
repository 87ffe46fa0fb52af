import { type RawBuilder, sql } from 'kysely'
import type { CallQuery } from '../../../middleware/call-log/index.ts'
import { isPostgres } from '../driver/is-postgres.ts'
import type { Database } from '../driver/tables.ts'
import { LABELLED_CLASS, labelOf, OWN_TOOK_MS, ofAccount, TOOK_MS } from './call-labels.ts'
import { type CallList, calls, indexed, labelled } from './call-lists.ts'

/** A list of calls, and the filters that each of them passes. */
export interface SearchList {
  readonly ids: CallList
  readonly covers: ReadonlySet<string>
}

export interface SearchPlan {
  readonly filters: readonly string[]
  /** Each has all calls of the query; there is one at least. */
  readonly lists: readonly SearchList[]
  /** What a call must be for a filter that a list may not have. */
  readonly conditions: ReadonlyMap<string, RawBuilder<unknown>>
}

/** Returns how a query may be done, but for its times. */
export function planOf(db: Database, query: CallQuery): SearchPlan {
  const { account, ids, key, line, minDurationMs = 0 } = query
  const lists: SearchList[] = []
  const add = (list: CallList, ...covers: string[]) => void lists.push({ ids: list, covers: new Set(covers) })
  if (ids !== undefined) add(calls(ids), 'ids')
  if (account === undefined) for (const [name, label] of labelsOfAll(query)) add(labelled(label), name)
  else for (const [name, list] of ownLists(account, query)) add(list, name, 'account')
  if (minDurationMs > 0) {
    const labels = tookFrom(minDurationMs).map((ms) => labelOf('took', ms))
    const covered = TOOK_MS.includes(minDurationMs) ? ['duration'] : []
    if (account === undefined || minDurationMs < OWN_TOOK_MS) add(labelled(...labels), ...covered)
    else add(labelled(...labels.map((label) => ofAccount(account, label))), 'account', ...covered)
  }
  if (key !== undefined) add(labelled(labelOf('key', key)), 'key')
  if (line !== undefined) add(labelled(labelOf('line', line)), 'line')
  if (account !== undefined && !lists.some(({ covers }) => covers.has('account')))
    add(indexed('calls_by_account', { account }), 'account')
  if (lists.length === 0) add(calls())
  const conditions = conditionsOf(db, query)
  const covered = lists.flatMap(({ covers }) => [...covers])
  return { filters: [...new Set([...covered, ...conditions.keys()])], lists, conditions }
}

/** Returns the lists within an account. */
function ownLists(account: string, query: CallQuery): [name: string, ids: CallList][] {
  const { model, status, code } = query
  const lists: [string, CallList][] = labelsIn(query).map(([name, label]) => [
    name,
    labelled(ofAccount(account, label)),
  ])
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
  const labels = labelsIn(query)
  if (model !== undefined) labels.push(['model', labelOf('model', model)])
  if (status !== undefined && status !== 200) labels.push(['status', labelOf('status', status)])
  if (code !== undefined) labels.push(['code', labelOf('code', code)])
  return labels
}

/** Returns the labels that calls have within their account too. */
function labelsIn(query: CallQuery): [name: string, label: string][] {
  const { user, tags = {}, clientRequestId, statusClass = 0 } = query
  const labels: [string, string][] = []
  if (clientRequestId !== undefined) labels.push(['client', labelOf('client', clientRequestId)])
  if (user !== undefined) labels.push(['user', labelOf('user', user)])
  for (const name in tags) labels.push([`tag ${name}`, labelOf('tag', `${name}=${tags[name]}`)])
  if (statusClass >= LABELLED_CLASS) labels.push(['class', labelOf('status', statusClass)])
  return labels
}

/** Returns the labelled durations that calls reach which take as long or longer. */
function tookFrom(minDurationMs: number): readonly number[] {
  const from = TOOK_MS.findLastIndex((ms) => ms <= minDurationMs)
  return TOOK_MS.slice(from)
}

function conditionsOf(db: Database, query: CallQuery): Map<string, RawBuilder<unknown>> {
  const { account, status, statusClass, minDurationMs = 0 } = query
  const conditions = new Map<string, RawBuilder<unknown>>()
  if (account !== undefined) conditions.set('account', sql`calls.account = ${account}`)
  if (status !== undefined) conditions.set('status', sql`calls.status = ${status}`)
  if (statusClass !== undefined)
    conditions.set(
      'class',
      sql`calls.status >= ${statusClass * 100} and calls.status < ${statusClass * 100 + 100}`,
    )
  if (minDurationMs > 0) conditions.set('duration', sql`${durationIn(db)} >= ${minDurationMs}`)
  return conditions
}

/**
 * Postgres reads no JSON in which a caller's text has U+0000 or half a character. No text has a quote without a backslash in it, and
 * the duration of the call stands before those of its attempts.
 */
function durationIn(db: Database): RawBuilder<number> {
  const text = isPostgres(db)
    ? sql`substring(calls.entry from '"duration_ms":(\\d+)')`
    : sql`calls.entry ->> '$.duration_ms'`
  return sql`cast(${text} as bigint)`
}
