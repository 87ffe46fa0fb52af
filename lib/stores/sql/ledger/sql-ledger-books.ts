import {
  accountWallet,
  type DepositResult,
  type WalletId,
  type WalletStatement,
} from '../../../ledger/index.ts'
import type { Database } from '../driver/tables.ts'
import { type LockedWallet, lockWallets, openWallets, saveWallets } from './sql-ledger-rows.ts'

const CHUNK_WALLETS = 1000

/*
 * What those do who run the service: deposits, quotas, statements.
 */

/**
 * Adds to an account's balance, once per reference.
 *
 * @param reason of an adjustment; null for a deposit.
 */
export async function deposit(
  trx: Database,
  account: string,
  amount: bigint,
  reference: string,
  at: number,
  reason: string | null = null,
): Promise<DepositResult> {
  const wallet = await open(trx, accountWallet(account), true)
  const inserted = await trx
    .insertInto('deposits')
    .values({ account, reference, amount, at: BigInt(at), reason })
    .onConflict((conflict) => conflict.columns(['account', 'reference']).doNothing())
    .returning('amount')
    .execute()
  if (inserted.length === 0) {
    const standing = await trx
      .selectFrom('deposits')
      .select('amount')
      .where('account', '=', account)
      .where('reference', '=', reference)
      .executeTakeFirstOrThrow()
    return standing.amount === amount ? 'known' : 'conflict'
  }
  wallet.funds += amount
  await saveWallets(trx, [wallet])
  return 'deposited'
}

/** Opens a wallet, or changes its limit. */
export async function setLimit(
  trx: Database,
  id: WalletId,
  { limited, quota }: { limited: boolean; quota?: bigint },
): Promise<void> {
  const wallet = await open(trx, id, limited)
  wallet.limited = limited
  if (quota !== undefined) wallet.funds = quota
  await saveWallets(trx, [wallet])
}

/** Returns the state of wallets, in the order of the ids. Unknown wallets are left out. */
export async function statementsOf(db: Database, ids: readonly WalletId[]): Promise<WalletStatement[]> {
  const statements: WalletStatement[] = []
  for (let i = 0; i < ids.length; i += CHUNK_WALLETS) {
    const rows = await db
      .selectFrom('wallets')
      .selectAll()
      .where('id', 'in', ids.slice(i, i + CHUNK_WALLETS))
      .execute()
    for (const { id, limited, ...figures } of rows) {
      statements.push({ wallet: id, limited: limited !== 0, ...figures })
    }
  }
  const place = new Map(ids.map((id, i) => [id, i]))
  return statements.sort((one, other) => (place.get(one.wallet) ?? 0) - (place.get(other.wallet) ?? 0))
}

/** Locks a wallet; opens it if it does not exist. */
async function open(trx: Database, id: WalletId, limited: boolean): Promise<LockedWallet> {
  const found = (await lockWallets(trx, [id])).get(id)
  const wallet = found ?? (await openWallets(trx, [id], limited)).get(id)
  if (!wallet) throw new Error(`wallet "${id}" is gone`)
  return wallet
}
