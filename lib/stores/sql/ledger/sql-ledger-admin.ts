import { assertFigure, MAX_AMOUNT } from '../../../core/catalog/money.ts'
import {
  accountWallet,
  type DepositResult,
  type WalletId,
  type WalletStatement,
} from '../../../ledger/index.ts'
import { RowStatement, type RowWrite } from '../driver/row-statement.ts'
import type { Database } from '../driver/tables.ts'
import { writePlanned, writeTogether } from '../driver/write-together.ts'
import { findWallets } from './sql-ledger-rows.ts'

const CHUNK_WALLETS = 1000

/*
 * The operations of operators: deposits, quotas, statements.
 */

const OPEN_PREPAID = RowStatement.insert('wallets', { id: 'text' }, 'on conflict (id) do nothing', {
  constants: { limited: 1, funds: 0, spent: 0, leased: 0, overrun: 0 },
  loose: true,
})

const WRITE_DEPOSITS = RowStatement.insert(
  'deposits',
  { account: 'text', reference: 'text', amount: 'bigint', at: 'bigint', reason: 'text' },
  'on conflict (account, reference) do nothing',
)

/** Leaves out a wallet whose funds would not fit 64 bits, or are not what they were. */
const ADD_FUNDS = RowStatement.update(
  'wallets',
  { id: 'text', amount: 'bigint', was: 'bigint' },
  'funds = found.funds + given.amount',
  `found.id = given.id and (given.was is null or found.funds = given.was)
    and found.funds <= ${MAX_AMOUNT} - case when given.amount > 0 then given.amount else 0 end
    and found.funds >= -${MAX_AMOUNT} - case when given.amount < 0 then given.amount else 0 end`,
)

const LIMIT_COLUMNS = { id: 'text', limited: 'bigint', funds: 'bigint' } as const
const NOTHING_SPENT = { constants: { spent: 0, leased: 0, overrun: 0 } }
const LIMIT = RowStatement.insert(
  'wallets',
  LIMIT_COLUMNS,
  'on conflict (id) do update set limited = excluded.limited',
  NOTHING_SPENT,
)
const LIMIT_TO = RowStatement.insert(
  'wallets',
  LIMIT_COLUMNS,
  'on conflict (id) do update set limited = excluded.limited, funds = excluded.funds',
  NOTHING_SPENT,
)

/** A deposit or adjustment. */
export interface Movement {
  readonly account: string
  readonly amount: bigint
  readonly reference: string
  readonly at: number
  /** Of an adjustment; null for a deposit. */
  readonly reason: string | null
}

/**
 * Returns the writes that add to an account's balance. They fail if a reference was used before, or the wallet's funds are not
 * as given.
 */
export function depositWrites(
  account: string,
  movements: readonly Omit<Movement, 'account'>[],
  funds: bigint | null = null,
): RowWrite[] {
  if (movements.length === 0) return []
  const wallet = accountWallet(account)
  const sum = movements.reduce((all, { amount }) => all + amount, 0n)
  const rows = movements.map(({ reference, amount, at, reason }) => [account, reference, amount, at, reason])
  return [
    { statement: OPEN_PREPAID, rows: [[wallet]] },
    { statement: ADD_FUNDS, rows: [[wallet, sum, funds]] },
    { statement: WRITE_DEPOSITS, rows },
  ]
}

/** Adds to an account's balance, once per reference. */
export async function deposit(db: Database, given: Omit<Movement, 'reason'>): Promise<DepositResult> {
  const { account, amount, reference } = given
  const writes = depositWrites(account, [{ ...given, reason: null }])
  if (await writeTogether(db, writes)) return 'deposited'
  const wallet = accountWallet(account)
  return writePlanned<DepositResult>(db, async () => {
    const [standing, wallets] = await Promise.all([
      findDeposit(db, account, reference),
      findWallets(db, [wallet]),
    ])
    if (standing) return { writes: [], result: standing.amount === amount ? 'known' : 'conflict' }
    assertFigure((wallets.get(wallet)?.funds ?? 0n) + amount, `funds of "${wallet}"`)
    return { writes, result: 'deposited' }
  })
}

/** Returns the deposit or adjustment of a reference. */
function findDeposit(db: Database, account: string, reference: string) {
  return db
    .selectFrom('deposits')
    .select(['amount', 'at', 'reason'])
    .where('account', '=', account)
    .where('reference', '=', reference)
    .executeTakeFirst()
}

/** Returns the write that opens a wallet, or changes its limit. */
export function limitWrite(
  id: WalletId,
  { limited, quota }: { readonly limited: boolean; readonly quota?: bigint },
): RowWrite {
  const statement = quota === undefined ? LIMIT : LIMIT_TO
  return { statement, rows: [[id, Number(limited), quota ?? 0n]] }
}

/** Opens a wallet, or changes its limit, in a transaction or by itself. */
export async function setLimit(
  db: Database,
  id: WalletId,
  limit: { readonly limited: boolean; readonly quota?: bigint },
): Promise<void> {
  const { statement, rows } = limitWrite(id, limit)
  await statement.run(db, rows)
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
