import { sql } from 'kysely'
import {
  type AuditedCharges,
  type AuditedDeposit,
  type AuditedHold,
  type AuditedLease,
  type AuditedVoid,
  type AuditedWallet,
  auditLedger,
} from '../../../ledger/audit.ts'
import type { LedgerCheck } from '../../../ledger/index.ts'
import type { Database } from '../driver/tables.ts'
import { chargedUsage } from '../usage/charged-usage.ts'
import { readWallets } from './budget-cells.ts'

/** The most rows of one statement, so that none takes long or blocks the event loop. */
const PAGE_ROWS = 2000
/** The number of charges that one statement adds up. */
const PAGE_CHARGES = 20_000

/** Recomputes the ledger from its rows, in one snapshot of the database. */
export function checkLedger(db: Database): Promise<LedgerCheck> {
  const snapshot = db.transaction().setIsolationLevel('repeatable read').setAccessMode('read only')
  return snapshot.execute((trx) =>
    auditLedger({
      deposits: depositsOf(trx),
      charges: chargesOf(trx),
      voids: voidsOf(trx),
      leases: leasesOf(trx),
      holds: holdsOf(trx),
      wallets: walletsOf(trx),
      usage: chargedUsage(trx),
    }),
  )
}

function depositsOf(trx: Database): AsyncIterable<readonly AuditedDeposit[]> {
  const page = (after: string) =>
    trx
      .selectFrom('deposits')
      .select(({ fn }) => ['account', fn.sum<bigint>('amount').as('amount')])
      .where('account', '>', after)
      .groupBy('account')
      .orderBy('account')
      .limit(PAGE_ROWS)
      .execute()
  return pagesOf(page, ({ account }) => account)
}

async function* chargesOf(trx: Database): AsyncIterable<readonly AuditedCharges[]> {
  let after = ''
  for (;;) {
    const last = await lastOfPage(trx, after)
    if (last === null) return
    const sums = await trx
      .selectFrom('charges')
      .select(({ fn }) => [
        'account',
        'key',
        'budgets',
        fn.sum<bigint>('amount').as('amount'),
        fn.countAll<bigint>().as('count'),
        sql<bigint>`sum(case when usage is null then amount else 0 end)`.as('uncounted'),
      ])
      .where('request_id', '>', after)
      .where('request_id', '<=', last)
      .groupBy(['account', 'key', 'budgets'])
      .execute()
    yield sums.map((sum) => ({
      ...sum,
      budgets: readWallets(sum.budgets),
      count: Number(sum.count),
      uncounted: BigInt(sum.uncounted),
    }))
    after = last
  }
}

async function* voidsOf(trx: Database): AsyncIterable<readonly AuditedVoid[]> {
  const page = (after: string) =>
    trx
      .selectFrom('voids')
      .leftJoin('charges', 'charges.request_id', 'voids.request_id')
      .select(['voids.request_id as requestId', 'voids.account', 'voids.key', 'voids.amount'])
      .select('voids.counted')
      .select(['charges.account as chargedAccount', 'charges.key as chargedKey', 'charges.amount as charged'])
      .select('charges.budgets as chargedBudgets')
      .where('voids.request_id', '>', after)
      .orderBy('voids.request_id')
      .limit(PAGE_ROWS)
      .execute()
  for await (const rows of pagesOf(page, ({ requestId }) => requestId)) {
    yield rows.map(({ chargedAccount, chargedKey, charged, chargedBudgets, counted, ...undone }) => {
      const charge =
        chargedAccount === null || charged === null
          ? null
          : {
              account: chargedAccount,
              key: chargedKey,
              amount: charged,
              budgets: readWallets(chargedBudgets),
            }
      return { ...undone, charge, uncounted: charge !== null && counted === null }
    })
  }
}

/** Yields leases, and what videos hold of budgets. */
async function* leasesOf(trx: Database): AsyncIterable<readonly AuditedLease[]> {
  const page = (after: string) =>
    trx
      .selectFrom('leases')
      .select(['id', 'wallet', 'held', 'ended'])
      .where('id', '>', after)
      .orderBy('id')
      .limit(PAGE_ROWS)
      .execute()
  yield* pagesOf(page, ({ id }) => id)
  const id = sql<string>`request_id || ' ' || wallet`
  const holds = (after: string) =>
    trx
      .selectFrom('budget_holds')
      .select([id.as('id'), 'wallet', 'amount as held', sql<null>`null`.as('ended')])
      .where(id, '>', after)
      .orderBy(id)
      .limit(PAGE_ROWS)
      .execute()
  yield* pagesOf(holds, ({ id }) => id)
}

async function* holdsOf(trx: Database): AsyncIterable<readonly AuditedHold[]> {
  const page = (after: string) =>
    trx
      .selectFrom('holds')
      .leftJoin('charges', 'charges.request_id', 'holds.request_id')
      .select(['holds.request_id as id', 'holds.account', 'holds.key', 'holds.amount'])
      .select('charges.request_id as charge')
      .where('holds.request_id', '>', after)
      .orderBy('holds.request_id')
      .limit(PAGE_ROWS)
      .execute()
  for await (const rows of pagesOf(page, ({ id }) => id)) {
    yield rows.map(({ charge, ...hold }) => ({ ...hold, charged: charge !== null }))
  }
}

function walletsOf(trx: Database): AsyncIterable<readonly AuditedWallet[]> {
  const page = (after: string) =>
    trx
      .selectFrom('wallets')
      .selectAll()
      .where('id', '>', after as AuditedWallet['id'])
      .orderBy('id')
      .limit(PAGE_ROWS)
      .execute()
  return pagesOf(page, ({ id }) => id)
}

async function lastOfPage(trx: Database, after: string): Promise<string | null> {
  const page = trx
    .selectFrom('charges')
    .select('request_id')
    .where('request_id', '>', after)
    .orderBy('request_id')
    .limit(PAGE_CHARGES)
  const { last } = await trx
    .selectFrom(page.as('page'))
    .select(({ fn }) => fn.max<string | null>('request_id').as('last'))
    .executeTakeFirstOrThrow()
  return last
}

/** Yields all rows of a table in pages. */
async function* pagesOf<Row>(
  page: (after: string) => Promise<Row[]>,
  place: (row: Row) => string,
): AsyncGenerator<Row[]> {
  let after = ''
  for (;;) {
    const rows = await page(after)
    yield rows
    const last = rows.at(-1)
    if (last === undefined || rows.length < PAGE_ROWS) return
    after = place(last)
  }
}
