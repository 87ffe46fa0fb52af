import { sql } from 'kysely'
import type { AuditedUsage } from '../../../ledger/audit.ts'
import { halvedSum, joinedSum } from '../driver/halved-sum.ts'
import type { Database } from '../driver/tables.ts'
import { keptFrom } from './sql-usage-counter.ts'
import { GRAIN } from './usage-tally.ts'

/** The rows that one statement adds up. */
const PAGE_ROWS = 10_000

const MINUTE_GRAIN = sql.lit(GRAIN.fineMinute)

/** The place of a row in the primary key. */
interface Place {
  readonly account: string
  readonly grain: number | bigint
  readonly hour: bigint
  readonly digest: string
}

interface SumRow {
  readonly account: string
  readonly key: string
  readonly grain: number | bigint
  /** Whether it is of the time of which all usage of users and tags is there. */
  readonly is_fine: number | bigint
  /** Whether it is of the time of which all usage of minutes is there. */
  readonly is_recent: number | bigint
  readonly charged_high: bigint
  readonly charged_low: bigint
}

/** The charges of a key by grain: of all times, and of the times of which all usage of users and tags, and of minutes, is there. */
interface Charged {
  readonly all: bigint[]
  readonly fine: bigint[]
  readonly recent: bigint[]
}

/** Yields what usage has of each account and key, in each of its grains. */
export async function* chargedUsage(trx: Database): AsyncIterable<readonly AuditedUsage[]> {
  const from = await keptFrom(trx)
  // Of the accounts that are not complete: the last one, and those of a page.
  const accounts = new Map<string, Map<string, Charged>>()
  for (let after: Place | undefined; ; ) {
    const page = pageBehind(after)
    const last = await lastOf(trx, page)
    const { rows } =
      await sql<SumRow>`select account, key, grain, is_fine, is_recent, ${sql.join(halvedSum('charged'))}
      from (select account, key, grain, charged, case when hour >= ${from.fine} then 1 else 0 end as is_fine,
        case when case grain when ${MINUTE_GRAIN} then hour / 60 else hour end >= ${from.minutes} then 1 else 0 end as is_recent
        from (${page}) as page) as page
      group by account, key, grain, is_fine, is_recent order by account, key`.execute(trx)
    for (const row of rows) add(accounts, row)
    for (const [account, keys] of accounts) {
      if (account === last?.account) continue
      yield Array.from(keys, ([key, charged]) => audited(account, key, charged))
      accounts.delete(account)
    }
    if (last === undefined) return
    after = last
  }
}

function pageBehind(after: Place | undefined) {
  const isBehind = after
    ? sql`(account, grain, hour, digest) > (${after.account}, ${after.grain}, ${after.hour}, ${after.digest})`
    : sql`true`
  return sql`select account, grain, hour, digest, key, charged from usage where ${isBehind}
    order by account, grain, hour, digest limit ${PAGE_ROWS}`
}

async function lastOf(trx: Database, page: ReturnType<typeof pageBehind>): Promise<Place | undefined> {
  const { rows } = await sql<Place>`select account, grain, hour, digest from (${page}) as page
    order by account desc, grain desc, hour desc, digest desc limit 1`.execute(trx)
  return rows[0]
}

function add(accounts: Map<string, Map<string, Charged>>, row: SumRow): void {
  const keys = accounts.get(row.account) ?? new Map<string, Charged>()
  accounts.set(row.account, keys)
  const charged = keys.get(row.key) ?? { all: noneByGrain(), fine: noneByGrain(), recent: noneByGrain() }
  keys.set(row.key, charged)
  const sum = joinedSum({ ...row }, 'charged')
  const grain = Number(row.grain)
  charged.all[grain] = (charged.all[grain] ?? 0n) + sum
  if (Number(row.is_fine) === 1) charged.fine[grain] = (charged.fine[grain] ?? 0n) + sum
  if (Number(row.is_recent) === 1) charged.recent[grain] = (charged.recent[grain] ?? 0n) + sum
}

function noneByGrain(): bigint[] {
  return Object.values(GRAIN).map(() => 0n)
}

function audited(account: string, key: string, { all, fine, recent }: Charged): AuditedUsage {
  const hours = all[GRAIN.hour] ?? 0n
  const expected = fine[GRAIN.hour] ?? 0n
  return {
    account,
    key: key === '' ? null : key,
    charged: hours,
    other: [
      { name: 'by days', charged: all[GRAIN.day] ?? 0n, expected: hours },
      { name: 'by users, tags and hours', charged: fine[GRAIN.fineHour] ?? 0n, expected },
      { name: 'by users, tags and days', charged: fine[GRAIN.fineDay] ?? 0n, expected },
      { name: 'by users, tags and months', charged: fine[GRAIN.fineMonth] ?? 0n, expected },
      { name: 'by minutes', charged: recent[GRAIN.fineMinute] ?? 0n, expected: recent[GRAIN.hour] ?? 0n },
    ],
  }
}
