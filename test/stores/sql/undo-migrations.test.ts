import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { type Kysely, sql } from 'kysely'
import type { WalletId } from '../../../lib/ledger/index.ts'
import { isPostgres } from '../../../lib/stores/sql/driver/is-postgres.ts'
import { MIGRATIONS } from '../../../lib/stores/sql/driver/migrate.ts'
import { type Database, SqlKeptStore, undoMigrations } from '../../../lib/stores/sql/index.ts'
import { saveLeases } from '../../../lib/stores/sql/ledger/sql-ledger-rows.ts'
import { olderDatabase } from './older-database.ts'
import { BACKENDS } from './postgres-database.ts'
import { open } from './temporary-database.ts'

const NAMES = Object.keys(MIGRATIONS).sort()
const FIRST = '0012-kept-things'
const NOW = Date.now()

/** The tables with their columns, and the indexes, of a database, but for the partitions of single periods. */
async function schemaOf(db: Kysely<never> | Kysely<unknown> | Database): Promise<string[]> {
  const any = db as Database
  const { rows } = isPostgres(any)
    ? await sql<{ part: string }>`
        select table_name || '.' || column_name || ' ' || data_type || ' ' || is_nullable as part
        from information_schema.columns where table_schema = current_schema()
        union all select indexdef from pg_indexes where schemaname = current_schema()`.execute(any)
    : await sql<{ part: string }>`
        select m.name || '.' || c.name || ' ' || c.type || ' ' || c."notnull" as part
        from sqlite_master m join pragma_table_info(m.name) c where m.type = 'table'
        union all select sql from sqlite_master where type = 'index' and sql is not null`.execute(any)
  const parts = rows.map(({ part }) => part.replaceAll(/\s+/g, ' ')).sort()
  return parts.filter((part) => !/_\d{8}[_.]/.test(part))
}

/** Writes what the migrations since the first one must keep, for two tenants. */
async function filled(t: TestContext, url: string): Promise<Database> {
  const db = await open(t, url)
  for (const account of ['acme', 'globex']) {
    await db
      .insertInto('accounts')
      .values({ ...NOTHING, id: account, created_at: BigInt(NOW) } as never)
      .execute()
    await db
      .insertInto('keys')
      .values({
        ...KEY,
        id: `key_${account}`,
        account,
        secret_hash: `hash_${account}`,
        previous_hash: `before_${account}`,
        last_used_at: BigInt(NOW),
        created_at: BigInt(NOW),
      } as never)
      .execute()
    await db
      .insertInto('charges')
      .values({
        request_id: `req_${account}`,
        account,
        key: null,
        amount: 5n,
        at: BigInt(NOW),
        cost: 3n,
        basis: '[]',
      } as never)
      .execute()
    await db
      .insertInto('idempotency')
      .values({
        id: account,
        owner: 'req',
        fingerprint: 'f',
        state: 'completed',
        expires_at: 1n,
        answer: '{}',
      })
      .execute()
    await new SqlKeptStore(db).remember([
      {
        kind: 'file',
        id: 'file_1',
        account,
        key: null,
        line: `of-${account}`,
        model: null,
        tokens: 0,
        createdAt: NOW,
        expiresAt: null,
      },
    ])
  }
  await db.insertInto('rest_lifts').values({ line: 'l', lifts: 2 }).execute()
  return db
}

/** Wallets, each with a lease. */
async function openWithLease(db: Database, ids: readonly WalletId[]): Promise<void> {
  const wallets = ids.map((id) => ({ id, limited: 1, funds: 9n, spent: 0n, leased: 2n, overrun: 0n }))
  await db.insertInto('wallets').values(wallets).execute()
  await saveLeases(
    db,
    ids.map((wallet) => ({
      ...{ id: `lease of ${wallet}`, wallet, owner: 'p', held: 2n, seq: 1, lastMoved: 2n, beats: 1 },
      ...{ renewedAt: NOW, ended: null, endedAt: null },
    })),
  )
}

const KEY = {
  enabled: 1,
  expires_at: null,
  allow_ips: null,
  allow_models: null,
  rpm: null,
  tpm: null,
}
const NOTHING = { name: null, rpm: null, tpm: null, concurrency: null, regions: null, line_regions: null }

it('every migration since the first that can be undone can be', () => {
  const without = NAMES.filter((name) => MIGRATIONS[name]?.down === undefined)
  assert.deepEqual(
    without,
    NAMES.filter((name) => name <= FIRST),
  )
})

