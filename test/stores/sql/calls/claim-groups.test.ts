import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import fc from 'fast-check'
import { PINNED_UNTIL } from '../../../../lib/core/idempotency/index.ts'
import { type Database, openDatabase, SqlIdempotencyStore } from '../../../../lib/stores/sql/index.ts'
import { recordingLogger } from '../../../support/app-server.ts'
import { WITHOUT_POSTGRES } from '../../../support/postgres-server.ts'
import { postgresUrl } from '../support/postgres-database.ts'
import { databaseUrl, open, PATIENT } from '../support/temporary-database.ts'

const NOW = Date.parse('2026-01-31T12:00:00Z')
const RUNS = 6
const IDS = 40

const owner = fc.constantFrom('one', 'two')
const record = fc.record({
  owner,
  fingerprint: fc.constantFrom('f', 'g'),
  state: fc.constantFrom('running' as const, 'completed' as const),
  expires_at: fc.constantFrom(NOW - 1, NOW, NOW + 1, NOW + 60_000, PINNED_UNTIL),
  answer: fc.constantFrom(null, 'answer'),
})
const world = fc.record({
  records: fc.array(fc.option(record), { minLength: IDS, maxLength: IDS }),
  /** Of different keys: those of one key have no order. */
  asked: fc.uniqueArray(fc.record({ id: fc.nat(IDS - 1), owner, fingerprint: fc.constantFrom('f', 'g') }), {
    minLength: IDS / 2,
    maxLength: IDS,
    selector: ({ id }) => id,
  }),
})
type World = typeof world extends fc.Arbitrary<infer T> ? T : never

/** The same records in Postgres, of whose connections claims have one, and in SQLite. */
async function stores(t: TestContext) {
  const postgres = await openDatabase(await postgresUrl(), {
    ...PATIENT,
    logger: recordingLogger(),
    poolSize: 2,
  })
  t.after(() => postgres.destroy())
  const sqlite = await open(t, await databaseUrl(t))
  return [postgres, sqlite] as const
}

const nameOf = (run: number, id: number) => `${run} ${String(id).padStart(3, '0')}`

async function fill(dbs: readonly Database[], run: number, { records }: World): Promise<void> {
  const rows = records.flatMap((row, i) =>
    row ? [{ ...row, id: nameOf(run, i), expires_at: BigInt(row.expires_at) }] : [],
  )
  if (rows.length > 0) for (const db of dbs) await db.insertInto('idempotency').values(rows).execute()
}

const rowsOf = (db: Database) => db.selectFrom('idempotency').selectAll().orderBy('id').execute()

describe('records of keys that many ask for at once, in one statement of Postgres', {
  skip: WITHOUT_POSTGRES,
}, () => {
  it('are claimed as if one came after another', async (t) => {
    const dbs = await stores(t)
    const [grouped, single] = dbs.map((db) => new SqlIdempotencyStore(db)) as [
      SqlIdempotencyStore,
      SqlIdempotencyStore,
    ]
    const outcomes = new Set<string>()
    for (const [run, drawn] of fc.sample(world, { numRuns: RUNS, seed: 3 }).entries()) {
      await fill(dbs, run, drawn)
      const claims = drawn.asked.map(({ id, ...rest }) => {
        return { id: nameOf(run, id), ...rest, now: NOW, leaseUntil: NOW + 30_000 }
      })
      // The first goes alone; the others wait for it, and are then one group.
      const alone = { id: `alone ${run}`, owner: 'o', fingerprint: 'f', now: NOW, leaseUntil: NOW + 1 }
      const [, ...found] = await Promise.all([alone, ...claims].map((claim) => grouped.claim(claim)))
      await single.claim(alone)
      for (const [i, claim] of claims.entries()) {
        const expected = await single.claim(claim)
        assert.deepEqual(found[i], expected, JSON.stringify(claim))
        outcomes.add(`${expected?.state} ${expected?.answer} ${expected?.owner === claim.owner}`)
      }
      assert.deepEqual(await rowsOf(dbs[0]), await rowsOf(dbs[1]))
    }
    assert.equal(outcomes.size, 7, [...outcomes].join(', '))
  })

  for (const what of ['completed', 'released', 'renewed'] as const)
    it(`are ${what} where they are their owner's, and no others`, async (t) => {
      const dbs = await stores(t)
      const [grouped, single] = dbs.map((db) => new SqlIdempotencyStore(db)) as [
        SqlIdempotencyStore,
        SqlIdempotencyStore,
      ]
      for (const [run, drawn] of fc.sample(world, { numRuns: RUNS, seed: 5 }).entries()) {
        await fill(dbs, run, drawn)
        const claims = drawn.asked.map(({ id, owner: own }) => ({ id: nameOf(run, id), owner: own }))
        const all = async (store: SqlIdempotencyStore): Promise<unknown[]> => {
          if (what === 'renewed') return store.renew(claims, NOW + 90_000)
          return Promise.all(
            claims.map((claim, i) =>
              what === 'completed'
                ? store.complete(claim, NOW + i, i % 2 === 0 ? 'new' : undefined)
                : store.release(claim),
            ),
          )
        }
        assert.deepEqual(await all(grouped), await all(single))
        const left = await rowsOf(dbs[0])
        assert.deepEqual(left, await rowsOf(dbs[1]))
        const changed = left.filter(({ id }) => id.startsWith(`${run} `)).length
        assert.ok(what !== 'released' || changed < drawn.records.filter((row) => row).length)
      }
    })
})
