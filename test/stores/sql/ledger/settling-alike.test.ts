import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { sql } from 'kysely'
import { newRequestId } from '../../../../lib/core/call/index.ts'
import {
  accountWallet,
  keyWallet,
  type Ledger,
  type LedgerAdmin,
  MemoryLedger,
  type Settlement,
  type SettlementResult,
  type WalletId,
} from '../../../../lib/ledger/index.ts'
import type { Database } from '../../../../lib/stores/sql/driver/tables.ts'
import { SqlIdempotencyStore, SqlLedger } from '../../../../lib/stores/sql/index.ts'
import { entryAt } from '../../../contracts/call-store.ts'
import { charge, draw, take, voidOf } from '../../../contracts/ledger-money.ts'
import { WITHOUT_POSTGRES } from '../../../support/postgres-server.ts'
import { postgresUrl } from '../support/postgres-database.ts'
import { databaseUrl, open } from '../support/temporary-database.ts'

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
  cost: fc.option(amount),
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
type AnyLedger = Ledger & LedgerAdmin

/** Whether it is as nearly all are, where it comes first. */
function isEveryday({ account, key, claim, draws }: Call): boolean {
  const held = draws.every(({ lease, amount }) => lease % 2 === 1 && amount < 100n)
  return held && account === 'rich' && key !== 'unknown' && claim !== 'lost'
}

/** The id prefix of voids whose calls are never charged: a database reads its rows before it settles such a batch. */
const NEVER = 'never_'

/** Every row of every table that settling writes. */
async function rowsOf(db: Database): Promise<unknown> {
  const tables = ['wallets', 'leases', 'charges', 'voids', 'idempotency', 'calls'] as const
  const columns = { leases: 'id, wallet, held, seq, beats, ended' } as Readonly<Record<string, string>>
  const rows: unknown[] = []
  for (const table of tables) {
    const found =
      await sql`select ${sql.raw(columns[table] ?? '*')} from ${sql.table(table)} order by 1`.execute(db)
    const own = found.rows.filter(
      (row) => !`${(row as { request_id?: string }).request_id}`.startsWith(NEVER),
    )
    rows.push([table, own.map((row) => ({ ...(row as object) }))])
  }
  return rows
}

/** Wallets, leases and claims of a plan's own, and its settlements. */
async function prepare(
  run: number,
  { calls }: Plan,
  ledgers: readonly AnyLedger[],
  dbs: readonly Database[],
): Promise<Settlement[]> {
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
      cost: members.cost,
      claim: claim && { id: name(`\0␀${i}`), owner: requestId, keepUntil: NOW + 90_000 },
      entry: entry && entryAt(NOW, { id: requestId, status: entry.status, model: told, response_body: told }),
    })
  })
  for (const ledger of ledgers) {
    await ledger.deposit(name('rich'), 10n ** 17n, 'opening', 1)
    await ledger.setLimit(wallets[1]!, { limited: true, quota: 10n ** 17n })
    await ledger.change(
      'p',
      leases.map(({ id, wallet, held }) => take(id, wallet, held)),
    )
  }
  for (const db of dbs) {
    const store = new SqlIdempotencyStore(db)
    for (const [i, { claim }] of settlements.entries()) {
      const owner = calls[i]?.claim === 'lost' ? 'another' : claim?.owner
      if (!claim || !owner) continue
      await store.claim({ id: claim.id, owner, fingerprint: 'f', now: NOW, leaseUntil: NOW + 60_000 })
    }
  }
  return settlements
}

/** How the wallets and leases of a ledger stand. */
async function stateOf(ledger: AnyLedger, settlements: readonly Settlement[]): Promise<unknown> {
  const wallets = settlements.flatMap(({ account, key, draws }) => [
    accountWallet(account),
    ...(key === null ? [] : [keyWallet(key)]),
    ...draws.map(({ wallet }) => wallet),
  ])
  const leases = (await ledger.leases()).map(({ renewedAt: _, ...lease }) => lease)
  leases.sort((one, other) => (one.id < other.id ? -1 : 1))
  return { wallets: await ledger.wallets([...new Set(wallets)].sort()), leases }
}

describe('settling in memory, in SQLite, in Postgres, at once and with its rows read first', {
  skip: WITHOUT_POSTGRES,
}, () => {
  it('answers the same and leaves the same rows', async (t) => {
    const dbs = [
      await open(t, await postgresUrl()),
      await open(t, await databaseUrl(t)),
      await open(t, await postgresUrl()),
      await open(t, await databaseUrl(t)),
    ] as const
    const ledgers = dbs.map((db) => new SqlLedger(db))
    const [postgres, sqlite, postgresReads, sqliteReads] = ledgers as [
      SqlLedger,
      SqlLedger,
      SqlLedger,
      SqlLedger,
    ]
    const memory = new MemoryLedger()
    let runs = 0
    let never = 0
    await fc.assert(
      fc.asyncProperty(plan, async (drawn) => {
        const settlements = await prepare(++runs, drawn, [memory, ...ledgers], dbs)
        const everyday = settlements.filter((_, i) => isEveryday(drawn.calls[i]!))
        const batches = drawn.batches.map((batch) =>
          batch.map(({ call, isVoid }) => (isVoid ? voidOf(settlements[call]!) : settlements[call]!)),
        )
        const voided = settlements.filter((_, i) => drawn.calls[i]?.isVoided)
        const voids = voided.map((call) => voidOf(call, { claim: null }))
        for (const batch of [voids, everyday, ...batches]) {
          const results = await postgres.settle(batch)
          assert.deepEqual(await sqlite.settle(batch), results)
          const read = [...batch, voidOf(charge('nobody', 0n, { requestId: `${NEVER}${++never}` }))]
          assert.deepEqual((await postgresReads.settle(read)).slice(0, -1), results)
          assert.deepEqual((await sqliteReads.settle(read)).slice(0, -1), results)
          // A ledger in memory knows of no claims.
          const owned = (_: unknown, i: number) => results[i] !== 'fenced'
          assert.deepEqual(
            memory.settle(batch.filter(owned)),
            results.filter<SettlementResult>(owned as never),
          )
        }
        const rows = await Promise.all(dbs.map(rowsOf))
        for (const other of rows.slice(1)) assert.deepEqual(other, rows[0])
        assert.deepEqual(await stateOf(memory, settlements), await stateOf(postgres, settlements))
        for (const ledger of [memory, ...ledgers]) assert.deepEqual((await ledger.check()).violations, [])
      }),
      { numRuns: 10 },
    )
  })
})
