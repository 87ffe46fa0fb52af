import { setTimeout as sleep } from 'node:timers/promises'
import { budgetOfWallet } from '../../../ledger/budgets/budget.ts'
import type { WalletId } from '../../../ledger/index.ts'
import type {
  PreparedReport,
  Share,
  ShareAnswer,
  ShareReport,
  ShareStore,
} from '../../../ledger/regions/region-store.ts'
import { checkDatabase } from '../driver/check-database.ts'
import type { Cell } from '../driver/columns.ts'
import { RowStatement } from '../driver/row-statement.ts'
import type { Database } from '../driver/tables.ts'
import { APPLY, PREPARE } from './share-statements.ts'

const SHARE_COLUMNS = { wallet: 'text', home: 'text', used_at: 'bigint' } as const
const NOTHING = { seq: 0, received: 0, returned: 0, told_spent: 0, told_returned: 0, elsewhere: 0, in_use: 1 }

/** Opens shares of wallets, which hold nothing yet. */
export const OPEN_SHARES = RowStatement.insert('shares', SHARE_COLUMNS, 'on conflict (wallet) do nothing', {
  constants: NOTHING,
  loose: true,
})

// Both leave out what somebody else has locked: they would keep the rows of the others locked while they wait.
const TOUCH = RowStatement.update<{ wallet: string }>(
  'shares',
  { wallet: 'text', at: 'bigint' },
  'used_at = greatest(found.used_at, given.at), in_use = 1',
  'found.wallet = given.wallet',
  'wallet',
  { order: 'wallet', locks: 'free ones' },
)
const REST = RowStatement.update(
  'shares',
  { wallet: 'text', before: 'bigint' },
  'in_use = 0',
  `found.wallet = given.wallet and found.used_at < given.before and found.told_returned = found.returned
    and found.told_spent = (select spent from wallets where wallets.id = found.wallet)`,
  undefined,
  { order: 'wallet', locks: 'free ones' },
)

/** How often a wallet is tried that is locked, and the pause between two tries. */
const MAX_TRIES = 5
const PAUSE_MS = 20

/** No process claims a home for longer, whatever its clock is ahead. */
const MAX_CLAIM_MS = 120_000

/** More than a region has in use of a home; what is beyond has its turn when others rest. */
const MAX_SHARES = 20_000

/**
 * The shares that a region has of wallets of others, in its own Postgres.
 *
 * @example
 * const shares = new SqlShareStore(await openDatabase('postgres://gateway:secret@db.eu.internal/gateway'))
 */
export class SqlShareStore implements ShareStore {
  readonly #db: Database

  constructor(db: Database) {
    checkDatabase('SqlShareStore', db)
    this.#db = db
  }

  async homesOf(wallets: readonly WalletId[]): Promise<ReadonlyMap<WalletId, string>> {
    const budgets = new Map(wallets.map((wallet) => [wallet, budgetOfWallet(wallet)]))
    const [shares, mirrored] = await Promise.all([
      this.#db
        .selectFrom('shares')
        .select(['wallet', 'home'])
        .where('wallet', 'in', [...wallets, '' as WalletId])
        .execute(),
      this.#homesOfBudgets([...budgets.values()].filter((id) => id !== undefined)),
    ])
    const homes = new Map(shares.map(({ wallet, home }) => [wallet, home]))
    const opened = [...budgets].flatMap(([wallet, budget]) => {
      const home = budget === undefined || homes.has(wallet) ? undefined : mirrored.get(budget)
      return home === undefined ? [] : [[wallet, home] as const]
    })
    await OPEN_SHARES.run(
      this.#db,
      opened.map(([wallet, home]) => [wallet, home, Date.now()]),
    )
    for (const [wallet, home] of opened) homes.set(wallet, home)
    return homes
  }

