import { type RawBuilder, sql } from 'kysely'
import type { CallQuery } from '../../../middleware/call-log/index.ts'
import { isPostgres } from '../driver/is-postgres.ts'
import type { Database } from '../driver/tables.ts'
import { labelsIn } from './call-labels.ts'

/** The ids between which calls are searched; the second is excluded. */
interface IdRange {
  readonly from: string | undefined
  readonly to: string | undefined
}

/**
 * Returns the query of a list of calls. It reads them by one of their labels if the search has one, else by an index of their
 * table. All those begin with an account: a search through all accounts asks each of them.
 */
export function searchCalls(
  db: Database,
  query: CallQuery,
  { from, to }: IdRange,
): RawBuilder<{ entry: string }> {
  const { ids, account, model, status, statusClass, code, minDurationMs, before, limit } = query
  const [label, ...otherLabels] = labelsIn(query)
  const id = sql.ref(label === undefined ? 'calls.id' : 'call_labels.id')
  const conditions: RawBuilder<unknown>[] = [sql`true`]
  const add = (condition: RawBuilder<unknown>) => void conditions.push(condition)
  if (label !== undefined) add(sql`call_labels.label = ${label} and calls.id = call_labels.id`)
  for (const other of otherLabels)
    add(sql`exists (select 1 from call_labels as more where more.label = ${other} and more.id = calls.id)`)
  if (ids !== undefined) add(ids.length === 0 ? sql`false` : sql`calls.id in (${sql.join(ids)})`)
  if (account !== undefined) add(sql`account = ${account}`)
  if (model !== undefined) add(sql`model = ${model}`)
  if (status !== undefined) add(sql`status = ${status}`)
  // As literals, so that SQLite matches them with the condition of an index: for that it does not look at
  // parameters.
  if (status !== undefined && status !== 200) add(sql`status <> 200`)
  if (statusClass !== undefined)
    add(sql`status >= ${statusClass * 100} and status < ${statusClass * 100 + 100}`)
  if (code !== undefined) add(sql`error_code = ${code}`)
  if (minDurationMs !== undefined) add(sql`${durationIn(db)} >= ${minDurationMs}`)
  if (to !== undefined) add(sql`${id} < ${to}`)
  if (before !== undefined) add(sql`${id} < ${before}`)
  if (from !== undefined && !hasIndex(query, label)) add(sql`${id} >= ${from}`)
  if (isOfEachAccount(query, label)) return searchAccounts(db, conditions, limit)
  // SQLite takes the tables of a cross join in their order.
  const tables = label === undefined ? sql`calls` : sql`call_labels cross join calls`
  return sql`select entry from ${tables} where ${sql.join(conditions, sql` and `)} order by ${id} desc limit ${limit}`
}

/** Whether an index has the calls of each account that are searched, which can be few of very many. */
function isOfEachAccount(
  { ids, account, model, status, code }: CallQuery,
  label: string | undefined,
): boolean {
  if (ids !== undefined || account !== undefined || label !== undefined) return false
  return model !== undefined || code !== undefined || (status !== undefined && status !== 200)
}

/** Returns the newest of the newest calls of each account, and of those without one. */
function searchAccounts(
  db: Database,
  conditions: readonly RawBuilder<unknown>[],
  limit: number,
): RawBuilder<{ entry: string }> {
  const newest = (account: RawBuilder<unknown>) =>
    sql`select id from calls where ${sql.join([account, ...conditions], sql` and `)} order by id desc limit ${limit}`
  const ofAccount = newest(sql`account = owners.account`)
  const found = isPostgres(db)
    ? sql`lateral (${ofAccount}) as found`
    : sql`calls as found on found.id in (${ofAccount})`
  const next = sql`select min(account) from calls where account > owners.account`
  return sql`with recursive owners (account) as (
      select min(account) from calls union all select (${next}) from owners where account is not null)
    select entry from calls where id in (
      select found.id from owners cross join ${found}
      union all select id from (${newest(sql`account is null`)}) as unowned)
    order by id desc limit ${limit}`
}

function durationIn(db: Database): RawBuilder<number> {
  const text = isPostgres(db) ? sql`entry::json ->> 'duration_ms'` : sql`entry ->> '$.duration_ms'`
  return sql`cast(${text} as bigint)`
}

/**
 * Whether one index covers all filters of a query. Such a query reads no more rows than its limit, so that entries that
 * are too old can be left out afterwards. With both ends of a range of ids, SQLite would walk through all of the
 * account's calls in that range instead. It does so for calls that ended with 200, which have no index of their own,
 * because almost all calls did.
 */
function hasIndex(query: CallQuery, label: string | undefined): boolean {
  const { account, model, status, code } = query
  if (label !== undefined || status === 200) return false
  if (account === undefined && !isOfEachAccount(query, label)) return false
  if (query.statusClass !== undefined || query.minDurationMs !== undefined) return false
  return [model, status, code].filter((filter) => filter !== undefined).length === 1
}
