import type { WalletId } from '../../../ledger/index.ts'
import { accountWallet, type Spender, walletsOf } from '../../../ledger/wallet.ts'
import { RowStatement } from '../driver/row-statement.ts'
import type { Database } from '../driver/tables.ts'
import { chargesOf, type IdRange, voidsOf } from './charge-sums.ts'

const ADD = RowStatement.insert(
  'carried_spending',
  { wallet: 'text', amount: 'bigint', charges: 'bigint' },
  `on conflict (wallet) do update set amount = carried_spending.amount + excluded.amount,
    charges = carried_spending.charges + excluded.charges`,
)

/**
 * Adds the charges and voids of a range of ids to what is carried forward, and deletes the voids. The charges must be deleted in the
 * same transaction, and no other transaction may write to that range meanwhile.
 *
 * @returns how many charges that were.
 */
export async function carrySpending(trx: Database, range: IdRange): Promise<number> {
  const sums = new Map<WalletId, { amount: bigint; charges: number }>()
  let count = 0
  const add = ({ account, key, budgets }: Spender, amount: bigint, charges: number) => {
    const own = accountWallet(account)
    for (const wallet of walletsOf({ account, key, budgets })) {
      const sum = sums.get(wallet) ?? { amount: 0n, charges: 0 }
      sums.set(wallet, {
        amount: sum.amount + amount,
        charges: sum.charges + (wallet === own ? charges : 0),
      })
    }
  }
  for await (const page of chargesOf(trx, range))
    for (const charge of page) {
      count += charge.count
      add(charge, BigInt(charge.amount), charge.count)
    }
  for await (const page of voidsOf(trx, range))
    for (const undone of page) {
      if (undone.amount !== 0n) add({ ...undone, budgets: undone.charge?.budgets }, -undone.amount, 0)
    }
  const kept = await withoutPastBudgets(trx, [...sums.keys()])
  const rows = kept.map((wallet) => [wallet, sums.get(wallet)?.amount ?? 0n, sums.get(wallet)?.charges ?? 0])
  await ADD.run(trx, rows)
  await trx
    .deleteFrom('voids')
    .where('request_id', '>=', range.from)
    .where('request_id', '<', range.to)
    .execute()
  return count
}

const FIND = RowStatement.select<{ id: WalletId }>(
  { id: 'text' },
  'select found.id from given join wallets as found on found.id = given.id',
)

/** The wallets of past periods of budgets are deleted: their charges are no longer compared with anything. */
async function withoutPastBudgets(trx: Database, wallets: readonly WalletId[]): Promise<WalletId[]> {
  const isOfBudget = (wallet: WalletId) => wallet.startsWith('budget:')
  await trx
    .deleteFrom('carried_spending')
    .where('wallet', '>', 'budget:' as WalletId)
    // The character behind the colon.
    .where('wallet', '<', 'budget;' as WalletId)
    .where(({ not, exists, selectFrom }) =>
      not(exists(selectFrom('wallets').select('id').whereRef('wallets.id', '=', 'carried_spending.wallet'))),
    )
    .execute()
  const { rows } = await FIND.run(
    trx,
    wallets.filter(isOfBudget).map((wallet) => [wallet]),
  )
  const found = new Set(rows.map(({ id }) => id))
  return wallets.filter((wallet) => !isOfBudget(wallet) || found.has(wallet))
}
