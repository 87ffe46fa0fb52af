import { type Selectable, sql } from 'kysely'
import type { WalletId } from '../../../ledger/index.ts'
import type { AccountsTable, Database, KeysTable } from '../driver/tables.ts'
import type { BudgetsTable } from '../ledger/ledger-tables.ts'

/** A key with its account, as they are at home. */
export interface HomeKey {
  readonly key: MirroredKey
  readonly account: Selectable<AccountsTable>
  /** Whether the wallets limit spending. */
  readonly keyLimited: boolean
  readonly accountLimited: boolean
}

/** The columns of a key that a copy has: each region notes itself when it was used. */
export type MirroredKey = Omit<KeysTable, 'last_used_at'>

const KEY_COLUMNS = [
  'id',
  'account',
  'secret_hash',
  'enabled',
  'expires_at',
  'allow_ips',
  'allow_models',
  'rpm',
  'tpm',
  'created_at',
  'name',
  'note',
  'tags',
  'previous_hash',
  'previous_until',
] as const satisfies readonly (keyof MirroredKey)[]
const ACCOUNT_COLUMNS = [
  'id',
  'name',
  'rpm',
  'tpm',
  'concurrency',
  'regions',
  'line_regions',
  'created_at',
  'suspended',
] as const satisfies readonly (keyof AccountsTable)[]

/** Databases bound the number of parameters of a statement. */
export const AT_A_TIME = 500

/** Which keys of a database are meant. */
export interface KeysBy {
  /** The hashes of secrets, current or previous ones, or ids. */
  readonly by: 'secrets' | 'ids'
  readonly wanted: readonly string[]
  /** Whether copies of keys of other regions are. */
  readonly copies: boolean
}

export async function keysWithAccounts(db: Database, { by, wanted, copies }: KeysBy): Promise<HomeKey[]> {
  const found: HomeKey[] = []
  for (let i = 0; i < wanted.length; i += AT_A_TIME)
    found.push(...(await someKeys(db, { by, wanted: wanted.slice(i, i + AT_A_TIME), copies })))
  return found
}

async function someKeys(db: Database, { by, wanted, copies }: KeysBy): Promise<HomeKey[]> {
  const keyWallets = sql<WalletId>`'key:' || keys.id`
  const accountWallets = sql<WalletId>`'account:' || accounts.id`
  let query = db
    .selectFrom('keys')
    .innerJoin('accounts', 'accounts.id', 'keys.account')
    .leftJoin('wallets as key_wallets', (join) => join.on('key_wallets.id', '=', keyWallets))
    .leftJoin('wallets as account_wallets', (join) => join.on('account_wallets.id', '=', accountWallets))
    .select(KEY_COLUMNS.map((name) => `keys.${name} as key_${name}` as const))
    .select(ACCOUNT_COLUMNS.map((name) => `accounts.${name} as account_${name}` as const))
    .select(['key_wallets.limited as key_limited', 'account_wallets.limited as account_limited'])
    .where(({ eb, or }) =>
      by === 'ids'
        ? eb('keys.id', 'in', wanted)
        : or([eb('keys.secret_hash', 'in', wanted), eb('keys.previous_hash', 'in', wanted)]),
    )
  if (!copies)
    query = query.where(({ not, exists, selectFrom }) =>
      not(exists(selectFrom('mirrors').select('account').whereRef('mirrors.account', '=', 'accounts.id'))),
    )
  const rows = await query.execute()
  return rows.map((row) => ({
    key: part<MirroredKey>(row, 'key_', KEY_COLUMNS),
    account: part<Selectable<AccountsTable>>(row, 'account_', ACCOUNT_COLUMNS),
    keyLimited: row.key_limited === 1,
    accountLimited: row.account_limited !== 0,
  }))
}

/** Returns a text that differs if anything differs that a copy has. */
export function markOf(key: HomeKey): string {
  return JSON.stringify(key, (_name, value: unknown) => (typeof value === 'bigint' ? `${value}` : value))
}

function part<Row>(row: object, prefix: string, names: readonly (keyof Row & string)[]): Row {
  const cells = row as Readonly<Record<string, unknown>>
  return Object.fromEntries(names.map((name) => [name, cells[prefix + name]])) as Row
}

/** Returns the budgets of the accounts whose keys have these secrets, as SHA-256, or had them before. */
export function budgetsBySecret(db: Database, hashes: readonly string[]): Promise<BudgetsTable[]> {
  return db
    .selectFrom('budgets')
    .selectAll()
    .where('deleted', '=', 0)
    .where('account', 'in', ({ selectFrom }) =>
      selectFrom('keys')
        .select('account')
        .where(({ eb, or }) => or([eb('secret_hash', 'in', hashes), eb('previous_hash', 'in', hashes)])),
    )
    .execute()
}

/** Returns the budgets of accounts, as they are at home. */
export async function homeBudgets(db: Database, accounts: readonly string[]): Promise<BudgetsTable[]> {
  const found: BudgetsTable[] = []
  for (let i = 0; i < accounts.length; i += AT_A_TIME) {
    const rows = await db
      .selectFrom('budgets')
      .selectAll()
      .where('account', 'in', accounts.slice(i, i + AT_A_TIME))
      .where('deleted', '=', 0)
      .execute()
    found.push(...rows)
  }
  return found
}
