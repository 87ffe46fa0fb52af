import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { sql } from 'kysely'
import type { AuditedShare } from '../../../lib/ledger/audit.ts'
import type { Database } from '../../../lib/stores/sql/index.ts'
import { auditedShares } from '../../../lib/stores/sql/regions/audited-shares.ts'
import { databaseUrl, open } from './temporary-database.ts'

const PAGE_ROWS = 2000

/** All shares that are audited, by the wallet's number. */
async function audited(db: Database): Promise<AuditedShare[]> {
  const found: AuditedShare[] = []
  for await (const shares of auditedShares(db)) found.push(...shares)
  return found
}

const nameOf = (number: number) => `account:${String(number).padStart(6, '0')}`
const numbered = (rows: number) =>
  sql`with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < ${sql.lit(rows)})`
const wallet = sql`'account:' || substr('000000' || n, -6)`

describe('the shares that an audit looks at', () => {
  for (const rows of [0, 1, PAGE_ROWS - 1, PAGE_ROWS, 2 * PAGE_ROWS, 2 * PAGE_ROWS + 1])
    it(`are all of this region's, each once: ${rows}`, async (t) => {
      const db = await open(t, await databaseUrl(t))
      if (rows > 0)
        await sql`insert into shares (wallet, home, seq, received, returned, told_spent, told_returned, elsewhere, used_at, in_use)
          ${numbered(rows)} select ${wallet}, 'eu', 1, 10 * n, n, 0, 0, 0, 0, 1 from numbers`.execute(db)
      const found = await audited(db)
      assert.equal(found.length, rows)
      for (const [i, share] of found.entries()) {
        const funds = BigInt(9 * (i + 1))
        assert.deepEqual(share, { wallet: nameOf(i + 1), funds, spent: 0n, held: 0n })
      }
    })

  for (const rows of [1, PAGE_ROWS / 2, PAGE_ROWS / 2 + 1, 2 * PAGE_ROWS])
    it(`are all that others have, each once, of two regions for each wallet: ${rows}`, async (t) => {
      const db = await open(t, await databaseUrl(t))
      for (const region of ['us', 'eu'])
        await sql`insert into lent_shares (wallet, region, seq, granted, returned, spent, reported_at)
          ${numbered(rows)} select ${wallet}, ${sql.lit(region)}, 1, 10 * n, n, 2 * n, 0 from numbers`.execute(
          db,
        )
      const found = await audited(db)
      assert.equal(found.length, 2 * rows)
      for (const [i, share] of found.entries()) {
        const number = Math.floor(i / 2) + 1
        const [spent, held] = [BigInt(2 * number), BigInt(7 * number)]
        assert.deepEqual(share, { wallet: nameOf(number), funds: 0n, spent, held })
      }
    })

  it('hold nothing where more was spent than was granted', async (t) => {
    const db = await open(t, await databaseUrl(t))
    await sql`insert into lent_shares (wallet, region, seq, granted, returned, spent, reported_at)
      values ('account:acme', 'us', 1, 10, 3, 9, 0)`.execute(db)
    assert.deepEqual(await audited(db), [{ wallet: 'account:acme', funds: 0n, spent: 9n, held: 0n }])
  })
})
