import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { MemoryLedger } from '../../../lib/ledger/index.ts'
import { Reservation } from '../../../lib/ledger/pool/reservation.ts'
import { units } from '../support/faulty-ledger.ts'
import { PoolProcess } from '../support/pool-process.ts'
import { turns } from '../support/virtual-clock.ts'

const ONE = units(1)
const QUEUE_BYTES = 1_000_000
/** Two fit into the fourth of the queue that one account may have, a third does not. */
const CHARGE_BYTES = 80_000

const twoTenants = (gathers = false) =>
  new PoolProcess(
    new MemoryLedger({
      accounts: [
        { id: 'loud', balance: '1000' },
        { id: 'quiet', balance: '1000' },
      ],
    }),
    { maxQueueBytes: QUEUE_BYTES, settlesRecords: true, gathers },
  )

async function reserved(process: PoolProcess, account: string): Promise<Reservation | string> {
  const answer = await process.pool.reserve({ account, key: null, amount: ONE })
  return answer instanceof Reservation ? answer : answer.refused
}

async function admitted(process: PoolProcess, account: string, count: number): Promise<Reservation[]> {
  const all = await Promise.all(Array.from({ length: count }, () => reserved(process, account)))
  return all.filter((each) => each instanceof Reservation)
}

function settle(held: Reservation, requestId: string, bytes = CHARGE_BYTES) {
  const bill = { requestId, amount: ONE, at: 0, basis: () => '[]', claim: null, entry: null }
  return held.settle({ ...bill, bytes })
}

describe('the bytes of queued charges', () => {
  it('of one account stop its own calls before they affect others', async () => {
    const process = twoTenants()
    const { ledger, pool } = process
    const calls = await admitted(process, 'loud', 5)
    const [other] = await admitted(process, 'quiet', 1)
    ledger.faults.set('settle', 'waits')
    const outcomes = calls.slice(0, 2).map((call, i) => settle(call, `loud-${i}`))
    assert.ok((await reserved(process, 'loud')) instanceof Reservation)
    outcomes.push(...calls.slice(2).map((call, i) => settle(call, `loud-${i + 2}`)))
    assert.equal(await reserved(process, 'loud'), 'billing_unavailable')
    // Calls that were admitted before are charged, however much waits.
    assert.equal(pool.stats.queuedBytes, 5 * CHARGE_BYTES)
    outcomes.push(settle(other as Reservation, 'quiet-0', 2048))
    assert.ok((await reserved(process, 'quiet')) instanceof Reservation)
    ledger.mend()
    assert.deepEqual(new Set(await Promise.all(outcomes)), new Set(['confirmed']))
    assert.equal(pool.stats.queuedBytes, 0)
    assert.ok((await reserved(process, 'loud')) instanceof Reservation)
  })

  it('count while they are set aside, until they are written', async () => {
    const process = twoTenants()
    const { ledger, pool, clock } = process
    const bad = await admitted(process, 'loud', 3)
    const good = await admitted(process, 'quiet', 3)
    for (const [i, call] of bad.entries()) {
      ledger.poison.add(`bad-${i}`)
      void settle(call, `bad-${i}`)
    }
    for (const [i, call] of good.entries()) {
      await clock.advance(100)
      void settle(call, `good-${i}`)
    }
    await clock.advance(3000)
    assert.deepEqual([pool.stats.setAside, pool.stats.queuedBytes], [3, 3 * CHARGE_BYTES])
    assert.equal(await reserved(process, 'loud'), 'billing_unavailable')
    assert.ok((await reserved(process, 'quiet')) instanceof Reservation)
    ledger.poison.clear()
    await clock.advance(31_000)
    assert.equal(pool.stats.queuedBytes, 0)
    assert.ok((await reserved(process, 'loud')) instanceof Reservation)
  })

  it('are freed when a charge is dropped, and counted again for the void of a written charge', async () => {
    const process = twoTenants(true)
    const [first, second] = (await admitted(process, 'loud', 2)) as [Reservation, Reservation]
    void settle(first, 'dropped')
    assert.equal(first.revoke(null), 'dropped')
    assert.equal(process.pool.stats.queuedBytes, 0)
    await settle(second, 'undone')
    process.ledger.faults.set('settle', 'waits')
    assert.equal(second.revoke(null), 'queued')
    await turns()
    assert.equal(process.pool.stats.queuedBytes, CHARGE_BYTES)
    process.ledger.mend()
    await turns()
    assert.equal(process.pool.stats.queuedBytes, 0)
  })

  it('are zero if a ledger that delayed a charge writes its void at once', async () => {
    const shared = new MemoryLedger({ accounts: [{ id: 'loud', balance: '1000' }] })
    const process = new PoolProcess(shared, { maxQueueBytes: QUEUE_BYTES })
    const [first, second] = (await admitted(process, 'loud', 2)) as [Reservation, Reservation]
    await settle(first, 'undone')
    const ofFirst = process.ledger.settle.bind(process.ledger)
    Object.assign(process.ledger, { settle: shared.settle.bind(shared) })
    assert.equal(first.revoke(null), 'queued')
    assert.deepEqual([process.pool.stats.queuedBytes, process.pool.stats.queued], [0, 0])
    assert.equal((await shared.check()).spent, 0n)
    Object.assign(process.ledger, { settle: ofFirst })
    process.ledger.faults.set('settle', 'waits')
    void settle(second, 'waits')
    assert.equal(process.pool.stats.queuedBytes, CHARGE_BYTES)
  })
})
