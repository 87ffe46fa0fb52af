import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { sql } from 'kysely'
import type { Call } from '../../../lib/core/call/index.ts'
import { KeptThings } from '../../../lib/middleware/references/index.ts'
import { SqlKeptStore } from '../../../lib/stores/sql/index.ts'
import { olderDatabase } from './older-database.ts'
import { BACKENDS } from './postgres-database.ts'
import { open } from './temporary-database.ts'

const DAY_MS = 86_400_000
const now = Date.now()
const YESTERDAY = now - DAY_MS
const LONG_AGO = now - 31 * DAY_MS

/** Writes a database of when responses were the only things of which a line was known, and opens it as one of today. */
async function migrated(t: TestContext, url: string) {
  const older = await olderDatabase(url, '0011-answers')
  await sql`
    insert into responses (id, account, line, model, tokens, created_at) values
      ('resp_1', 'acme', 'openai-us', 'chat', 4294967296, ${YESTERDAY}),
      ('resp_2', 'acme', 'openai-eu', 'chat', 0, ${YESTERDAY}),
      ('resp_same', 'acme', 'openai-us', 'chat', 1, ${YESTERDAY}),
      ('resp_same', 'globex', 'openai-eu', 'chat', 2, ${YESTERDAY}),
      ('resp_old', 'acme', 'openai-us', 'chat', 3, ${LONG_AGO})`.execute(older)
  await older.destroy()
  const db = await open(t, url)
  return { db, store: new SqlKeptStore(db) }
}

const CALL_OF_ACME = { principal: { accountId: 'acme', keyId: 'key_acme' } } as Call
const named = (id: string) => ({ kind: 'response', id })

for (const { name, emptyUrl: url, skip } of BACKENDS) {
  describe(`a database that knew of responses only, in ${name}`, { skip }, () => {
    it('knows them as before: whose they are, where, and how large', async (t) => {
      const { store } = await migrated(t, await url(t))
      const same = { kind: 'response', key: null, model: 'chat', createdAt: YESTERDAY }
      const expiresAt = YESTERDAY + 30 * DAY_MS
      const us = { ...same, account: 'acme', line: 'openai-us', expiresAt }
      assert.deepEqual(await store.find('acme', [named('resp_1')]), [
        { ...us, id: 'resp_1', tokens: 4_294_967_296 },
      ])
      assert.deepEqual(await store.find('acme', [named('resp_same')]), [
        { ...us, id: 'resp_same', tokens: 1 },
      ])
      assert.equal((await store.find('globex', [named('resp_same')]))[0]?.line, 'openai-eu')
      assert.deepEqual(await store.find('globex', [named('resp_1'), named('resp_2')]), [])
    })

    it('finds nothing that could not be found before, and deletes it in time', async (t) => {
      const { store } = await migrated(t, await url(t))
      const kept = new KeptThings({ store })
      t.after(() => kept.close())
      const found = await kept.find(CALL_OF_ACME, [named('resp_old'), named('resp_2')])
      assert.deepEqual(
        found.map(({ id }) => id),
        ['resp_2'],
      )
      assert.equal(await store.prune(now, 10), 1)
      assert.deepEqual(await store.find('acme', [named('resp_old')]), [])
    })

    it('leaves the processes of the version before what they read, and takes over nothing twice', async (t) => {
      const database = await url(t)
      const { db, store } = await migrated(t, database)
      const rows = await sql<{ id: string }>`select id from responses`.execute(db)
      assert.equal(rows.rows.length, 5)
      await store.forget('acme', named('resp_1'))
      const again = new SqlKeptStore(await open(t, database))
      assert.deepEqual(await again.find('acme', [named('resp_1')]), [])
      assert.equal((await again.find('acme', [named('resp_2')])).length, 1)
    })
  })
}
