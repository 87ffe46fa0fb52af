import assert from 'node:assert/strict'
import { accountWallet, keyWallet } from '../../../lib/ledger/index.ts'
import { HomeExchange } from '../../../lib/ledger/regions/home-exchange.ts'
import type { HomeStore } from '../../../lib/ledger/regions/region-store.ts'
import { hashSecret } from '../../../lib/middleware/authenticate/index.ts'
import { type Database, openDatabase, SqlLedger, seedAccountsAndKeys } from '../../../lib/stores/sql/index.ts'
import { SqlHomeStore } from '../../../lib/stores/sql/regions/sql-home-store.ts'
import { SqlMirrors } from '../../../lib/stores/sql/regions/sql-mirrors.ts'
import { SqlShareStore } from '../../../lib/stores/sql/regions/sql-share-store.ts'
import { fresh } from '../../contracts/ledger-money.ts'
import type { CleanUp } from '../../support/clean-up.ts'
import { postgresUrl } from './postgres-database.ts'
import { PATIENT } from './temporary-database.ts'

const silent = { info() {}, warn() {}, error() {} }

/** A home and two regions, each with a database, which tests share: each has an account of its own. */
export interface Regions {
  readonly home: Database
  readonly us: Database
  readonly asia: Database
  readonly atHome: SqlHomeStore
}

export async function openRegions(cleanUp: CleanUp): Promise<Regions> {
  const open = async (): Promise<Database> => {
    const db = await openDatabase(await postgresUrl(), PATIENT)
    cleanUp.after(() => db.destroy())
    return db
  }
  const [home, us, asia] = await Promise.all([open(), open(), open()])
  return { home, us, asia, atHome: new SqlHomeStore(home) }
}

/** A prepaid account of the home with a key, and the copy of both in the region us. */
export async function mirrored(
  { home, us, asia, atHome }: Regions,
  { balance = '0.000001', quota }: { balance?: string; quota?: string } = {},
) {
  const [account, key, secret] = [fresh('acme'), fresh('key'), fresh('sk')]
  await seedAccountsAndKeys(home, {
    accounts: [{ id: account, balance }],
    keys: [{ id: key, account, secret, ...(quota !== undefined && { quota }) }],
  })
  const homes = new Map([['eu', atHome]])
  const mirrors = { us: new SqlMirrors(us, homes, silent), asia: new SqlMirrors(asia, homes, silent) }
  const shares = { us: new SqlShareStore(us), asia: new SqlShareStore(asia) }
  assert.equal((await mirrors.us.copy('eu', await atHome.keysBySecret([hashSecret(secret)]))).length, 1)
  const [ACCOUNT, KEY] = [accountWallet(account), keyWallet(key)]
  const wallets = { account: ACCOUNT, key: KEY }
  const stated = async (db: Database, wallet: 'account' | 'key') => {
    const [found] = await new SqlLedger(db).wallets([wallets[wallet]])
    return found ? [found.funds, found.spent, found.leased] : []
  }
  return {
    ...{ home, us, asia, atHome, account, key, secret, ACCOUNT, KEY, mirrors, shares },
    /** Exchanges of a process of a region; what the home does may be replaced. */
    process: (store: HomeStore = atHome, region: 'us' | 'asia' = 'us') =>
      new HomeExchange({ name: 'eu', region, shares: shares[region], home: store, logger: silent }),
    /** Funds, spent and leased of a wallet at home and in the region. */
    figures: async (wallet: 'account' | 'key' = 'account') => ({
      home: await stated(home, wallet),
      region: await stated(us, wallet),
    }),
    /** All ledgers are as their rows say, and what one side sent the other has, or it is on its way. */
    async assertSound() {
      for (const db of [home, us, asia]) assert.deepEqual((await new SqlLedger(db).check()).violations, [])
      const lent = await home.selectFrom('lent_shares').selectAll().execute()
      for (const [region, db] of Object.entries({ us, asia })) {
        const held = await db.selectFrom('shares').selectAll().execute()
        for (const { wallet, granted, returned } of lent.filter((each) => each.region === region)) {
          const share = held.find((each) => each.wallet === wallet)
          assert.ok(granted >= (share?.received ?? 0n), `${wallet}: no more came than was sent`)
          assert.ok((share?.returned ?? 0n) >= returned, `${wallet}: no more came back than was sent back`)
        }
      }
    },
  }
}
