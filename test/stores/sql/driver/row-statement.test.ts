import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { RowStatement } from '../../../../lib/stores/sql/driver/row-statement.ts'
import { BACKENDS } from '../support/postgres-database.ts'
import { open } from '../support/temporary-database.ts'

const TEXTS = [
  '',
  `"it's"`,
  'back\\slash',
  '\\u0000',
  '\\\\u0000',
  '\\ud800',
  'tab\tline\nend',
  '\u0001\u007f',
  'né \u2400 \u24000 \u2028 😀',
  '[1]',
  'null',
]

for (const { name, url, skip } of BACKENDS) {
  describe(`a statement over rows in ${name}`, { skip }, () => {
    const columns = { name: 'text', amount: 'bigint' } as const

    it('finds every row as it was given, whatever stands in its texts', async (t) => {
      const db = await open(t, await url(t))
      const all = RowStatement.select<{ name: string | null; amount: bigint }>(
        columns,
        'select name, amount from given order by amount',
      )
      const rows = [...TEXTS, null].map((text, i) => [text, BigInt(i)] as const)
      const { rows: found } = await all.run(db, rows)
      assert.deepEqual(
        found.map(({ name: text, amount }) => [text, amount]),
        rows,
      )
    })

    it('finds the texts that a plain parameter writes', async (t) => {
      const db = await open(t, await url(t))
      const odd = [...TEXTS, 'nul\0 \\\0', 'half \ud83d', '\udc00\\ud83d']
      for (const text of odd) {
        await db
          .insertInto('deposits')
          .values({ account: text, reference: 'x', amount: 1n, at: 1n })
          .execute()
      }
      const match = RowStatement.select<{ account: string }>(
        columns,
        'select account from deposits where account in (select name from given)',
      )
      for (const text of odd) {
        const { rows: found } = await match.run(db, [[text, 0n]])
        assert.deepEqual(found, [{ account: text.toWellFormed() }])
      }
    })

    it('takes amounts exactly, to the last of 64 bits, and none at all', async (t) => {
      const db = await open(t, await url(t))
      const statement = RowStatement.select<{ amount: bigint | null }>(columns, 'select amount from given')
      const amounts = [2n ** 63n - 1n, -(2n ** 63n) + 1n, 9_007_199_254_740_993n, null]
      const { rows: found } = await statement.run(
        db,
        amounts.map((amount) => ['x', amount]),
      )
      assert.deepEqual(
        found.map(({ amount }) => amount),
        amounts,
      )
      const { rows } = await statement.run(db, [['x', 1_700_000_000_000]])
      assert.deepEqual(rows, [{ amount: 1_700_000_000_000n }])
      assert.deepEqual(await statement.run(db, []), { rows: [], changes: 0 })
    })
  })
}
