import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { KyselyPlugin } from 'kysely'
import { type Database, SqlCallStore } from '../../../../lib/stores/sql/index.ts'
import { entryAt } from '../../../contracts/call-store.ts'
import { emptiedDatabase } from '../support/emptied-database.ts'
import { BACKENDS } from '../support/postgres-database.ts'

const NOON = Date.parse('2026-01-31T12:00:00Z')

for (const { name, url, skip } of BACKENDS) {
  const emptied = emptiedDatabase(url)

  describe(`a page of calls that one index has: ${name}`, { skip }, () => {
    it('is read by one statement, however many calls it has', async () => {
      const { db } = await emptied()
      const entries = Array.from({ length: 600 }, (_, i) => entryAt(NOON + i, { user: 'ann' }))
      await new SqlCallStore(db).append(entries)
      let statements = 0
      const counting: KyselyPlugin = {
        transformQuery: ({ node }) => node,
        async transformResult({ result }) {
          statements++
          return result
        },
      }
      const store = new SqlCallStore(db.withPlugin(counting) as Database)
      const newest = entries.map(({ id }) => id).reverse()
      const account = 'acme'
      for (const query of [
        {},
        { account },
        { model: 'chat-small' },
        { account, model: 'chat-small' },
        { account, user: 'ann' },
        { key: 'key_acme' },
        { minDurationMs: 10 },
      ]) {
        statements = 0
        const { entries: found, next } = await store.list({ ...query, limit: 590 })
        assert.deepEqual([found.map(({ id }) => id), next], [newest.slice(0, 590), undefined])
        assert.equal(statements, 1, JSON.stringify(query))
      }
    })
  })
}
