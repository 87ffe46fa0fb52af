import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import fc from 'fast-check'
import { sql } from 'kysely'
import { newRequestId } from '../../../lib/core/call/index.ts'
import { accountWallet, keyWallet, type Settlement, type WalletId } from '../../../lib/ledger/index.ts'
import type { Database } from '../../../lib/stores/sql/driver/tables.ts'
import { SqlIdempotencyStore, SqlLedger } from '../../../lib/stores/sql/index.ts'
import { PostgresSettling } from '../../../lib/stores/sql/ledger/postgres-settling.ts'
import { Settling, settlementRowOf } from '../../../lib/stores/sql/ledger/sql-ledger-settle.ts'
import { entryAt } from '../../contracts/call-store.ts'
import { charge, draw, take, voidOf } from '../../contracts/ledger-money.ts'
import { WITHOUT_POSTGRES } from '../../support/postgres-server.ts'
import { postgresUrl } from './postgres-database.ts'
import { databaseUrl, open } from './temporary-database.ts'

const NOW = Date.parse('2026-01-31T12:00:00Z')
const amount = fc.constantFrom(0n, 1n, 7n, 30n, 2n ** 53n + 1n)
const text = fc.constantFrom(
  null,
  '',
  '\\u0000',
  '\0',
  '␀0\0␀',
  'né 😀',
  '\ud800x',
  'x\udc00',
  '"{,}"',
  '\\\ud800\\',
)

const call = fc.record({
  account: fc.constantFrom('rich', 'rich', 'rich', 'unknown'),
  key: fc.constantFrom(null, 'limited', 'limited', 'unknown'),
  amount,
  draws: fc.array(fc.record({ lease: fc.nat(3), amount }), { maxLength: 2 }),
  basis: text,
  /** `held`: its own. */
  claim: fc.constantFrom(null, 'held' as const, 'held' as const, 'lost' as const),
  /** Before it is charged; its claim is left to it. */
  isVoided: fc.constantFrom(false, false, false, false, false, true),
  entry: fc.option(fc.record({ text, status: fc.constantFrom(200, 503) })),
})

const plan = fc.record({
  calls: fc.array(call, { minLength: 6, maxLength: 6 }),
  batches: fc.array(
    fc.array(fc.record({ call: fc.nat(5), isVoid: fc.nat(5).map((n) => n === 0) }), {
      minLength: 1,
      maxLength: 5,
    }),
    { minLength: 1, maxLength: 4 },
  ),
})

type Plan = typeof plan extends fc.Arbitrary<infer T> ? T : never
type Call = Plan['calls'][number]
type Settle = (batch: readonly Settlement[]) => Promise<unknown>

/** Whether it can be settled at once where it comes first. */
function isEveryday({ account, key, claim, draws }: Call): boolean {
  const held = draws.every(({ lease, amount }) => lease % 2 === 1 && amount < 100n)
  return held && account === 'rich' && key !== 'unknown' && claim !== 'lost'
}

/** Every row of every table that settling writes. */
async function rowsOf(db: Database): Promise<unknown> {
  const tables = ['wallets', 'leases', 'charges', 'voids', 'idempotency', 'calls'] as const
  const columns = { leases: 'id, wallet, held, seq, beats, ended' } as Readonly<Record<string, string>>
  const rows: unknown[] = []
  for (const table of tables) {
    const found =
      await sql`select ${sql.raw(columns[table] ?? '*')} from ${sql.table(table)} order by 1`.execute(db)
    rows.push([table, found.rows.map((row) => ({ ...(row as object) }))])
  }
  return rows
}

