import { type Insertable, sql } from 'kysely'
import { type Logger, quietLogger } from '../../../core/call/index.ts'
import { hashSecret, parseAmount } from '../../../core/catalog/index.ts'
import { MAX_AMOUNT } from '../../../core/catalog/money.ts'
import { ConfigEntries, type EntryList } from '../../../core/config/index.ts'
import type { KeySeed } from '../../../core/key-directory/index.ts'
import { accountWallet, keyWallet } from '../../../ledger/wallet.ts'
import { accountSettingsOf, keySettingsOf } from '../../../management/authority/config-authority.ts'
import type { Seeds } from '../../../management/index.ts'
import { checkDatabase, isPostgres } from '../driver/database.ts'
import { RowStatement } from '../driver/row-statement.ts'
import type { AccountsTable, Database, KeysTable, SeedsTable } from '../driver/tables.ts'
import { transact } from '../driver/transact.ts'
import { toColumns as accountColumns } from './account-rows.ts'
import { toColumns as keyColumns } from './key-rows.ts'

type AccountSeed = KeySeed['accounts'][number]
type SecretSeed = KeySeed['keys'][number]

/** The number of rows of each kind that were added to the database. */
export interface Seeded {
  readonly accounts: number
  readonly keys: number
}

/** The accounts and keys to add. */
export interface SeedEntries {
  readonly accounts: EntryList<AccountSeed>
  readonly keys: EntryList<SecretSeed>
}

/**
 * Adds the accounts and keys of a config to the database and opens their wallets, once per id. Rows that exist are not
 * changed, and deleted ones are not created again. If several processes start at once, each row is added once.
 *
 * Each 500 are one transaction, so that calls do not wait for all of them. A call after one that failed adds the rest.
 *
 * A key is left out with a warning if its account was deleted, or if another key has its secret by now.
 *
 * @param config accounts and keys as `loadConfig` returns them.
 * @throws RangeError if an amount does not fit 64 bits of nano-units.
 * @example
 * await seedAccountsAndKeys(db, config)
 */
export async function seedAccountsAndKeys(
  db: Database,
  config: SeedEntries,
  options: { logger?: Logger } = {},
): Promise<Seeded> {
  const logger = quietLogger(options.logger)
  let accounts = 0
  for (const page of ConfigEntries.of(config.accounts).read()) {
    const fresh = await unseeded(db, 'account', page)
    if (fresh.length > 0) accounts += await inTurn(db, (trx) => seedAccounts(trx, fresh))
  }
  let keys = 0
  for (const page of ConfigEntries.of(config.keys).read()) {
    const fresh = await unseeded(db, 'key', page)
    if (fresh.length > 0) keys += await inTurn(db, (trx) => seedKeys(trx, fresh, logger))
  }
  return { accounts, keys }
}

/** Runs a transaction in which processes that start at once wait for each other, as long as a statement may take. */
function inTurn(db: Database, run: (trx: Database) => Promise<number>): Promise<number> {
  return transact(db, async (trx) => {
    if (isPostgres(trx)) await sql`set local lock_timeout = 0`.execute(trx)
    return run(trx)
  })
}

/** Returns the items that no config has added. */
async function unseeded<T extends { readonly id: string }>(
  db: Database,
  kind: SeedsTable['kind'],
  items: readonly T[],
): Promise<T[]> {
  const rows = await db
    .selectFrom('seeds')
    .select('id')
    .where('kind', '=', kind)
    .where('id', 'in', idsOf(items))
    .execute()
  const seeded = new Set(idsOf(rows))
  return items.filter(({ id }) => !seeded.has(id))
}

async function seedAccounts(trx: Database, accounts: readonly AccountSeed[]): Promise<number> {
  const fresh = await claim(trx, 'account', accounts)
  if (fresh.length === 0) return 0
  const rows = fresh.map(toAccountRow)
  const openings = fresh.map(({ id, balance }) => ({
    id,
    amount: toNanos(balance, `account "${id}": balance`),
  }))
  const inserted = await trx
    .insertInto('accounts')
    .values(rows)
    .onConflict((conflict) => conflict.column('id').doNothing())
    .returning('id')
    .execute()
  const added = new Set(idsOf(inserted))
  if (added.size > 0)
    await openAccountWallets(
      trx,
      openings.filter(({ id }) => added.has(id)),
    )
  return added.size
}

