import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { sql } from 'kysely'
import { newRequestId } from '../../../lib/core/call/index.ts'
import { SqlLedger, SqlUsageStore } from '../../../lib/stores/sql/index.ts'
import { entryAt } from '../../contracts/call-store.ts'
import { olderDatabase } from '../../stores/sql/older-database.ts'
import { BACKENDS } from '../../stores/sql/postgres-database.ts'
import { open } from '../../stores/sql/temporary-database.ts'
import { OWN_PROGRAM_FLAGS } from '../../support/own-program.ts'

const PROGRAM = fileURLToPath(new URL('./counter-process.ts', import.meta.url))
const CHARGES = 1500
const VOIDED = 20
const REFUSED = 450
const HOUR_MS = 3_600_000
const END = Date.UTC(2026, 5, 1)
const ACCOUNTS = ['acme', 'globex', 'initech']

const account = (i: number) => ACCOUNTS[i % ACCOUNTS.length] as string
const user = (i: number) => (i % 4 === 0 ? null : `user-${i % 7}`)
const amount = (i: number) => BigInt(1000 + i)

/** Fills a database as an older version did: without usage. */
async function fill(url: string): Promise<void> {
  const db = await olderDatabase(url, '0017-keys')
  const spent = new Map<string, bigint>()
  const charges: unknown[][] = []
  const voids: unknown[][] = []
  const calls: unknown[][] = []
  const log = (i: number, at: number, id: string, members: object) => {
    const entry = { ...entryAt(at, { account: account(i), key: 'k', user: user(i), ...members }), id }
    calls.push([
      id,
      entry.account,
      entry.key,
      entry.model,
      entry.status,
      entry.error_code,
      at,
      JSON.stringify(entry),
    ])
  }
  for (let i = 0; i < CHARGES; i++) {
    const at = END - (CHARGES - i) * HOUR_MS
    const id = newRequestId(at)
    charges.push([id, account(i), 'k', amount(i), at, amount(i) / 2n, '{"items":[]}'])
    const billing = { charged: '1', reserved: '1' }
    // The log no longer has the oldest calls.
    if (i >= 100) log(i, at, id, { status: 200, outcome: 'completed', billing, duration_ms: 10 })
    if (i % VOIDED === 0) voids.push([id, account(i), 'k', amount(i), at])
    else
      for (const wallet of [`account:${account(i)}`, 'key:k'])
        spent.set(wallet, (spent.get(wallet) ?? 0n) + amount(i))
  }
  for (let i = 0; i < REFUSED; i++) {
    const at = END - (REFUSED - i) * HOUR_MS + 1
    log(i, at, newRequestId(at), {
      status: 429,
      outcome: 'refused',
      error_code: 'rate_limited',
      billing: null,
    })
  }
  const wallets = [...spent].map(([id, sum]) => [id, 0, 0n, sum, 0n, 0n])
  await db.transaction().execute(async (trx) => {
    const insert = async (into: string, rows: readonly unknown[][]) => {
      for (let i = 0; i < rows.length; i += 100) {
        const values = rows.slice(i, i + 100).map((row) => sql`(${sql.join(row)})`)
        await sql`insert into ${sql.raw(into)} values ${sql.join(values)}`.execute(trx)
      }
    }
    await insert('wallets (id, limited, funds, spent, leased, overrun)', wallets)
    await insert('charges (request_id, account, key, amount, at, cost, basis)', charges)
    await insert('voids (request_id, account, key, amount, at)', voids)
    await insert('calls (id, account, key, model, status, error_code, created_at, entry)', calls)
  })
  await db.destroy()
}

function startCounter(t: TestContext, url: string) {
  const child = spawn(process.execPath, [...OWN_PROGRAM_FLAGS, PROGRAM, url], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.after(() => child.kill('SIGKILL'))
  const said = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const exited = once(child, 'exit')
  return {
    said: async () => (await said.next()).value as string,
    exited,
    async kill() {
      child.kill('SIGKILL')
      await exited
    },
  }
}

for (const { name, emptyUrl: url, skip } of BACKENDS) {
  describe(`charges and calls of before usage was counted, on ${name}`, { skip, timeout: 120_000 }, () => {
    it('are counted once, by two processes, behind one that was killed', async (t) => {
      const database = await url(t)
      await fill(database)
      const killed = startCounter(t, database)
      assert.equal(await killed.said(), 'open')
      const db = await open(t, database)
      const marks = () => db.selectFrom('usage_marks').select(['name', 'mark']).execute()
      while ((await marks()).length === 0) await sleep(2)
      await killed.kill()
      const left = await db.selectFrom('charges').select('request_id').where('usage', 'is', null).execute()
      assert.ok(left.length > 0 && left.length < CHARGES, `${left.length} charges are left`)
      const ledger = new SqlLedger(db)
      assert.deepEqual((await ledger.check()).violations, [], 'what is not counted yet is known')

      const both = [startCounter(t, database), startCounter(t, database)]
      for (const { said, exited } of both) {
        assert.deepEqual([await said(), await said()], ['open', 'counted'])
        assert.deepEqual(await exited, [0, null])
      }
      const expected = new Map<string, { requests: number; refused: number; charged: bigint }>()
      const add = (i: number, who: string | null, refused: number, charged: bigint) => {
        const group = JSON.stringify([account(i), who ?? ''])
        const sums = expected.get(group) ?? { requests: 0, refused: 0, charged: 0n }
        expected.set(group, {
          requests: sums.requests + 1,
          refused: sums.refused + refused,
          charged: sums.charged + charged,
        })
      }
      for (let i = 0; i < CHARGES; i++) if (i % VOIDED !== 0) add(i, i >= 100 ? user(i) : null, 0, amount(i))
      for (let i = 0; i < REFUSED; i++) add(i, user(i), 1, 0n)
      const span = { from: END - (CHARGES + 24) * HOUR_MS, to: END + HOUR_MS, limit: 1000 }
      const counted = async () => {
        const rows = await new SqlUsageStore(db).read({ ...span, groupBy: ['account', 'user'] })
        return rows.map(({ groups, sums: { requests, refused, charged } }) => [
          JSON.stringify(groups),
          { requests, refused, charged },
        ])
      }
      assert.deepEqual(
        await counted(),
        [...expected].sort(([one], [other]) => (one < other ? -1 : 1)),
      )
      assert.deepEqual((await ledger.check()).violations, [])
      const { count } = await db
        .selectFrom('charges')
        .select(({ fn }) => fn.countAll<bigint>().as('count'))
        .where('usage', 'is', null)
        .executeTakeFirstOrThrow()
      assert.equal(Number(count), 0)

      const again = startCounter(t, database)
      await again.exited
      assert.deepEqual(
        await counted(),
        [...expected].sort(([one], [other]) => (one < other ? -1 : 1)),
      )
    })
  })
}