/** Wallets, leases and claims of a plan's own, and its settlements. */
async function prepare(run: number, { calls }: Plan, dbs: readonly Database[]): Promise<Settlement[]> {
  const name = (what: string) => `${what}_${run}`
  const wallets: readonly WalletId[] = [accountWallet(name('rich')), keyWallet(name('limited'))]
  const leases = wallets.flatMap((wallet) =>
    [20n, 10n ** 16n].map((held, i) => ({ wallet, held, id: name(`${wallet} ${i}`) })),
  )
  const settlements = calls.map(({ account, key, entry, draws, claim, ...members }, i) => {
    const requestId = newRequestId(NOW + i)
    const told = entry?.text ?? null
    const paying = draws.map(({ lease: n, amount }) => draw(leases[n]!.id, leases[n]!.wallet, amount))
    return charge(name(account), members.amount, {
      requestId,
      key: key && name(key),
      draws: paying,
      basis: members.basis,
      claim: claim && { id: name(`\0␀${i}`), owner: requestId, keepUntil: NOW + 90_000 },
      entry: entry && entryAt(NOW, { id: requestId, status: entry.status, model: told, response_body: told }),
    })
  })
  for (const db of dbs) {
    const [ledger, store] = [new SqlLedger(db), new SqlIdempotencyStore(db)]
    await ledger.deposit(name('rich'), 10n ** 17n, 'opening', 1)
    await ledger.setLimit(wallets[1]!, { limited: true, quota: 10n ** 17n })
    await ledger.change(
      'p',
      leases.map(({ id, wallet, held }) => take(id, wallet, held)),
    )
    for (const [i, { claim }] of settlements.entries()) {
      const owner = calls[i]?.claim === 'lost' ? 'another' : claim?.owner
      if (!claim || !owner) continue
      await store.claim({ id: claim.id, owner, fingerprint: 'f', now: NOW, leaseUntil: NOW + 60_000 })
    }
  }
  return settlements
}

async function openAll(t: TestContext) {
  const dbs = [
    await open(t, await postgresUrl()),
    await open(t, await postgresUrl()),
    await open(t, await databaseUrl(t)),
  ]
  const [one, other, lite] = dbs as [Database, Database, Database]
  const [atOnce, oneByOne] = [PostgresSettling.on(one), new Settling(other)]
  const [ledger, thread] = [new SqlLedger(one), new SqlLedger(lite)]
  const seen = { atOnce: 0, oneByOne: 0 }
  const ways: Settle[] = [
    async (batch) => {
      const results = await atOnce?.settle(batch.map(settlementRowOf))
      seen[results ? 'atOnce' : 'oneByOne']++
      return results ?? ledger.settle(batch)
    },
    (batch) => other.transaction().execute((trx) => oneByOne.settle(trx, batch.map(settlementRowOf))),
    (batch) => thread.settle(batch),
  ]
  return { dbs, ways, seen, check: () => ledger.check() }
}

describe('settling in one round trip, statement by statement and in the thread of SQLite', {
  skip: WITHOUT_POSTGRES,
}, () => {
  it('answers the same and leaves the same rows', async (t) => {
    const { dbs, ways, seen, check } = await openAll(t)
    let runs = 0
    await fc.assert(
      fc.asyncProperty(plan, async (drawn) => {
        const settlements = await prepare(++runs, drawn, dbs)
        const everyday = settlements.filter((_, i) => isEveryday(drawn.calls[i]!))
        const batches = drawn.batches.map((batch) =>
          batch.map(({ call, isVoid }) => (isVoid ? voidOf(settlements[call]!) : settlements[call]!)),
        )
        const voided = settlements.filter((_, i) => drawn.calls[i]?.isVoided)
        const voids = voided.map((call) => voidOf(call, { claim: null }))
        for (const batch of [voids, everyday, ...batches]) {
          if (batch.length === 0) continue
          const [one, other, lite] = await Promise.all(ways.map((settle) => settle(batch)))
          assert.deepEqual(one, other)
          assert.deepEqual(lite, other)
        }
        const [one, other, lite] = await Promise.all(dbs.map(rowsOf))
        assert.deepEqual(one, other)
        assert.deepEqual(lite, other)
        assert.deepEqual((await check()).violations, [])
      }),
      { numRuns: 40 },
    )
    assert.ok(seen.atOnce >= 10 && seen.oneByOne >= 10, JSON.stringify(seen))
  })
})