async function seedKeys(trx: Database, keys: readonly SecretSeed[], logger: Logger): Promise<number> {
  const known = await accountsAmong(trx, keys)
  const homeless = keys.filter(({ account }) => !known.has(account))
  const fresh = await claim(
    trx,
    'key',
    keys.filter(({ account }) => known.has(account)),
  )
  const rows = fresh.map(toKeyRow)
  const openings = fresh.map(({ id, quota }) => ({ id, amount: toNanos(quota, `key "${id}": quota`) }))
  if (homeless.length > 0)
    logger.warn({ keys: idsOf(homeless) }, 'keys not seeded: their account was deleted from the database')
  if (rows.length === 0) return 0
  const inserted = await trx
    .insertInto('keys')
    .values(rows)
    .onConflict((conflict) => conflict.doNothing())
    .returning('id')
    .execute()
  const added = new Set(idsOf(inserted))
  if (added.size > 0)
    await openKeyWallets(
      trx,
      openings.filter(({ id }) => added.has(id)),
    )
  if (added.size < rows.length) {
    const left = idsOf(fresh).filter((id) => !added.has(id))
    await unclaimAbsent(trx, left)
    logger.warn({ keys: left }, 'keys not seeded: the database has a key with this id or secret')
  }
  return added.size
}

/** Marks ids as seeded. Returns the items whose id was not marked before, even if several processes ask at once. */
async function claim<T extends { readonly id: string }>(
  trx: Database,
  kind: SeedsTable['kind'],
  items: readonly T[],
): Promise<T[]> {
  if (items.length === 0) return []
  const seeded_at = BigInt(Date.now())
  const claimed = await trx
    .insertInto('seeds')
    .values(items.map(({ id }) => ({ kind, id, seeded_at })))
    .onConflict((conflict) => conflict.columns(['kind', 'id']).doNothing())
    .returning('id')
    .execute()
  const fresh = new Set(claimed.map(({ id }) => id))
  return items.filter(({ id }) => fresh.has(id))
}

/** Takes the mark from keys that are not there, because another key has their secret: the config may give them another one. */
async function unclaimAbsent(trx: Database, ids: readonly string[]): Promise<void> {
  const there = trx.selectFrom('keys').select('id').where('id', 'in', ids)
  await trx
    .deleteFrom('seeds')
    .where('kind', '=', 'key')
    .where('id', 'in', ids)
    .where('id', 'not in', there)
    .execute()
}

async function accountsAmong(trx: Database, keys: readonly SecretSeed[]): Promise<Set<string>> {
  const named = [...new Set(keys.map(({ account }) => account))]
  const rows = await trx.selectFrom('accounts').select('id').where('id', 'in', named).execute()
  return new Set(rows.map(({ id }) => id))
}

function toAccountRow(account: AccountSeed): Insertable<AccountsTable> {
  return {
    id: account.id,
    ...accountColumns(accountSettingsOf(account)),
    created_at: BigInt(Date.now()),
  }
}

function toKeyRow(key: SecretSeed): KeysTable {
  return {
    id: key.id,
    account: key.account,
    secret_hash: hashSecret(key.secret),
    ...keyColumns(keySettingsOf(key)),
    created_at: BigInt(Date.now()),
    ...{ previous_hash: null, previous_until: null, last_used_at: null },
  }
}

function toNanos(amount: string | undefined, what: string): bigint | null {
  if (amount === undefined) return null
  const nanos = parseAmount(amount)
  if (nanos > MAX_AMOUNT || nanos < -MAX_AMOUNT) throw new RangeError(`${what} must be below 9223372036`)
  return nanos
}

function idsOf(items: readonly { readonly id: string }[]): string[] {
  return items.map(({ id }) => id)
}

/** The initial balance of an account or the quota of a key, in nano-units; null: postpaid, or without a quota. */
interface Opening {
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
async function openAccountWallets(trx: Database, accounts: readonly Opening[]): Promise<void> {
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

async function openKeyWallets(trx: Database, keys: readonly Opening[]): Promise<void> {
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

/** The ids that configs have added to a database, and those of deleted keys. */
export class SqlSeeds implements Seeds {
  readonly #db: Database

  constructor(db: Database) {
    checkDatabase('SqlSeeds', db)
    this.#db = db
  }

  async list(kind: SeedsTable['kind'], after: string, limit: number): Promise<readonly string[]> {
    const rows = await this.#db
      .selectFrom('seeds')
      .select('id')
      .where('kind', '=', kind)
      .where('id', '>', after)
      .orderBy('id')
      .limit(limit)
      .execute()
    return idsOf(rows)
  }

  async has(kind: SeedsTable['kind'], id: string): Promise<boolean> {
    const row = await this.#db
      .selectFrom('seeds')
      .select('id')
      .where('kind', '=', kind)
      .where('id', '=', id)
      .executeTakeFirst()
    return row !== undefined
  }
}
