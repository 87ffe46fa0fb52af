import { shareOfCharge } from '../../../core/usage/index.ts'
import type { Settlement, SettlementResult, WalletId } from '../../../ledger/index.ts'
import type { SettledClaim } from '../../../ledger/ledger.ts'
import { accountWallet, keyWallet } from '../../../ledger/wallet.ts'
import { RowStatement } from '../driver/row-statement.ts'
import type { Database } from '../driver/tables.ts'
import { writeTogether } from '../driver/write-together.ts'
import { readUsage } from '../usage/charge-usage.ts'
import { readWallets } from './budget-cells.ts'
import { openBudgetWallets } from './budget-wallets.ts'
import { type CountedCharge, claimName, type FoundRows, SettlementBatch } from './settlement-batch.ts'
import { lockLeases, lockWallets } from './sql-ledger-rows.ts'

/** Another process can interfere only with the first charge of a wallet that does not exist yet. */
const MAX_TRIES = 5

/**
 * Settles many calls in one transaction. It first writes what suits almost every batch. Only if the rows are not as
 * that assumes, it reads them and tries again.
 *
 * @throws RangeError as a rejection, if a figure does not fit the database.
 */
export async function settleAll(
  db: Database,
  settlements: readonly Settlement[],
): Promise<readonly SettlementResult[]> {
  const assumed = assume(settlements)
  if (assumed && (await writeTogether(db, assumed.writes()))) return assumed.results
  for (let tries = 1; ; tries++) {
    try {
      return await db.transaction().execute((trx) => settleFound(trx, settlements))
    } catch (error) {
      if (!(error instanceof RowsHaveChanged) || tries === MAX_TRIES) throw error
    }
  }
}

async function settleFound(
  trx: Database,
  settlements: readonly Settlement[],
): Promise<readonly SettlementResult[]> {
  // Not by the batch, which opens wallets without a limit. A budget of a call that held nothing may have none yet.
  const budgets = settlements.flatMap((settlement) => settlement.budgets ?? [])
  if (budgets.length > 0) await openBudgetWallets(trx, [...new Set(budgets)])
  const batch = new SettlementBatch(settlements, await findRows(trx, settlements))
  batch.assertFigures()
  for (const { statement, rows } of batch.writes()) {
    const { changes } = await statement.run(trx, rows)
    if (changes !== rows.length && !statement.loose) throw new RowsHaveChanged()
  }
  return batch.results
}

/** Returns the batch for the usual state of the rows; undefined if that state is impossible. */
function assume(settlements: readonly Settlement[]): SettlementBatch | undefined {
  if (settlements.some(({ kind }) => kind === 'void')) return undefined
  const batch = new SettlementBatch(settlements)
  try {
    batch.assertFigures()
  } catch {
    // Some settlements of a batch with figures that are too large may have been written before.
    return undefined
  }
  return batch
}

/** Thrown if the rows have changed between reading and writing. */
class RowsHaveChanged extends Error {
  override readonly name = 'RowsHaveChanged'

  constructor() {
    super('another process has settled the same calls meanwhile')
  }
}

const FIND_CLAIMS = RowStatement.select<{ id: string; owner: string }>(
  { id: 'text', owner: 'text' },
  `select found.id, found.owner from given
    join idempotency as found on found.id = given.id and found.owner = given.owner`,
  { locks: true },
)

async function ownClaims(trx: Database, claims: readonly SettledClaim[]): Promise<Set<string>> {
  const { rows } = await FIND_CLAIMS.run(
    trx,
    claims.map(({ id, owner }) => [id, owner]),
  )
  return new Set(rows.map(claimName))
}

interface StandingRow {
  readonly request_id: string
  readonly account: string | null
  readonly key: string | null
  readonly amount: bigint | null
  readonly budgets: string | null
  readonly voided: string | null
  readonly at: bigint | null
  readonly cost: bigint | null
  readonly usage: string | null
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

async function standingOf(trx: Database, requestIds: readonly string[]): Promise<Map<string, CountedCharge>> {
  const { rows } = await FIND_STANDING.run(
    trx,
    requestIds.map((id) => [id]),
  )
  return new Map(
    rows.map(({ request_id, account, key, amount, budgets, voided, at, cost, usage }) => {
      const charge = account !== null &&
        usage !== null && { account, key, amount: amount ?? 0n, at: Number(at), cost }
      const share = charge ? shareOfCharge({ ...charge, usage: readUsage(usage as string) }) : null
      const standing = {
        account,
        key,
        amount: amount ?? 0n,
        budgets: readWallets(budgets),
        voided: voided !== null,
      }
      return [request_id, { ...standing, share }]
    }),
  )
}

function walletsOf({ account, key, budgets = [], draws }: Settlement): WalletId[] {
  const drawn = draws.map(({ wallet }) => wallet)
  return key === null
    ? [accountWallet(account), ...budgets, ...drawn]
    : [accountWallet(account), keyWallet(key), ...budgets, ...drawn]
}

/** Locks wallets first: another transaction that settles the same calls waits there. */
async function findRows(trx: Database, settlements: readonly Settlement[]): Promise<FoundRows> {
  const wallets = await lockWallets(trx, settlements.flatMap(walletsOf))
  const claims = await ownClaims(
    trx,
    settlements.flatMap(({ claim }) => claim ?? []),
  )
  const standing = await standingOf(
    trx,
    settlements.map(({ requestId }) => requestId),
  )
  const leases = await lockLeases(
    trx,
    settlements.flatMap(({ requestId, draws }) =>
      standing.has(requestId) ? [] : draws.map(({ lease }) => lease),
    ),
  )
  return { wallets, claims, standing, leases }
}
