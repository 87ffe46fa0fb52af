import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'pg'
import { accountWallet, LeasePool } from '../../../lib/ledger/index.ts'
import { Reservation } from '../../../lib/ledger/pool/reservation.ts'
import { openDatabase, SqlLedger } from '../../../lib/stores/sql/index.ts'
import { recordingLogger } from '../../support/app-server.ts'
import { watchHeldUp } from '../../support/held-up.ts'
import { WITHOUT_POSTGRES } from '../../support/postgres-server.ts'
import { until } from '../../support/until.ts'
import { farDatabase } from './far-database.ts'

const ROUND_TRIP_MS = 100
const LOCKED = 'account-0'
const OTHERS = Array.from({ length: 19 }, (_, i) => `account-${i + 1}`)
const EVERY_MS = 5
const LOCKED_MS = 3000

interface Charged {
  readonly account: string
  outcome: string
  ms: number
}

/** A pool on a Postgres far away, whose rows an operator near by can lock. */
async function farPool(t: TestContext) {
  const { near, far } = await farDatabase(t, ROUND_TRIP_MS)
  const operator = await openDatabase(near)
  t.after(() => operator.destroy())
  const books = new SqlLedger(operator)
  for (const account of [LOCKED, ...OTHERS]) await books.deposit(account, 1_000_000n, 'opening', 1)
  // As the gateway opens it.
  const db = await openDatabase(far, { poolSize: 6, lockTimeoutMs: 150 })
  t.after(() => db.destroy())
  const ledger = new SqlLedger(db)
  const flights = { now: 0, most: 0 }
  const settle = ledger.settle.bind(ledger)
  ledger.settle = async (settlements) => {
    flights.most = Math.max(flights.most, ++flights.now)
    try {
      return await settle(settlements)
    } finally {
      flights.now--
    }
  }
  const pool = new LeasePool({ ledger, logger: recordingLogger() })
  return { near, books, pool, flights }
}

describe('a wallet that another connection has locked in a Postgres far away', {
  skip: WITHOUT_POSTGRES,
}, () => {
  it('holds up the charges of its account, and others for one round at most', {
    timeout: 90_000,
  }, async (t) => {
    const heldUp = watchHeldUp(t)
    const { near, books, pool, flights } = await farPool(t)
    let made = 0
    const charge = async (account: string): Promise<Charged> => {
      const charged = { account, outcome: '', ms: 0 }
      const held = await pool.reserve({ account, key: null, amount: 1n })
      if (!(held instanceof Reservation)) return { ...charged, outcome: held.refused }
      const begun = performance.now()
      const bill = { requestId: `req_${++made}`, amount: 1n, at: Date.now(), claim: null, entry: null }
      const outcome = await held.settle({ ...bill, basis: () => '[]' })
      return { ...charged, outcome, ms: performance.now() - begun }
    }
    /** Charges one account after the other, at a steady rate. Every other one is of the account whose wallet is locked. */
    const chargeFor = (ms: number): Promise<Charged[]> => {
      const charges: Promise<Charged>[] = []
      const begun = performance.now()
      return new Promise((resolve) => {
        const timer = setInterval(() => {
          while (charges.length * EVERY_MS < performance.now() - begun) {
            const other = OTHERS[Math.floor(charges.length / 2) % OTHERS.length] as string
            charges.push(charge(charges.length % 2 === 0 ? LOCKED : other))
          }
          if (performance.now() - begun < ms) return
          clearInterval(timer)
          resolve(Promise.all(charges))
        }, EVERY_MS)
      })
    }
    const all = [...(await Promise.all([LOCKED, ...OTHERS].map(charge))), ...(await chargeFor(1500))]
    assert.deepEqual(new Set(all.map(({ outcome }) => outcome)), new Set(['confirmed']))
    assert.ok(flights.most > 2, `${flights.most} commits at a time`)

    const operator = new Client({ connectionString: near })
    await operator.connect()
    // A test that fails before its end stops the server first.
    operator.on('error', () => {})
    t.after(() => operator.end())
    await operator.query('begin')
    await operator.query('select 1 from wallets where id = $1 for update', [accountWallet(LOCKED)])
    const whileLocked = chargeFor(LOCKED_MS)
    await sleep(LOCKED_MS)
    await operator.query('rollback')
    await operator.end()
    all.push(...(await whileLocked))
    const beside = all.slice(-LOCKED_MS / EVERY_MS).filter(({ account }) => account !== LOCKED)
    assert.deepEqual(new Set(beside.map(({ outcome }) => outcome)), new Set(['confirmed']))
    const waited = beside.map(({ ms }) => ms).sort((one, other) => one - other)
    const [median, longest] = [waited[Math.floor(waited.length / 2)] as number, waited.at(-1) as number]
    t.diagnostic(`of others: median ${Math.round(median)} ms, longest ${Math.round(longest)} ms`)
    assert.ok(median <= 2 * ROUND_TRIP_MS + heldUp(), `median ${median} ms`)
    assert.ok(longest <= 8 * ROUND_TRIP_MS + 2 * heldUp(), `longest ${longest} ms`)
    assert.equal(pool.stats.outages, 0)

    await until(() => pool.stats.queued === 0, 'all charges')
    all.push(await charge(LOCKED))
    assert.equal(all.at(-1)?.outcome, 'confirmed')
    await pool.close()
    const { violations, spent, leased, charges } = await books.check()
    const admitted = all.filter(({ outcome }) => outcome !== 'billing_unavailable').length
    assert.deepEqual([violations, leased, spent, charges], [[], 0n, BigInt(admitted), admitted])
  })
})
