import { Audit } from '../../../ledger/audit.ts'
import type { LedgerCheck } from '../../../ledger/index.ts'
import { accountWallet, keyWallet, type WalletId } from '../../../ledger/wallet.ts'
import type { Database } from '../driver/tables.ts'

/** Rows that one statement answers at most: none takes long, and none holds up the event loop. */
const PAGE_ROWS = 2000
/** Charges that one statement adds up. */
const PAGE_CHARGES = 20_000

/** Recomputes the ledger from its rows, as of one moment: all that it reads is one snapshot of the database. */
export function checkLedger(db: Database): Promise<LedgerCheck> {
  const snapshot = db.transaction().setIsolationLevel('repeatable read').setAccessMode('read only')
  return snapshot.execute(async (trx) => {
    const audit = new Audit()
    await addDeposits(trx, audit)
    await addCharges(trx, audit)
    await addVoids(trx, audit)
    await addLeases(trx, audit)
    await addHolds(trx, audit)
    await compareWallets(trx, audit)
    return audit.result()
  })
}

async function addDeposits(trx: Database, audit: Audit): Promise<void> {
  const page = (after: string) =>
    trx
      .selectFrom('deposits')
      .select(({ fn }) => ['account', fn.sum<bigint>('amount').as('amount')])
      .where('account', '>', after)
      .groupBy('account')
      .orderBy('account')
      .limit(PAGE_ROWS)
      .execute()
  for await (const { account, amount } of rowsOf(page, (row) => row.account)) {
    audit.deposits(accountWallet(account), amount)
  }
}

async function addCharges(trx: Database, audit: Audit): Promise<void> {
  let after = ''
  for (;;) {
    const last = await lastOfPage(trx, after)
    if (last === null) return
    const rows = await trx
      .selectFrom('charges')
      .select(({ fn }) => [
        'account',
        'key',
        fn.sum<bigint>('amount').as('amount'),
        fn.countAll<bigint>().as('count'),
      ])
      .where('request_id', '>', after)
      .where('request_id', '<=', last)
      .groupBy(['account', 'key'])
      .execute()
    for (const { account, key, amount, count } of rows) {
      audit.countCharges(Number(count))
      audit.charges(accountWallet(account), amount)
      if (key !== null) audit.charges(keyWallet(key), amount)
    }
    after = last
  }
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

async function addVoids(trx: Database, audit: Audit): Promise<void> {
  const page = (after: string) =>
    trx
      .selectFrom('voids')
      .leftJoin('charges', 'charges.request_id', 'voids.request_id')
      .select(['voids.request_id', 'voids.account', 'voids.key', 'voids.amount'])
      .select([
        'charges.account as charged_account',
        'charges.key as charged_key',
        'charges.amount as charged',
      ])
      .where('voids.request_id', '>', after)
      .orderBy('voids.request_id')
      .limit(PAGE_ROWS)
      .execute()
  for await (const row of rowsOf(page, ({ request_id }) => request_id)) {
    const { account, key, amount, charged } = row
    // One of nothing needs no wallet to be there.
    if (amount !== 0n) audit.voids(accountWallet(account), amount)
    if (amount !== 0n && key !== null) audit.voids(keyWallet(key), amount)
    const same = account === row.charged_account && key === row.charged_key && amount === charged
    if (charged === null ? amount !== 0n : !same) audit.unmatchedVoid(row.request_id, amount, charged)
  }
}

async function addLeases(trx: Database, audit: Audit): Promise<void> {
  const page = (after: string) =>
    trx
      .selectFrom('leases')
      .select(['id', 'wallet', 'held', 'ended'])
      .where('id', '>', after)
      .orderBy('id')
      .limit(PAGE_ROWS)
      .execute()
  for await (const lease of rowsOf(page, ({ id }) => id)) {
    audit.holds(lease.wallet, lease.held)
    if (lease.held < 0n || (lease.ended !== null && lease.held !== 0n)) audit.wrongLease(lease)
  }
}

async function addHolds(trx: Database, audit: Audit): Promise<void> {
  const page = (after: string) =>
    trx
      .selectFrom('holds')
      .leftJoin('charges', 'charges.request_id', 'holds.request_id')
      .select(['holds.request_id as id', 'holds.account', 'holds.key', 'holds.amount'])
      .select('charges.request_id as charged')
      .where('holds.request_id', '>', after)
      .orderBy('holds.request_id')
      .limit(PAGE_ROWS)
      .execute()
  for await (const { id, account, key, amount, charged } of rowsOf(page, (row) => row.id)) {
    audit.holds(accountWallet(account), amount)
    if (key !== null) audit.holds(keyWallet(key), amount)
    if (amount <= 0n || charged !== null) audit.wrongHold({ id, amount, charged: charged !== null })
  }
}

async function compareWallets(trx: Database, audit: Audit): Promise<void> {
  const page = (after: string) =>
    trx
      .selectFrom('wallets')
      .selectAll()
      .where('id', '>', after as WalletId)
      .orderBy('id')
      .limit(PAGE_ROWS)
      .execute()
  for await (const { id, limited, ...figures } of rowsOf(page, (row) => row.id)) {
    audit.wallet(id, { ...figures, limited: limited !== 0 })
  }
}

/** All rows of a table, page by page; each page begins behind the last row of the one before. */
async function* rowsOf<Row>(
  page: (after: string) => Promise<Row[]>,
  place: (row: Row) => string,
): AsyncGenerator<Row> {
  let after = ''
  for (;;) {
    const rows = await page(after)
    yield* rows
    const last = rows.at(-1)
    if (last === undefined || rows.length < PAGE_ROWS) return
    after = place(last)
  }
}