  async #homesOfBudgets(ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
    if (ids.length === 0) return new Map()
    const rows = await this.#db
      .selectFrom('budgets')
      .innerJoin('mirrors', 'mirrors.account', 'budgets.account')
      .select(['budgets.id', 'mirrors.home'])
      .where('budgets.id', 'in', ids)
      .execute()
    return new Map(rows.map(({ id, home }) => [id, home]))
  }

  async touch(wallets: readonly WalletId[], at: number): Promise<readonly WalletId[]> {
    const rows = await this.#runFree(
      TOUCH,
      wallets.map((wallet) => [wallet, at]),
    )
    const touched = new Set(rows.map(({ wallet }) => wallet))
    const left = wallets.filter((wallet) => !touched.has(wallet))
    if (left.length === 0) return []
    const shares = this.#db.selectFrom('shares').select('wallet').where('wallet', 'in', left)
    return (await shares.execute()).map(({ wallet }) => wallet)
  }

  async inUse(home: string): Promise<readonly Share[]> {
    const rows = await this.#db
      .selectFrom('shares')
      .innerJoin('wallets', 'wallets.id', 'shares.wallet')
      .select(['shares.wallet', 'wallets.limited', 'wallets.funds', 'wallets.spent', 'wallets.leased'])
      .select(['shares.elsewhere', 'shares.used_at', 'shares.returned'])
      .select(['shares.told_spent', 'shares.told_returned'])
      .where('shares.home', '=', home)
      .where('shares.in_use', '=', 1)
      .limit(MAX_SHARES)
      .execute()
    return rows.map(({ limited, used_at, returned, told_spent, told_returned, ...figures }) => ({
      ...figures,
      limited: limited !== 0,
      usedAt: Number(used_at),
      isTold: told_spent === figures.spent && told_returned === returned,
    }))
  }

  async wake(home: string): Promise<void> {
    const untold = this.#db
      .selectFrom('shares')
      .innerJoin('wallets', 'wallets.id', 'shares.wallet')
      .select('shares.wallet')
      .where('shares.home', '=', home)
      .where('shares.in_use', '=', 0)
      .where(({ eb, or, ref }) =>
        or([
          eb('shares.told_spent', '<>', ref('wallets.spent')),
          eb('shares.told_returned', '<>', ref('shares.returned')),
        ]),
      )
      .limit(MAX_SHARES)
    const free = untold.forUpdate('shares').skipLocked()
    await this.#db.updateTable('shares').set({ in_use: 1 }).where('wallet', 'in', free).execute()
  }

  async rest(wallets: readonly WalletId[], before: number): Promise<void> {
    await REST.run(
      this.#db,
      wallets.map((wallet) => [wallet, before]),
    )
  }

  async prepare(
    shares: readonly { readonly wallet: WalletId; readonly give: bigint }[],
  ): Promise<readonly PreparedReport[]> {
    const rows = await this.#runFree(
      PREPARE,
      shares.map(({ wallet, give }) => [wallet, give]),
    )
    return rows.map(({ seq, ...row }) => ({ ...row, wallet: row.wallet as WalletId, seq: Number(seq) }))
  }

  async apply(
    answers: readonly { readonly answer: ShareAnswer; readonly report: ShareReport }[],
  ): Promise<void> {
    await this.#runFree(
      APPLY,
      answers.map(({ answer, report }) => [
        answer.wallet,
        report.seq,
        answer.granted,
        report.returned,
        report.spent,
        answer.elsewhere,
      ]),
    )
  }

  /**
   * Runs a statement for all wallets that nobody has locked. A settlement locks one for a moment, after which it is tried again;
   * one that stays locked has its turn with a later exchange.
   */
  async #runFree<Row extends { readonly wallet: string }>(
    statement: RowStatement<Row>,
    given: readonly (readonly [wallet: WalletId, ...Cell[]])[],
  ): Promise<Row[]> {
    const done: Row[] = []
    let left = given
    for (let tries = 1; left.length > 0; tries++) {
      const { rows } = await statement.run(this.#db, left)
      done.push(...rows)
      const wallets = new Set(done.map(({ wallet }) => wallet))
      left = given.filter(([wallet]) => !wallets.has(wallet))
      if (left.length === 0 || tries === MAX_TRIES) break
      await sleep(PAUSE_MS)
    }
    return done
  }

  async claim(home: string, owner: string, at: number, until: number): Promise<number | undefined> {
    const owned = { owner, owned_until: BigInt(until) }
    const row = await this.#db
      .insertInto('homes')
      .values({ name: home, ...owned, contact_at: BigInt(at) })
      .onConflict((conflict) =>
        conflict
          .column('name')
          .doUpdateSet(owned)
          .where(({ eb, or }) =>
            or([
              eb('homes.owned_until', '<', BigInt(at)),
              // A claim that seems longer than any is was made before the clock was set back.
              eb('homes.owned_until', '>', BigInt(at + MAX_CLAIM_MS)),
              eb('homes.owner', '=', owner),
            ]),
          ),
      )
      .returning('contact_at')
      .executeTakeFirst()
    return row && Number(row.contact_at)
  }

  async noteContact(home: string, at: number): Promise<void> {
    await this.#db
      .updateTable('homes')
      .set({ contact_at: BigInt(at) })
      .where('name', '=', home)
      .execute()
  }
}
