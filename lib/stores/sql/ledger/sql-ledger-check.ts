import { sql } from 'kysely'
import {
  type AuditedCarried,
  type AuditedDeposit,
  type AuditedHold,
  type AuditedLease,
  type AuditedWallet,
  auditLedger,
} from '../../../ledger/audit.ts'
import type { LedgerCheck } from '../../../ledger/index.ts'
import { halvedSum, joinedSum } from '../driver/halved-sum.ts'
import type { Database } from '../driver/tables.ts'
import { retryConflicts } from '../driver/transact.ts'
import { chargedUsage } from '../usage/charged-usage.ts'
import { chargesOf, PAGE_ROWS, pagesOf, voidsOf } from './charge-sums.ts'
import { findRestored } from './restored.ts'

/** Recomputes the ledger from its rows, in one snapshot of the database. */
export function checkLedger(db: Database): Promise<LedgerCheck> {
  const snapshot = db.transaction().setIsolationLevel('repeatable read').setAccessMode('read only')
  const check = async (trx: Database) => {
    // Charges are deleted with their partition, which a snapshot does not keep. A query of all of them keeps them there.
    await trx.selectFrom('charges').select('request_id').limit(1).execute()
    const audited = await auditLedger({
      deposits: depositsOf(trx),
      carried: carriedOf(trx),
      charges: chargesOf(trx),
      voids: voidsOf(trx),
      leases: leasesOf(trx),
      holds: holdsOf(trx),
      wallets: walletsOf(trx),
      usage: chargedUsage(trx),
    })
    const restored = await findRestored(trx)
    return restored ? { ...audited, restored } : audited
  }
  return retryConflicts(() => snapshot.execute(check))
}

function carriedOf(trx: Database): AsyncIterable<readonly AuditedCarried[]> {
  const page = (after: string) =>
    trx
      .selectFrom('carried_spending')
      .selectAll()
      .where('wallet', '>', after as AuditedCarried['wallet'])
      .orderBy('wallet')
      .limit(PAGE_ROWS)
      .execute()
  return pagesOf(page, ({ wallet }) => wallet)
}

async function* depositsOf(trx: Database): AsyncIterable<readonly AuditedDeposit[]> {
  const page = (after: string) =>
    trx
      .selectFrom('deposits')
      .select(['account', ...halvedSum('amount')])
      .where('account', '>', after)
      .groupBy('account')
      .orderBy('account')
      .limit(PAGE_ROWS)
      .execute()
  for await (const rows of pagesOf(page, ({ account }) => account))
    yield rows.map((row) => ({ account: row.account, amount: joinedSum(row, 'amount') }))
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
