import { type Logger, quietLogger } from '../../../core/call/index.ts'
import type { AccountShare, RegionState } from '../../../endpoints/admin/regions/region-routes.ts'
import type { Ledger, LedgerBooks, WalletId } from '../../../ledger/index.ts'
import { accountWallet, keyWallet } from '../../../ledger/index.ts'
import { HomeExchange } from '../../../ledger/regions/home-exchange.ts'
import { RegionRounds } from '../../../ledger/regions/region-rounds.ts'
import { RegionalLedger } from '../../../ledger/regions/regional-ledger.ts'
import type { KeyDirectory } from '../../../middleware/authenticate/index.ts'
import { checkDatabase } from '../driver/check-database.ts'
import { openRegion } from '../driver/open-database.ts'
import type { Database } from '../driver/tables.ts'
import { AT_A_TIME } from './mirror-rows.ts'
import { RegionalKeys } from './regional-keys.ts'
import { SqlHomeStore } from './sql-home-store.ts'
import { SqlMirrors } from './sql-mirrors.ts'
import { SqlShareStore } from './sql-share-store.ts'

/** Options of {@link SqlRegions.open}. */
export interface SqlRegionsOptions {
  /** The name of this region. */
  readonly region: string
  /** The Postgres of this region. */
  readonly db: Database
  /** The URLs of the Postgres of each other region, by its name. */
  readonly databases: ReadonlyMap<string, string>
  /** The ledger in it. */
  readonly ledger: Ledger & LedgerBooks
  /** The directory of keys in it. */
  readonly keys: KeyDirectory
  /** How long keys of another region are served while it does not answer, in milliseconds. Defaults to 24 hours. */
  readonly maxAwayMs?: number
  /** Logs when a region goes away and when it is back. Defaults to the console. */
  readonly logger?: Logger
  /** Called when a region goes away and when it is back, for metrics. Defaults to nothing. */
  readonly onChange?: (region: string, away: boolean) => void
}

const DAY_MS = 86_400_000
/** For exchanges, look-ups of keys, and rounds. */
const CONNECTIONS = 4
const STATEMENT_MS = 3000
const LOCK_MS = 500

/**
 * A region among others, each with a Postgres of its own: serves accounts of the others out of copies and shares, which its own
 * database has. Use its `keys` and `ledger` in place of those that it is given.
 *
 * @example
 * const databases = new Map([['us', 'postgres://gateway:secret@db.us.internal/gateway']])
 * const regions = await SqlRegions.open({ region: 'eu', db, databases, ledger: new SqlLedger(db), keys: new SqlKeyDirectory(db) })
 * const pool = new LeasePool({ ledger: regions.ledger })
 * regions.onCopy(() => budgets.refresh())
 */
export class SqlRegions {
  readonly ledger: RegionalLedger
  readonly keys: KeyDirectory
  readonly #region: string
  readonly #db: Database
  readonly #far: readonly Database[]
  readonly #mirrors: SqlMirrors
  readonly #stores: ReadonlyMap<string, SqlHomeStore>
  readonly #exchanges: ReadonlyMap<string, HomeExchange>
  readonly #rounds: readonly RegionRounds[]
  readonly #touching: NodeJS.Timeout
  #onCopy: () => Promise<void> = async () => {}

