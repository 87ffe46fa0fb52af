import type { Settlement, SettlementResult } from '../../../ledger/index.ts'
import type { SettledClaim } from '../../../ledger/ledger.ts'
import { walletsOf } from '../../../ledger/wallet.ts'
import { WRITE_LABELS } from '../calls/call-labels.ts'
import { RowStatement, type RowWrite } from '../driver/row-statement.ts'
import type { Database } from '../driver/tables.ts'
import { writePlanned, writeTogether } from '../driver/write-together.ts'
import { type CountedRow, shareOfRow } from '../usage/charge-usage.ts'
import { readWallets } from './budget-cells.ts'
import { openBudgetWallets } from './budget-wallets.ts'
import { type CountedCharge, claimName, type FoundRows, SettlementBatch } from './settlement-batch.ts'
import { WRITE_CALLS, WRITE_KNOWN_CALLS } from './settlement-statements.ts'
import { findLeases, findWallets } from './sql-ledger-rows.ts'

const OF_LOG: ReadonlySet<RowStatement> = new Set([WRITE_CALLS, WRITE_KNOWN_CALLS, WRITE_LABELS])

/**
 * Settles many calls in one transaction. It first writes what suits almost every batch. Only if the rows are not as
 * that assumes, it reads them and tries again.
 *
 * @param logged whether their log entries are written with them.
 * @throws RangeError as a rejection, if a figure does not fit the database.
 */
export async function settleAll(
  db: Database,
  settlements: readonly Settlement[],
  logged = true,
): Promise<readonly SettlementResult[]> {
  const writesOf = (batch: SettlementBatch): RowWrite[] =>
    logged ? batch.writes() : batch.writes().filter(({ statement }) => !OF_LOG.has(statement))
  const assumed = assume(settlements)
  if (assumed && (await writeTogether(db, writesOf(assumed)))) return assumed.results
  // Not by the batch, which opens wallets without a limit. A budget of a call that held nothing may have none yet.
  const budgets = settlements.flatMap((settlement) => settlement.budgets ?? [])
  if (budgets.length > 0) await openBudgetWallets(db, [...new Set(budgets)])
  return writePlanned(db, async () => {
    const batch = new SettlementBatch(settlements, await findRows(db, settlements))
    batch.assertFigures()
    return { writes: writesOf(batch), result: batch.results }
  })
}

/** Returns the batch for the usual state of the rows; undefined if that state is impossible. */
function assume(settlements: readonly Settlement[]): SettlementBatch | undefined {
  if (settlements.some(({ kind }) => kind !== 'charge')) return undefined
  const batch = new SettlementBatch(settlements)
  try {
    batch.assertFigures()
  } catch {
    // Some settlements of a batch with figures that are too large may have been written before.
    return undefined
  }
  return batch
}

const FIND_CLAIMS = RowStatement.select<{ id: string; owner: string }>(
  { id: 'text', owner: 'text' },
  `select found.id, found.owner from given
    join idempotency as found on found.id = given.id and found.owner = given.owner`,
)

async function ownClaims(db: Database, claims: readonly SettledClaim[]): Promise<Set<string>> {
  const { rows } = await FIND_CLAIMS.run(
    db,
    claims.map(({ id, owner }) => [id, owner]),
  )
  return new Set(rows.map(claimName))
}

interface StandingRow extends CountedRow {
  readonly request_id: string
  readonly budgets: string | null
  readonly voided: string | null
}

const FIND_STANDING = RowStatement.select<StandingRow>(
  { request_id: 'text' },
  `select given.request_id, charges.account, charges.key, charges.amount, charges.budgets, charges.at, charges.cost,
    charges.usage,
    voids.request_id as voided
    from given left join charges on charges.request_id = given.request_id
    left join voids on voids.request_id = given.request_id
    where charges.request_id is not null or voids.request_id is not null`,
)

async function standingOf(db: Database, requestIds: readonly string[]): Promise<Map<string, CountedCharge>> {
  const { rows } = await FIND_STANDING.run(
    db,
    requestIds.map((id) => [id]),
  )
  return new Map(
    rows.map((row) => {
      const { request_id, account, key, amount, budgets, voided } = row
      const standing = { account, key, amount: amount ?? 0n, budgets: readWallets(budgets) }
      return [request_id, { ...standing, voided: voided !== null, share: shareOfRow(row) }]
    }),
  )
}

/** Reads what the settlements rely on: their writes fail if it is otherwise by then. */
async function findRows(db: Database, settlements: readonly Settlement[]): Promise<FoundRows> {
  const claiming = settlements.flatMap(({ claim }) => claim ?? [])
  const ids = settlements.map(({ requestId }) => requestId)
  const draws = settlements.flatMap((each) => each.draws)
  const spent = settlements.flatMap(walletsOf)
  const [wallets, claims, standing, leases] = await Promise.all([
    findWallets(db, [...spent, ...draws.map(({ wallet }) => wallet)]),
    ownClaims(db, claiming),
    standingOf(db, ids),
    findLeases(
      db,
      draws.map(({ lease }) => lease),
    ),
  ])
  return { wallets, claims, standing, leases }
}
