import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { type Database, SqlWatchSource, seedAccountsAndKeys } from '../../../../lib/stores/sql/index.ts'
import { BACKENDS } from '../support/postgres-database.ts'
import { open } from '../support/temporary-database.ts'

const NANOS = 1_000_000_000n
const NOW = 1_800_000_000_000

/** Prepaid accounts of 100, of which 90 and what is said are spent: the threshold is 10. */
async function spent(t: TestContext, url: string, more: Readonly<Record<string, bigint>>) {
  const db = await open(t, url)
  const accounts = Object.keys(more).map((id) => ({ id, balance: '100' }))
  await seedAccountsAndKeys(db, { accounts, keys: [] })
  for (const [account, amount] of Object.entries(more))
    await db
      .updateTable('wallets')
      .set({ spent: 90n * NANOS + amount })
      .where('id', '=', `account:${account}`)
      .execute()
  const source = new SqlWatchSource(db)
  const asked = async (since = NOW, limit = 9) =>
    (await source.balances(since, limit)).map(({ account }) => account).sort()
  return { db, source, asked }
}

async function lease(db: Database, account: string, endedAt: number | null = null): Promise<void> {
  const ended = endedAt === null ? null : 0
  await db
    .insertInto('leases')
    .values({
      ...{ id: `lease-${account}`, wallet: `account:${account}`, owner: 'p', held: 0n, seq: 1 },
      ...{ last_moved: 0n, beats: 1, renewed_at: BigInt(NOW), ended: ended as never },
      ended_at: endedAt === null ? null : BigInt(endedAt),
    })
    .execute()
}

async function tell(db: Database, subject: string, state: string): Promise<void> {
  await db
    .insertInto('webhook_states')
    .values({ subject, state, at: BigInt(NOW) })
    .execute()
}

for (const { name, url, skip } of BACKENDS) {
  describe(`a watched value in ${name}`, { skip }, () => {
    it('is a balance below a tenth of the last deposit, and not one of exactly that', async (t) => {
      const { db, source, asked } = await spent(t, await url(t), { a: 1n, b: 0n, c: -1n, d: 11n * NANOS })
      for (const account of ['a', 'b', 'c', 'd']) await lease(db, account)
      assert.deepEqual(await asked(), ['a', 'd'])
      const [first] = (await source.balances(NOW, 9)).filter(({ account }) => account === 'd')
      assert.deepEqual(first, { account: 'd', balance: -NANOS, threshold: 10n * NANOS })
      await db.updateTable('wallets').set({ limited: 0 }).where('id', '=', 'account:a').execute()
      assert.deepEqual(await asked(), ['d'], 'a postpaid account has no balance')
    })

    it('is a balance that may have moved since, no other, and no more than are asked for', async (t) => {
      const { db, asked } = await spent(t, await url(t), { a: 1n, b: 1n, c: 1n, still: 1n })
      await lease(db, 'a')
      await lease(db, 'b', NOW + 1)
      await lease(db, 'c', NOW)
      assert.deepEqual(await asked(), ['a', 'b'])
      assert.deepEqual(await asked(NOW - 1), ['a', 'b', 'c'])
      assert.equal((await asked(NOW - 1, 2)).length, 2)
    })

    it('goes by the last deposit, and by no adjustment, whose account may have none', async (t) => {
      const { db, source } = await spent(t, await url(t), { a: 1n, none: 11n * NANOS })
      for (const account of ['a', 'none']) await lease(db, account)
      await db.deleteFrom('deposits').where('account', '=', 'none').execute()
      const deposit = { account: 'a', key: null }
      for (const [reference, amount, at, reason] of [
        ['last', 300n, NOW + 9_000_000_000_000, null],
        ['earlier', 700n, NOW - 1, null],
        ['adjusted', 900n, NOW + 9_900_000_000_000, 'credit'],
      ] as const)
        await db
          .insertInto('deposits')
          .values({ account: deposit.account, reference, amount: amount * NANOS, at: BigInt(at), reason })
          .execute()
      const found = new Map(
        (await source.balances(NOW, 9)).map(({ account, threshold }) => [account, threshold]),
      )
      assert.deepEqual(
        found,
        new Map([
          ['a', 30n * NANOS],
          ['none', 0n],
        ]),
      )
    })

    it('is no balance that was reported, until it has risen to the threshold', async (t) => {
      const { db, asked } = await spent(t, await url(t), { a: 1n, b: 0n, c: -1n, d: 0n })
      for (const account of ['a', 'b', 'c', 'd', 'gone']) await tell(db, `account:${account}`, 'low')
      await tell(db, 'line:low', 'low')
      for (const account of ['a', 'b']) await lease(db, account)
      // One that has moved is found both ways.
      assert.deepEqual([...new Set(await asked())], ['b', 'c', 'd'])
      assert.deepEqual([...new Set(await asked())], ['b', 'c', 'd'], 'from the first one on again')
    })

    it('is a key that expires within a time, if it is enabled and was not reported for that end', async (t) => {
      const db = await open(t, await url(t))
      const ends = { before: 0, first: 1, off: 5, told: 6, prolonged: 7, last: 10, after: 11 }
      await seedAccountsAndKeys(db, {
        accounts: [{ id: 'acme' }],
        keys: [
          ...Object.entries(ends).map(([id, ms]) => ({
            ...{ id, account: 'acme', secret: `sk-${id}`, enabled: id !== 'off' },
            expiresAt: new Date(NOW + ms).toISOString(),
          })),
          { id: 'never', account: 'acme', secret: 'sk-never' },
        ],
      })
      await tell(db, 'key:told', `${NOW + 6}`)
      await tell(db, 'key:prolonged', `${NOW + 3}`)
      const source = new SqlWatchSource(db)
      const expected = (['first', 'prolonged', 'last'] as const).map((key) => ({
        ...{ key, account: 'acme', expiresAt: NOW + ends[key] },
      }))
      assert.deepEqual(await source.endingKeys(NOW, NOW + 10, 9), expected)
      assert.deepEqual(await source.endingKeys(NOW, NOW + 10, 2), expected.slice(0, 2))
    })
  })
}