  private constructor(options: SqlRegionsOptions, opened: ReadonlyMap<string, Database>) {
    const { region, db, ledger, keys, onChange, maxAwayMs = DAY_MS } = options
    const logger = quietLogger(options.logger)
    const shares = new SqlShareStore(db)
    this.#region = region
    this.#db = db
    this.#far = [...opened.values()]
    this.#stores = new Map(Array.from(opened, ([name, far]) => [name, new SqlHomeStore(far)]))
    const mirrors = new SqlMirrors(db, this.#stores, logger)
    this.#mirrors = mirrors
    this.#exchanges = new Map(
      Array.from(this.#stores, ([name, home]) => [
        name,
        new HomeExchange({ name, region, shares, home, logger, onChange: (away) => onChange?.(name, away) }),
      ]),
    )
    this.ledger = new RegionalLedger({ ledger, shares, homes: this.#exchanges })
    const pairs = [...this.#exchanges.values()].map((exchange) => {
      return { exchange, store: this.#stores.get(exchange.name) as SqlHomeStore }
    })
    let used = new Set<WalletId>()
    this.keys = new RegionalKeys({
      keys,
      mirrors,
      regions: pairs,
      onUse: (ids) => {
        for (const id of ids) used.add(keyWallet(id))
      },
      // Its own database is away, which others tell.
      onCopy: () => this.#onCopy().catch(() => {}),
    })
    this.#rounds = pairs.map(
      ({ exchange, store: home }) => new RegionRounds({ exchange, home, shares, mirrors, logger, maxAwayMs }),
    )
    this.#touching = setInterval(() => {
      const wallets = [...new Set([...used, ...this.ledger.takeUsed()])]
      used = new Set()
      // What is not noted now is noted later: it may not be used again, and must be looked after.
      void shares
        .touch(wallets, Date.now())
        .catch(() => wallets)
        .then((left) => {
          for (const wallet of left) used.add(wallet)
        })
    }, 1000).unref()
  }

  /** @throws TypeError if a URL is not one of Postgres. */
  static async open(options: SqlRegionsOptions): Promise<SqlRegions> {
    checkDatabase('SqlRegions', options.db)
    const opened = new Map<string, Database>()
    for (const [name, url] of options.databases) {
      const limits = { poolSize: CONNECTIONS, statementTimeoutMs: STATEMENT_MS, lockTimeoutMs: LOCK_MS }
      opened.set(
        name,
        await openRegion(url, { ...(options.logger && { logger: options.logger }), ...limits }),
      )
    }
    return new SqlRegions(options, opened)
  }

  /** Has something read before a key that was copied is used: a call must find the budgets that came with the key. */
  onCopy(read: () => Promise<void>): void {
    this.#onCopy = read
  }

  /** The other regions that do not answer, as far as this process knows. */
  get away(): readonly string[] {
    return [...this.#exchanges.values()].filter(({ away }) => away).map(({ name }) => name)
  }

  /** Returns the home of an account; undefined if it is this region, or there is no such account here. */
  homeOf(account: string): Promise<string | undefined> {
    return this.#mirrors.homeOf(account)
  }

  /** Returns a region that has an account of this id, of those that answer. */
  async regionWith(account: string): Promise<string | undefined> {
    return (await this.#elsewhere([account])).get(account) ?? undefined
  }

  /**
   * Returns the homes of accounts, which stay where they were added first, whatever is wanted of them since: with the balance. An
   * account that no region has is where it is wanted. It is null while a region that may have it does not answer.
   */
  async homesOf(
    wanted: readonly { readonly id: string; readonly home: string }[],
  ): Promise<ReadonlyMap<string, string | null>> {
    const homes = new Map<string, string | null>(wanted.map(({ id, home }) => [id, home]))
    const here = new SqlHomeStore(this.#db)
    const ids = [...homes.keys()]
    for (let i = 0; i < ids.length; i += AT_A_TIME) {
      const some = ids.slice(i, i + AT_A_TIME)
      const copied = await this.#mirrors.homesOf(some)
      const own = new Set(await here.accountsAmong(some))
      // A region adds none but its own.
      const missing = some.filter((id) => homes.get(id) === this.#region && !own.has(id) && !copied.has(id))
      const found = missing.length > 0 ? await this.#elsewhere(missing) : []
      for (const [id, home] of [...copied, ...found]) homes.set(id, home)
      for (const id of own) homes.set(id, this.#region)
    }
    return homes
  }

  /** Returns which other region has each of some accounts; null: one that does not answer may. */
  async #elsewhere(accounts: readonly string[]): Promise<ReadonlyMap<string, string | null>> {
    const asked = Array.from(this.#stores, async ([name, store]) => {
      const found = await this.#exchanges.get(name)?.ask(() => store.accountsAmong(accounts))
      return (found ?? []).map((id) => [id, name] as const)
    })
    const answers = await Promise.allSettled(asked)
    const isWhole = answers.every(({ status }) => status === 'fulfilled')
    const unknown = isWhole ? [] : accounts.map((id) => [id, null] as const)
    const found = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
    return new Map<string, string | null>([...unknown, ...found])
  }

  /** Returns the states of the other regions. */
  async list(): Promise<readonly RegionState[]> {
    const sums = new Map((await this.#mirrors.sums()).map((each) => [each.home, each]))
    return Array.from(this.#exchanges.values(), ({ name, away, since }) => {
      const { accounts = 0, held = 0n } = sums.get(name) ?? {}
      return { name, away, since, accounts, held }
    })
  }

  /** Returns what other regions have of an account that has its home here. */
  async sharesOf(account: string): Promise<readonly AccountShare[]> {
    const rows = await this.#db
      .selectFrom('lent_shares')
      .select(['region', 'granted', 'returned', 'spent', 'reported_at'])
      .where('wallet', '=', accountWallet(account))
      .orderBy('region')
      .execute()
    return rows.map(({ region, granted, returned, spent, reported_at }) => ({
      region,
      transferred: granted - returned,
      spent,
      reportedAt: Number(reported_at),
    }))
  }

  /** Tells homes what was spent, and closes their databases. Close the pool of its `ledger` first. */
  async close(): Promise<void> {
    clearInterval(this.#touching)
    await Promise.all(this.#rounds.map((rounds) => rounds.close()))
    await Promise.all(this.#far.map((db) => db.destroy()))
  }
}