for (const { name, url: databaseUrl, emptyUrl, skip } of BACKENDS) {
  describe(`migrations that are undone on ${name}`, { skip }, () => {
    it('leave the tables as they were, whichever is the last that stays', async (t) => {
      const migratedTo = async (database: string, last: string) => {
        const older = await olderDatabase(database, last)
        const schema = await schemaOf(older)
        await older.destroy()
        return schema
      }
      const stay = NAMES.filter((migration) => migration >= FIRST)
      const growing = await emptyUrl(t)
      const before: string[][] = []
      for (const last of stay) before.push(await migratedTo(growing, last))
      const url = await databaseUrl(t)
      const db = await filled(t, url)
      assert.deepEqual(await schemaOf(db), before.at(-1))
      // Undone in one go, they do the same one after the other: a step leads from each version to the one before.
      const steps = [...stay.entries()].slice(1)
      for (const [i, undone] of steps.toReversed()) {
        const last = stay[i - 1] as string
        assert.deepEqual(await undoMigrations(url, last), [undone])
        assert.deepEqual(await schemaOf(db), before[i - 1], last)
      }
      for (const [i, next] of steps)
        assert.deepEqual(await migratedTo(url, next), before[i], `up again to ${next}`)
      const again = await open(t, url)
      assert.deepEqual(await schemaOf(again), before.at(-1))
      assert.deepEqual(await undoMigrations(url, FIRST), stay.slice(1).reverse())
      assert.deepEqual(await schemaOf(again), before[0])
    })

    it('lose what they added, and nothing else', async (t) => {
      const url = await databaseUrl(t)
      const db = await filled(t, url)
      const kept = async () => [
        await sql`select id, name, created_at from accounts order by id`.execute(db).then(({ rows }) => rows),
        await sql`select id, account, secret_hash, created_at from keys order by id`
          .execute(db)
          .then(({ rows }) => rows),
        await sql`select request_id, account, amount, at, basis from charges order by 1`
          .execute(db)
          .then(({ rows }) => rows),
        await sql`select id, owner, fingerprint, state, expires_at from idempotency order by id`
          .execute(db)
          .then(({ rows }) => rows),
        await sql`select * from kept_things order by account`.execute(db).then(({ rows }) => rows),
        await sql`select id from wallets order by id`.execute(db).then(({ rows }) => rows),
        await sql`select id from leases order by id`.execute(db).then(({ rows }) => rows),
      ]
      await openWithLease(db, ['account:acme', 'account:globex'])
      const before = await kept()
      await openWithLease(db, ['budget:b:1', 'budget:b:2'])
      await undoMigrations(url, FIRST)
      assert.deepEqual(await kept(), before)
      const again = await open(t, url)
      assert.deepEqual(await kept(), before)
      const { rows } =
        await sql`select cast(cost as text) from charges union all select answer from idempotency
          union all select cast(last_used_at as text) from keys union all select previous_hash from keys`.execute(
          again,
        )
      assert.deepEqual(
        rows.map((row) => Object.values(row as object)),
        Array(8).fill([null]),
      )
    })

    it('are refused whole where one of them cannot be undone, is unknown or was not done', async (t) => {
      const url = await databaseUrl(t)
      const db = await filled(t, url)
      const today = await schemaOf(db)
      await assert.rejects(
        undoMigrations(url, '0011-answers'),
        /0012-kept-things cannot be undone: restore a backup/,
      )
      await assert.rejects(undoMigrations(url, '0011-answer'), {
        message: `there is no migration "0011-answer"; the last ones are ${NAMES.slice(-5).join(', ')}`,
      })
      assert.deepEqual(await undoMigrations(url, NAMES.at(-1) ?? ''), [])
      assert.deepEqual(await schemaOf(db), today)
      await undoMigrations(url, FIRST)
      await assert.rejects(undoMigrations(url, NAMES.at(-1) ?? ''), /has not got as far/)
    })

    it('are not undone in a database that is newer', async (t) => {
      const url = await databaseUrl(t)
      const db = await filled(t, url)
      const today = await schemaOf(db)
      await sql`insert into kysely_migration (name, timestamp) values ('9999-later', '2099-01-01')`.execute(
        db,
      )
      await assert.rejects(undoMigrations(url, FIRST), /9999-later/)
      assert.deepEqual(await schemaOf(db), today)
    })
  })
}
