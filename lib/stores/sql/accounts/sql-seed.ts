import { sql } from 'kysely'
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
import type { Database, SeedsTable } from '../driver/tables.ts'
import { transact } from '../driver/transact.ts'
import { ACCOUNT_COLUMNS, cellsOfAccount } from './account-rows.ts'
import { cellsOfKey, KEY_COLUMNS } from './key-rows.ts'

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
    if (fresh.length > 0) accounts += await transactWithoutLockTimeout(db, (trx) => seedAccounts(trx, fresh))
  }
  let keys = 0
  for (const page of ConfigEntries.of(config.keys).read()) {
    const fresh = await unseeded(db, 'key', page)
    if (fresh.length > 0) keys += await transactWithoutLockTimeout(db, (trx) => seedKeys(trx, fresh, logger))
  }
  if (isPostgres(db) && accounts + keys >= MANY) await analyze(db, logger)
  return { accounts, keys }
}

/** So many rows at once change how Postgres finds a row best. Several processes may add them together. */
const MANY = 500

/**
 * Has Postgres count the rows of the tables that were filled. Until it does so by itself, a minute later, it reads all of
 * them to find one.
 */
async function analyze(db: Database, logger: Logger): Promise<void> {
  try {
    for (const table of ['accounts', 'keys', 'seeds', 'wallets'])
      await sql`analyze ${sql.table(table)}`.execute(db)
  } catch (error) {
    logger.warn(
      { reason: (error as Error).message },
      'Postgres could not count new accounts and keys: it finds them slowly until its autovacuum has done so',
    )
  }
}

/** Runs a transaction in which processes that start at once wait for each other, as long as a statement may take. */
function transactWithoutLockTimeout(db: Database, run: (trx: Database) => Promise<number>): Promise<number> {
  return transact(db, async (trx) => {
    if (isPostgres(trx)) await sql`set local lock_timeout = 0`.execute(trx)
    return run(trx)
  })
}

const SEED_COLUMNS = { kind: 'text', id: 'text' } as const
const FIND_SEEDS = RowStatement.select<{ id: string }>(
  SEED_COLUMNS,
  'select found.id from given join seeds as found on found.kind = given.kind and found.id = given.id',
)
const CLAIM_SEEDS = RowStatement.insert<{ id: string }>(
  'seeds',
  { ...SEED_COLUMNS, seeded_at: 'bigint' },
  'on conflict (kind, id) do nothing',
  { loose: true, returning: 'id', order: ['kind', 'id'] },
)

/** Returns the items that no config has added. */
async function unseeded<T extends { readonly id: string }>(
  db: Database,
  kind: SeedsTable['kind'],
  items: readonly T[],
): Promise<T[]> {
  const { rows } = await FIND_SEEDS.run(
    db,
    items.map(({ id }) => [kind, id]),
  )
  const seeded = new Set(idsOf(rows))
  return items.filter(({ id }) => !seeded.has(id))
}

const ADD_ACCOUNTS = RowStatement.insert<{ id: string }>(
  'accounts',
  ACCOUNT_COLUMNS,
  'on conflict (id) do nothing',
  { loose: true, returning: 'id' },
)

async function seedAccounts(trx: Database, accounts: readonly AccountSeed[]): Promise<number> {
  const fresh = await claim(trx, 'account', accounts)
  const openings = fresh.map(({ id, balance }) => ({
    id,
    amount: toNanos(balance, `account "${id}": balance`),
  }))
  const { rows } = await ADD_ACCOUNTS.run(
    trx,
    fresh.map((account) => cellsOfAccount(account.id, accountSettingsOf(account), Date.now())),
  )
  const added = new Set(idsOf(rows))
  await openAccountWallets(
    trx,
    openings.filter(({ id }) => added.has(id)),
  )
  return added.size
}

/** Another key may have the id or the secret. */
const ADD_KEYS = RowStatement.insert<{ id: string }>('keys', KEY_COLUMNS, 'on conflict do nothing', {
  loose: true,
  returning: 'id',
})

