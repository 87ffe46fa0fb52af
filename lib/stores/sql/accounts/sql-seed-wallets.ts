import { accountWallet, keyWallet } from '../../../ledger/wallet.ts'
import { RowStatement } from '../driver/row-statement.ts'
import type { Database } from '../driver/tables.ts'

/** The initial balance of an account or the quota of a key, in nano-units; null: postpaid, or without a quota. */
export interface Opening {
  readonly id: string
  readonly amount: bigint | null
}

const ADD_FUNDS = RowStatement.update(
  'wallets',
  { id: 'text', amount: 'bigint' },
  'funds = found.funds + given.amount',
  'found.id = given.id',
)

/** Opens the wallets of new accounts and deposits their initial balances. */
export async function openAccountWallets(trx: Database, accounts: readonly Opening[]): Promise<void> {
  const at = BigInt(Date.now())
  const wallets = accounts.map(({ id, amount }) => ({
    id: accountWallet(id),
    limited: amount === null ? 0 : 1,
    ...EMPTY,
  }))
  // A wallet that exists already, with money deposited before its account was created, is used as it is.
  await trx
    .insertInto('wallets')
    .values(wallets)
    .onConflict((conflict) =>
      conflict.column('id').doUpdateSet(({ ref }) => ({ limited: ref('excluded.limited') })),
    )
    .execute()
  const deposits = accounts.flatMap(({ id, amount }) =>
    amount === null ? [] : [{ account: id, reference: 'opening', amount, at }],
  )
  if (deposits.length === 0) return
  const deposited = await trx
    .insertInto('deposits')
    .values(deposits)
    .onConflict((conflict) => conflict.columns(['account', 'reference']).doNothing())
    .returning(['account', 'amount'])
    .execute()
  await ADD_FUNDS.run(
    trx,
    deposited.map(({ account, amount }) => [accountWallet(account), amount]),
  )
}

export async function openKeyWallets(trx: Database, keys: readonly Opening[]): Promise<void> {
  const wallets = keys.map(({ id, amount }) => ({
    id: keyWallet(id),
    limited: amount === null ? 0 : 1,
    ...EMPTY,
    funds: amount ?? 0n,
  }))
  await trx
    .insertInto('wallets')
    .values(wallets)
    .onConflict((conflict) =>
      conflict
        .column('id')
        .doUpdateSet(({ ref }) => ({ limited: ref('excluded.limited'), funds: ref('excluded.funds') })),
    )
    .execute()
}

const EMPTY = { funds: 0n, spent: 0n, leased: 0n, overrun: 0n }
