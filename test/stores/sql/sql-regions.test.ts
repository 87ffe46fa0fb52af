import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { sql } from 'kysely'
import { accountWallet, keyWallet, WalletsHeldUp } from '../../../lib/ledger/index.ts'
import { hashSecret } from '../../../lib/middleware/authenticate/index.ts'
import {
  type Database,
  openDatabase,
  SqlKeyDirectory,
  SqlLedger,
  SqlRegions,
  seedAccountsAndKeys,
} from '../../../lib/stores/sql/index.ts'
import { charge, fresh, take } from '../../contracts/ledger-money.ts'
import { recordingLogger } from '../../support/app-server.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { WITHOUT_POSTGRES } from '../../support/postgres-server.ts'
import { untilAsync } from '../../support/until.ts'
import { postgresUrl } from './postgres-database.ts'
import { PATIENT } from './temporary-database.ts'

const NAMES = ['asia', 'eu', 'us'] as const
type Name = (typeof NAMES)[number]

describe('a region among three', { skip: WITHOUT_POSTGRES }, () => {
  const cleanUp = cleaningUp()
  const dbs = {} as Record<Name, Database>
  const regions = {} as Record<Name, SqlRegions>
  before(async () => {
    const urls = new Map<Name, string>()
    for (const name of NAMES) urls.set(name, await postgresUrl())
    for (const [name, url] of urls) {
      const db = await openDatabase(url, PATIENT)
      dbs[name] = db
      cleanUp.after(() => db.destroy())
    }
    for (const region of NAMES) {
      const db = dbs[region]
      const databases = new Map([...urls].filter(([name]) => name !== region))
      const parts = { ledger: new SqlLedger(db), keys: new SqlKeyDirectory(db), logger: recordingLogger() }
      const opened = await SqlRegions.open({ region, db, databases, ...parts })
      regions[region] = opened
      cleanUp.after(() => opened.close())
    }
  })

  /** An account with a key of each of two regions. */
  async function seeded(home: Name, balance = '0.001') {
    const [account, key, secret] = [fresh('acme'), fresh('key'), fresh('sk')]
    await seedAccountsAndKeys(dbs[home], {
      accounts: [{ id: account, balance }],
      keys: [{ id: key, account, secret }],
    })
    return { account, key, hash: hashSecret(secret) }
  }

  /** Takes a lease as a process does, which tries again while the home is asked. */
  async function leased(region: Name, account: string, amount: bigint): Promise<bigint | undefined> {
    let moved: bigint | undefined
    const lease = fresh('lease')
    await untilAsync(async () => {
      try {
        const [answer] = await regions[region].ledger.change('p', [
          take(lease, accountWallet(account), amount),
        ])
        moved = answer?.moved
        return true
      } catch (error) {
        if (error instanceof WalletsHeldUp) return false
        throw error
      }
    }, 'an answer of the home')
    return moved
  }

  it('finds the keys of all, and none that nobody has', async () => {
    const own = await seeded('us')
    const [european, asian] = [await seeded('eu'), await seeded('asia')]
    const { keys } = regions.us
    for (const { account, key, hash } of [own, european, asian]) {
      for (let times = 0; times < 2; times++) {
        const found = await keys.find(hash)
        assert.deepEqual([found?.id, found?.account.id], [key, account])
      }
    }
    assert.equal(await keys.find(hashSecret('sk-of-nobody')), undefined)
    const found = await keys.findAll?.([own.hash, european.hash, hashSecret('sk-of-nobody')])
    assert.deepEqual([...(found ?? [])].map(([, { id }]) => id).sort(), [own.key, european.key].sort())
    assert.deepEqual(
      await Promise.all([own, european, asian].map(({ account }) => regions.us.homeOf(account))),
      [undefined, 'eu', 'asia'],
    )
  })

  for (const [what, account, key, limited] of [
    ['a prepaid account', { balance: '1' }, {}, [1, 0]],
    ['a postpaid account', {}, {}, [0, 0]],
    ['a postpaid account, whose key has a quota', {}, { quota: '0.5' }, [0, 1]],
  ] as const)
    it(`copies ${what} with the limits that it has at home`, async () => {
      const [name, id, secret] = [fresh('acme'), fresh('key'), fresh('sk')]
      const keys = [{ id, account: name, secret, ...key }]
      await seedAccountsAndKeys(dbs.eu, { accounts: [{ id: name, ...account }], keys })
      assert.equal((await regions.us.keys.find(hashSecret(secret)))?.id, id)
      const wallets = [accountWallet(name), keyWallet(id)]
      const copies = await dbs.us
        .selectFrom('wallets')
        .select(['id', 'limited'])
        .where('id', 'in', wallets)
        .execute()
      const limits = new Map(copies.map((copy) => [copy.id, Number(copy.limited)]))
      assert.deepEqual(
        wallets.map((wallet) => limits.get(wallet)),
        limited,
      )
    })

  it('knows which region has an account, but for itself', async () => {
    const { account } = await seeded('eu')
    const asked = [account, fresh('nobody')]
    const told = async (region: Name) => Promise.all(asked.map((id) => regions[region].regionWith(id)))
    assert.deepEqual(await told('us'), ['eu', undefined])
    assert.deepEqual(await told('eu'), [undefined, undefined])
  })

  it('no longer accepts a key that is gone at home, once it was not used for a while', async (t) => {
    const { key, hash } = await seeded('eu')
    assert.equal((await regions.us.keys.find(hash))?.id, key)
    await dbs.eu.deleteFrom('keys').where('id', '=', key).execute()
    assert.equal((await regions.us.keys.find(hash))?.id, key, 'it was confirmed a moment ago')
    const now = performance.now.bind(performance)
    const clock = t.mock.method(performance, 'now', () => now() + 30_001)
    assert.equal(await regions.us.keys.find(hash), undefined)
    clock.mock.restore()
  })

  it('spends what it gets of a balance, tells whose it is, and reports it', async () => {
    const { account, key, hash } = await seeded('eu')
    const other = await seeded('eu')
    for (const each of [hash, other.hash]) await regions.us.keys.find(each)
    const before = (await regions.us.list()).find(({ name }) => name === 'eu')
    assert.equal(await leased('us', account, 1000n), 1000n)
    const states = await regions.us.list()
    assert.deepEqual(
      states.map(({ name, away }) => [name, away]),
      [
        ['asia', false],
        ['eu', false],
      ],
    )
    const state = states.find(({ name }) => name === 'eu')
    const [share] = await regions.eu.sharesOf(account)
    assert.deepEqual([share?.region, share?.spent], ['us', 0n])
    const transferred = share?.transferred ?? 0n
    assert.ok(transferred >= 1000n)
    assert.equal(state?.held, (before?.held ?? 0n) + transferred)
    assert.ok((state?.accounts ?? 0) >= 2)
    await regions.us.ledger.settle([charge(account, 700n, { key })])
    await untilAsync(
      async () => (await regions.eu.sharesOf(account))[0]?.spent === 700n,
      'home knows what was spent, within some rounds',
    )
    const [told] = await regions.eu.sharesOf(account)
    assert.ok(Math.abs(Date.now() - (told?.reportedAt ?? 0)) < 20_000)
    assert.deepEqual(await regions.eu.sharesOf(other.account), [])
    assert.deepEqual(await regions.us.sharesOf(account), [])
    for (const name of NAMES) assert.deepEqual((await regions[name].ledger.check()).violations, [])
  })

  it('has no connection to another region any more once it is closed', async () => {
    const far = await postgresUrl()
    const connections = async () => {
      const { rows } = await sql<{ count: bigint }>`select count(*) as count from pg_stat_activity
        where datname = ${new URL(far).pathname.slice(1)}`.execute(dbs.us)
      return Number(rows[0]?.count)
    }
    const parts = {
      ledger: new SqlLedger(dbs.us),
      keys: new SqlKeyDirectory(dbs.us),
      logger: recordingLogger(),
    }
    const databases = new Map([['mars', far]])
    const opened = await SqlRegions.open({ region: 'us', db: dbs.us, databases, ...parts })
    assert.equal(await opened.keys.find(hashSecret('sk-of-nobody')), undefined)
    assert.ok((await connections()) > 0)
    await opened.close()
    await untilAsync(async () => (await connections()) === 0, 'the last connection has ended')
  })

  it('notes which shares and keys it uses, so that they do not rest', async () => {
    const { account, key, hash } = await seeded('asia')
    await regions.us.keys.find(hash)
    await leased('us', account, 10n)
    const wallets = [accountWallet(account), keyWallet(key)]
    await dbs.us
      .updateTable('shares')
      .set({ in_use: 0, used_at: 1n })
      .where('wallet', 'in', wallets)
      .execute()
    await regions.us.keys.find(hash)
    await leased('us', account, 10n)
    await untilAsync(async () => {
      const rows = await dbs.us.selectFrom('shares').selectAll().where('wallet', 'in', wallets).execute()
      return rows.length === 2 && rows.every(({ in_use, used_at }) => in_use === 1 && used_at > 1n)
    }, 'both are in use again')
  })

  it('notes them later where its own database could not', async () => {
    const { key, hash } = await seeded('asia')
    await sql`create sequence tries`.execute(dbs.us)
    await sql`create function fail() returns trigger language plpgsql as $$
      begin raise 'not now, %', nextval('tries'); end $$`.execute(dbs.us)
    await sql`create trigger failing before update of used_at on shares execute function fail()`.execute(
      dbs.us,
    )
    await regions.us.keys.find(hash)
    const usedAt = async () => {
      const row = dbs.us.selectFrom('shares').select('used_at').where('wallet', '=', keyWallet(key))
      return (await row.executeTakeFirstOrThrow()).used_at
    }
    const tries = async () => {
      const { rows } = await sql<{ last_value: bigint }>`select last_value from tries`.execute(dbs.us)
      return rows[0]?.last_value ?? 0n
    }
    const [opened, before] = [await usedAt(), await tries()]
    // One may be on its way that has begun before.
    await untilAsync(async () => (await tries()) >= before + 2n, 'it was tried')
    await sql`drop trigger failing on shares`.execute(dbs.us)
    await untilAsync(async () => (await usedAt()) > opened, 'it is noted, although it is not used again')
  })
})