async function seedKeys(trx: Database, keys: readonly SecretSeed[], logger: Logger): Promise<number> {
  const known = await accountsAmong(trx, keys)
  const homeless = keys.filter(({ account }) => !known.has(account))
  const fresh = await claim(
    trx,
    'key',
    keys.filter(({ account }) => known.has(account)),
  )
  const openings = fresh.map(({ id, quota }) => ({ id, amount: toNanos(quota, `key "${id}": quota`) }))
  if (homeless.length > 0)
    logger.warn({ keys: idsOf(homeless) }, 'keys not seeded: their account was deleted from the database')
  const { rows } = await ADD_KEYS.run(
    trx,
    fresh.map((key) => cellsOfKey(key.id, keySettingsOf(key), hashSecret(key.secret), Date.now())),
  )
  const added = new Set(idsOf(rows))
  await openKeyWallets(
    trx,
    openings.filter(({ id }) => added.has(id)),
  )
  if (added.size < fresh.length) {
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
  const seeded_at = BigInt(Date.now())
  const { rows } = await CLAIM_SEEDS.run(
    trx,
    items.map(({ id }) => [kind, id, seeded_at]),
  )
  const fresh = new Set(idsOf(rows))
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

const FIND_ACCOUNTS = RowStatement.select<{ id: string }>(
  { id: 'text' },
  'select found.id from given join accounts as found on found.id = given.id',
)

async function accountsAmong(trx: Database, keys: readonly SecretSeed[]): Promise<Set<string>> {
  const named = [...new Set(keys.map(({ account }) => account))]
  const { rows } = await FIND_ACCOUNTS.run(
    trx,
    named.map((id) => [id]),
  )
  return new Set(idsOf(rows))
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

const EMPTY = { spent: 0, leased: 0, overrun: 0 }
const WALLET_COLUMNS = { id: 'text', limited: 'bigint', funds: 'bigint' } as const
/** A wallet that exists already, with money deposited before its account was created, is used as it is. */
const OPEN_ACCOUNT_WALLETS = RowStatement.insert(
  'wallets',
  WALLET_COLUMNS,
  'on conflict (id) do update set limited = excluded.limited',
  { constants: EMPTY },
)
const OPEN_KEY_WALLETS = RowStatement.insert(
  'wallets',
  WALLET_COLUMNS,
  'on conflict (id) do update set limited = excluded.limited, funds = excluded.funds',
  { constants: EMPTY },
)
const DEPOSIT = RowStatement.insert<{ account: string; amount: bigint }>(
  'deposits',
  { account: 'text', reference: 'text', amount: 'bigint', at: 'bigint' },
  'on conflict (account, reference) do nothing',
  { loose: true, returning: 'account, amount', order: ['account', 'reference'] },
)
const ADD_FUNDS = RowStatement.update(
  'wallets',
  { id: 'text', amount: 'bigint' },
  'funds = found.funds + given.amount',
  'found.id = given.id',
)

/** Opens the wallets of new accounts and deposits their initial balances. */
async function openAccountWallets(trx: Database, accounts: readonly Opening[]): Promise<void> {
  const at = BigInt(Date.now())
  await OPEN_ACCOUNT_WALLETS.run(
    trx,
    accounts.map(({ id, amount }) => [accountWallet(id), amount === null ? 0 : 1, 0n]),
  )
  const { rows } = await DEPOSIT.run(
    trx,
    accounts.flatMap(({ id, amount }) => (amount === null ? [] : [[id, 'opening', amount, at]])),
  )
  await ADD_FUNDS.run(
    trx,
    rows.map(({ account, amount }) => [accountWallet(account), amount]),
  )
}

async function openKeyWallets(trx: Database, keys: readonly Opening[]): Promise<void> {
  await OPEN_KEY_WALLETS.run(
    trx,
    keys.map(({ id, amount }) => [keyWallet(id), amount === null ? 0 : 1, amount ?? 0n]),
  )
}

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
