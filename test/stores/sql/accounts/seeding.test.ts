import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { sql } from 'kysely'
import type { Logger } from '../../../../lib/core/call/index.ts'
import { hashSecret, type KeySeed } from '../../../../lib/middleware/authenticate/index.ts'
import { type Database, SqlKeyDirectory, seedAccountsAndKeys } from '../../../../lib/stores/sql/index.ts'
import { WITHOUT_POSTGRES } from '../../../support/postgres-server.ts'
import { BACKENDS, postgresUrl } from '../support/postgres-database.ts'
import { open } from '../support/temporary-database.ts'

const SEED: KeySeed = {
  accounts: [{ id: 'acme', name: 'Acme', balance: '25.000000001' }, { id: 'globex' }],
  keys: [
    { id: 'k1', account: 'acme', secret: 'sk-1', quota: '5' },
    { id: 'k2', account: 'globex', secret: 'sk-2' },
  ],
}

function recorder(): { logger: Logger; warnings: { fields: object; message: string }[] } {
  const warnings: { fields: object; message: string }[] = []
  const warn = (fields: object, message: string) => void warnings.push({ fields, message })
  return { warnings, logger: { info: () => {}, warn, error: warn } }
}

async function find(db: Database, secret: string) {
  return new SqlKeyDirectory(db).find(hashSecret(secret))
}

async function funds(db: Database) {
  return db.selectFrom('wallets').select(['id', 'limited', 'funds']).orderBy('id').execute()
}

for (const { name, url: databaseUrl, skip } of BACKENDS) {
  describe(`seeding ${name}`, { skip }, () => {
    it('writes amounts as nano-units, secrets as their hash, and nothing given as null', async (t) => {
      const db = await open(t, await databaseUrl(t))
      assert.deepEqual(await seedAccountsAndKeys(db, SEED), { accounts: 2, keys: 2 })
      const accounts = await db.selectFrom('accounts').select(['id', 'name']).orderBy('id').execute()
      assert.deepEqual(accounts, [
        { id: 'acme', name: 'Acme' },
        { id: 'globex', name: null },
      ])
      assert.deepEqual(await funds(db), [
        { id: 'account:acme', limited: 1, funds: 25_000_000_001n },
        { id: 'account:globex', limited: 0, funds: 0n },
        { id: 'key:k1', limited: 1, funds: 5_000_000_000n },
        { id: 'key:k2', limited: 0, funds: 0n },
      ])
      const keys = await db.selectFrom('keys').selectAll().orderBy('id').execute()
      assert.ok(!keys.some((key) => Object.values(key).includes('sk-1')))
    })

    it('a restart with another config resets nothing and adds what is new', async (t) => {
      const url = await databaseUrl(t)
      const first = await open(t, url)
      await seedAccountsAndKeys(first, SEED)
      await first.updateTable('accounts').set({ rpm: 1n }).where('id', '=', 'acme').execute()
      await first.updateTable('keys').set({ enabled: 0 }).where('id', '=', 'k1').execute()
      await first.destroy()

      const db = await open(t, url)
      const later: KeySeed = {
        accounts: [{ id: 'acme', name: 'Else', balance: '99' }, { id: 'initech' }],
        keys: [
          { id: 'k1', account: 'acme', secret: 'sk-other' },
          { id: 'k3', account: 'initech', secret: 'sk-3' },
        ],
      }
      assert.deepEqual(await seedAccountsAndKeys(db, later), { accounts: 1, keys: 1 })
      const acme = await db
        .selectFrom('accounts')
        .selectAll()
        .where('id', '=', 'acme')
        .executeTakeFirstOrThrow()
      assert.deepEqual([acme.name, acme.rpm], ['Acme', 1n])
      const [wallet] = await funds(db)
      assert.deepEqual(wallet, { id: 'account:acme', limited: 1, funds: 25_000_000_001n })
      assert.equal((await find(db, 'sk-1'))?.enabled, false)
      assert.equal(await find(db, 'sk-other'), undefined)
      assert.equal((await find(db, 'sk-3'))?.account.id, 'initech')
      assert.equal((await find(db, 'sk-2'))?.id, 'k2')
    })

    it('a deleted row does not come back', async (t) => {
      const db = await open(t, await databaseUrl(t))
      await seedAccountsAndKeys(db, SEED)
      await db.deleteFrom('keys').execute()
      await db.deleteFrom('accounts').where('id', '=', 'globex').execute()
      const { logger, warnings } = recorder()
      assert.deepEqual(await seedAccountsAndKeys(db, SEED, { logger }), { accounts: 0, keys: 0 })
      assert.equal(await find(db, 'sk-1'), undefined)
      assert.deepEqual(warnings, [])
    })

    it('a new key of a deleted account is left out, and said so', async (t) => {
      const db = await open(t, await databaseUrl(t))
      await seedAccountsAndKeys(db, { accounts: SEED.accounts, keys: [] })
      await db.deleteFrom('accounts').where('id', '=', 'globex').execute()
      const { logger, warnings } = recorder()
      assert.deepEqual(await seedAccountsAndKeys(db, SEED, { logger }), { accounts: 0, keys: 1 })
      assert.equal((await find(db, 'sk-1'))?.id, 'k1')
      assert.deepEqual(
        warnings.map(({ fields }) => fields),
        [{ keys: ['k2'] }],
      )
    })

    it('a key whose secret is taken stays out, and its owner keeps it; with another secret it comes', async (t) => {
      const db = await open(t, await databaseUrl(t))
      await seedAccountsAndKeys(db, SEED)
      const { logger, warnings } = recorder()
      const config: KeySeed = { ...SEED, keys: [{ id: 'thief', account: 'globex', secret: 'sk-1' }] }
      assert.deepEqual(await seedAccountsAndKeys(db, config, { logger }), { accounts: 0, keys: 0 })
      assert.equal((await find(db, 'sk-1'))?.id, 'k1')
      assert.deepEqual(
        warnings.map(({ fields }) => fields),
        [{ keys: ['thief'] }],
      )
      const keys = [
        { id: 'thief', account: 'globex', secret: 'sk-3' },
        { id: 'k2', account: 'globex', secret: 'sk-4' },
      ]
      assert.deepEqual(await seedAccountsAndKeys(db, { ...SEED, keys }, { logger }), { accounts: 0, keys: 1 })
      assert.equal((await find(db, 'sk-3'))?.id, 'thief')
      assert.equal(await find(db, 'sk-4'), undefined)
      assert.equal(warnings.length, 1)
    })

    it('an amount the database cannot hold is named, and nothing is written', async (t) => {
      const db = await open(t, await databaseUrl(t))
      const config: KeySeed = { accounts: [{ id: 'acme' }, { id: 'rich', balance: '9223372037' }], keys: [] }
      await assert.rejects(
        seedAccountsAndKeys(db, config),
        /account "rich": balance must be below 9223372036/,
      )
      assert.deepEqual(await db.selectFrom('seeds').selectAll().execute(), [])
      assert.deepEqual(
        await seedAccountsAndKeys(db, { accounts: [{ id: 'rich', balance: '9223372036' }], keys: [] }),
        {
          accounts: 1,
          keys: 0,
        },
      )
    })

    it('by processes whose configs are in different orders does not make them wait for each other', async (t) => {
      const url = await databaseUrl(t)
      const handles = await Promise.all([open(t, url), open(t, url)])
      for (let round = 0; round < 10; round++) {
        const accounts = Array.from({ length: 200 }, (_, i) => ({ id: `r${round}-${i}` }))
        const seeded = await Promise.all([
          seedAccountsAndKeys(handles[0], { accounts, keys: [] }),
          seedAccountsAndKeys(handles[1], { accounts: accounts.toReversed(), keys: [] }),
        ])
        assert.equal(seeded[0].accounts + seeded[1].accounts, 200)
      }
    })

    it('takes more accounts and keys than one statement holds', async (t) => {
      const db = await open(t, await databaseUrl(t))
      const numbers = Array.from({ length: 1201 }, (_, i) => i)
      const config: KeySeed = {
        accounts: numbers.map((i) => ({ id: `a${i}` })),
        keys: numbers.map((i) => ({ id: `k${i}`, account: `a${i}`, secret: `sk-${i}` })),
      }
      assert.deepEqual(await seedAccountsAndKeys(db, config), { accounts: 1201, keys: 1201 })
      assert.equal((await find(db, 'sk-1200'))?.account.id, 'a1200')
    })
  })
}

