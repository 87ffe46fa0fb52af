import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { GroupedWrites } from '../../../lib/stores/sql/driver/grouped-writes.ts'
import type { Database } from '../../../lib/stores/sql/index.ts'
import { emptiedDatabase } from './emptied-database.ts'
import { BACKENDS } from './postgres-database.ts'

for (const { name, url, skip } of BACKENDS) {
  const emptied = emptiedDatabase(url)

  const together = name === 'SQLite'
  describe(`writes that come while another is done, in ${name}`, { skip }, () => {
    it(together ? 'go in one transaction, by what they lock' : 'go their own way', async () => {
      const { db } = await emptied()
      const writes = new GroupedWrites(db)
      const seen: [key: string, inTransaction: boolean][] = []
      const write = (key: string) =>
        writes.run(key, async (asked: Database) => {
          seen.push([key, asked.isTransaction])
          return key
        })
      assert.deepEqual(await Promise.all(['z', 'b', 'c', 'a'].map(write)), ['z', 'b', 'c', 'a'])
      assert.deepEqual(
        seen,
        together
          ? [
              ['z', false],
              ['a', true],
              ['b', true],
              ['c', true],
            ]
          : [
              ['z', false],
              ['b', false],
              ['c', false],
              ['a', false],
            ],
      )
      await write('alone')
      assert.deepEqual(seen.at(-1), ['alone', false])
    })

    it(together ? 'fail together, and those before and after do not' : 'fail each by itself', async () => {
      const { db } = await emptied()
      const writes = new GroupedWrites(db)
      const switched = (line: string) =>
        writes.run(line, async (asked) => {
          await asked.insertInto('line_switches').values({ line, enabled: 1 }).execute()
          if (line === 'fails') throw new Error('on purpose')
        })
      const results = await Promise.allSettled(['before', 'fails', 'with it'].map(switched))
      assert.deepEqual(
        results.map(({ status }) => status),
        ['fulfilled', 'rejected', together ? 'rejected' : 'fulfilled'],
      )
      await switched('after')
      const rows = await db.selectFrom('line_switches').select('line').orderBy('line').execute()
      assert.deepEqual(
        rows.map(({ line }) => line),
        together ? ['after', 'before'] : ['after', 'before', 'fails', 'with it'],
      )
    })

    if (!together) return
    it('are two hundred in a transaction, at most', async () => {
      const { db } = await emptied()
      const transactions = new Map<Database, number>()
      const writes = new GroupedWrites(db)
      await Promise.all(
        Array.from({ length: 401 }, (_, i) =>
          writes.run(`${i}`, async (asked) => {
            transactions.set(asked, (transactions.get(asked) ?? 0) + 1)
          }),
        ),
      )
      assert.deepEqual([...transactions.values()], [1, 200, 200])
    })
  })
}
