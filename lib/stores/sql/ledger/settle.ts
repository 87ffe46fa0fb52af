import { assertFigure } from '../../../core/catalog/money.ts'
import type { Settlement, SettlementResult } from '../../../ledger/index.ts'
import type { SettledClaim } from '../../../ledger/ledger.ts'
import {
  claimName,
  plan,
  type SettlementPlan,
  type SettlementRows,
  type StandingCharge,
  usualRows,
} from '../../../ledger/plan.ts'
import { walletsOf } from '../../../ledger/wallet.ts'
import { RowStatement, type RowWrite } from '../driver/row-statement.ts'
import type { Database } from '../driver/tables.ts'
import { writePlanned, writeTogether } from '../driver/write-together.ts'
import { UsageTally } from '../usage/usage-tally.ts'
import { openBudgetWallets } from './budget-wallets.ts'
import { type CountedRow, readWallets, shareOfRow } from './charge-rows.ts'
import { settlementWrites } from './settlement-writes.ts'
import { findLeases, findWallets } from './sql-ledger-rows.ts'

/**
 * Settles many calls in one transaction. It first writes what suits almost every batch. Only if the rows are not as
 * that assumes, it reads them and plans again.
 *
 * @param logged whether their log entries are written with them.
 * @throws RangeError as a rejection, if a figure does not fit the database.
 */
export async function settleAll(
  db: Database,
  settlements: readonly Settlement[],
  logged = true,
): Promise<readonly SettlementResult[]> {
  const writesOf = (planned: SettlementPlan): RowWrite[] => {
    const usage = new UsageTally()
    return [...settlementWrites(planned, usage, logged), usage.write()]
  }
  if (settlements.every(({ kind }) => kind === 'charge')) {
    const rows = usualRows(settlements)
    const usual = plan(settlements, rows)
    // If a figure is too large, some of the settlements may have been written before.
    if (tooLarge(usual, rows) === undefined && (await writeTogether(db, writesOf(usual))))
      return usual.results
  }
  // A budget of a call that held nothing may have no wallet yet, and the plan would open it without a limit.
  const budgets = settlements.flatMap((settlement) => settlement.budgets ?? [])
  if (budgets.length > 0) await openBudgetWallets(db, [...new Set(budgets)])
  return writePlanned(db, async () => {
    const rows = await findRows(db, settlements)
    const planned = plan(settlements, rows)
    const error = tooLarge(planned, rows)
    if (error) throw error
    return { writes: writesOf(planned), result: planned.results }
  })
}

/** Returns an error if a figure of a wallet would not fit the database. */
function tooLarge(planned: SettlementPlan, rows: SettlementRows): unknown {
  try {
    for (const { id, ...change } of planned.wallets) {
      const found = rows.wallets.get(id)
      for (const figure of ['spent', 'leased', 'overrun'] as const)
        assertFigure((found?.[figure] ?? 0n) + change[figure], `${figure} of "${id}"`)
    }
    return undefined
  } catch (error) {
    return error
  }
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

async function standingOf(db: Database, requestIds: readonly string[]): Promise<Map<string, StandingCharge>> {
  const { rows } = await FIND_STANDING.run(
    db,
    requestIds.map((id) => [id]),
  )
  return new Map(
    rows.map((row) => {
      const { request_id, account, key, amount, budgets, voided } = row
      const standing = { account, key, amount: amount ?? 0n, budgets: readWallets(budgets) }
      return [request_id, { ...standing, voided: voided !== null, usage: shareOfRow(row) }]
    }),
  )
}

/** Reads what the settlements rely on: their writes fail if it is otherwise by then. */
async function findRows(db: Database, settlements: readonly Settlement[]): Promise<SettlementRows> {
  const claiming = settlements.flatMap(({ claim }) => claim ?? [])
  const ids = settlements.map(({ requestId }) => requestId)
  const draws = settlements.flatMap((each) => each.draws)
  const spent = settlements.flatMap(walletsOf)
  const [wallets, claims, charges, leases] = await Promise.all([
    findWallets(db, [...spent, ...draws.map(({ wallet }) => wallet)]),
    ownClaims(db, claiming),
    standingOf(db, ids),
    findLeases(
      db,
      draws.map(({ lease }) => lease),
    ),
  ])
  // The holds of video tasks are closed with their tasks.
  return { wallets, leases, charges, holds: new Map(), owns: (claim) => claims.has(claimName(claim)) }
}