describe('seeding Postgres with many accounts', { skip: WITHOUT_POSTGRES }, () => {
  it('is done, and says so, if another session keeps Postgres from counting them', async (t) => {
    const url = await postgresUrl()
    const [db, other] = [await open(t, url), await open(t, url)]
    const { logger, warnings } = recorder()
    const accounts = Array.from({ length: 600 }, (_, i) => ({ id: `account-${i}` }))
    await other.transaction().execute(async (trx) => {
      await sql`lock table wallets in share update exclusive mode`.execute(trx)
      assert.deepEqual(await seedAccountsAndKeys(db, { accounts, keys: [] }, { logger }), {
        accounts: 600,
        keys: 0,
      })
    })
    assert.match(`${warnings.map(({ message }) => message)}`, /^Postgres could not count new accounts/)
  })

  it('has it count them at once, which decides how it finds one', async (t) => {
    const db = await open(t, await postgresUrl())
    const accounts = Array.from({ length: 5000 }, (_, i) => ({ id: `account-${i}` }))
    await seedAccountsAndKeys(db, { accounts, keys: [{ id: 'k', account: 'account-7', secret: 'sk-1' }] })
    const { rows } = await sql<{ relname: string; reltuples: number }>`
      select relname, reltuples from pg_class
      where relname in ('accounts', 'keys', 'seeds', 'wallets') order by relname`.execute(db)
    assert.deepEqual(
      rows.map(({ relname, reltuples }) => [relname, Number(reltuples)]),
      [
        ['accounts', 5000],
        ['keys', 1],
        ['seeds', 5001],
        ['wallets', 5001],
      ],
    )
  })
})
