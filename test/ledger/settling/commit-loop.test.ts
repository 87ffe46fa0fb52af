import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { LeasePool } from '../../../lib/ledger/pool/lease-pool.ts'
import { Reservation } from '../../../lib/ledger/pool/reservation.ts'
import { ledgerOf, units } from '../support/faulty-ledger.ts'
import { PoolProcess, settle, tally } from '../support/pool-process.ts'
import { turns, VirtualClock } from '../support/virtual-clock.ts'

const ONE = units(1)

async function running(process: PoolProcess, count: number): Promise<readonly Reservation[]> {
  const answers = Array.from({ length: count }, () =>
    process.pool.reserve({ account: 'acme', key: null, amount: ONE }),
  )
  return (await tally(answers)).admitted
}

describe('the commit loop', () => {
  it('has one commit in progress, and the next takes everything that arrived meanwhile, in order', async () => {
    const process = new PoolProcess(ledgerOf('1000'))
    const { ledger } = process
    const calls = await running(process, 700)
    ledger.faults.set('settle', 'waits')
    const outcomes = calls.map((call, i) => settle(call, `req-${i}`, ONE).outcome)
    await turns()
    assert.deepEqual(
      ledger.settled.map(({ length }) => length),
      [1],
    )
    ledger.letThrough()
    await turns()
    assert.deepEqual(
      ledger.settled.map(({ length }) => length),
      [1, 500],
    )
    ledger.mend()
    assert.deepEqual(new Set(await Promise.all(outcomes)), new Set(['confirmed']))
    assert.deepEqual(
      ledger.settled.map(({ length }) => length),
      [1, 500, 199],
    )
    const order = ledger.settled.flat().map(({ requestId }) => requestId)
    assert.deepEqual(
      order,
      calls.map((_, i) => `req-${i}`),
    )
  })

  it('sends all charges of one turn of the event loop at once to a ledger that gathers', async () => {
    const shared = ledgerOf('1000')
    const process = new PoolProcess(shared, { gathers: true })
    const { ledger } = process
    const sizes = () => ledger.settled.map(({ length }) => length)
    const [first, second, third, ...others] = await running(process, 20)
    ledger.faults.set('settle', 'waits')
    const outcomes = [first, second].map((call, i) => call && settle(call, `req-${i}`, ONE).outcome)
    await Promise.resolve()
    outcomes.push(third && settle(third, 'req-2', ONE).outcome)
    assert.deepEqual(sizes(), [])
    await turns(1)
    assert.deepEqual(sizes(), [3])
    outcomes.push(...others.slice(0, 10).map((call, i) => settle(call, `req-${i + 3}`, ONE).outcome))
    await turns()
    assert.deepEqual(sizes(), [3], 'one commit at a time')
    ledger.letThrough()
    await outcomes[0]
    // Charges that come in the turn in which a commit is done are committed with those that have waited for it.
    outcomes.push(...others.slice(10).map((call, i) => settle(call, `req-${i + 13}`, ONE).outcome))
    await turns()
    assert.deepEqual(sizes(), [3, 17])
    ledger.mend()
    assert.deepEqual(new Set(await Promise.all(outcomes)), new Set(['confirmed']))
    assert.equal((await shared.check()).spent, 20n * ONE)
  })

  it('sends no charge to a ledger that gathers if it was dropped in the same turn', async () => {
    const process = new PoolProcess(ledgerOf('1000'), { gathers: true })
    const [first] = await running(process, 1)
    assert.ok(first)
    const { outcome } = settle(first, 'req', ONE)
    assert.equal(first.revoke(null), 'dropped')
    await outcome
    await turns()
    assert.deepEqual(process.ledger.settled, [])
  })

  it('does not wait if the ledger settles synchronously', async () => {
    const ledger = ledgerOf('1000', { k: '10' })
    const pool = new LeasePool({ ledger, clock: new VirtualClock() })
    const held = await pool.reserve({ account: 'acme', key: 'k', amount: ONE })
    assert.ok(held instanceof Reservation)
    const { outcome, resolved } = settle(held, 'req', ONE / 4n)
    assert.deepEqual([outcome, resolved], ['confirmed', ['confirmed']])
    assert.equal((await ledger.check()).spent, ONE / 4n)
    assert.equal(settle(held, 'req-2', ONE).outcome, 'confirmed')
    held.release()
    assert.equal((await ledger.check()).spent, ONE / 4n)
    await pool.close()
    assert.deepEqual(await ledger.leases(), [])
  })

  it('builds the records of a charge when it is sent, and charges without those that fail', async () => {
    const process = new PoolProcess(ledgerOf('1000'))
    const [first, second] = await running(process, 2)
    process.ledger.faults.set('settle', 'waits')
    const asked: string[] = []
    const bill = (requestId: string) => ({ requestId, amount: ONE, at: 0, claim: null, entry: null })
    const basis = (requestId: string) => () => {
      asked.push(requestId)
      if (requestId === 'two') throw new Error('no basis')
      return '[]'
    }
    const outcomes = [
      first?.settle({ ...bill('one'), basis: basis('one') }),
      second?.settle({ ...bill('two'), basis: basis('two') }),
    ]
    await turns()
    assert.deepEqual(asked, ['one'])
    process.ledger.mend()
    assert.deepEqual(await Promise.all(outcomes), ['confirmed', 'confirmed'])
    assert.deepEqual(asked, ['one', 'two'])
    assert.deepEqual(process.messages, ['a charge is written without its basis or log entry'])
  })

  it('sends charges without an answer again, and does not count them as settled', async () => {
    const process = new PoolProcess(ledgerOf('1000'))
    const { ledger, clock } = process
    const calls = await running(process, 3)
    ledger.faults.set('settle', 'waits')
    const settled = calls.map((call, i) => settle(call, `req-${i}`, ONE))
    await turns()
    const whole = ledger.settle.bind(ledger)
    ledger.settle = async (settlements) => (await whole(settlements)).slice(0, 1)
    ledger.mend()
    await turns()
    ledger.settle = whole
    await clock.advance(1000)
    assert.deepEqual(
      settled.map(({ resolved }) => resolved),
      [['confirmed'], ['confirmed'], ['confirmed']],
    )
    assert.deepEqual(
      ledger.settled.map((batch) => batch.map(({ requestId }) => requestId)),
      [['req-0'], ['req-1', 'req-2'], ['req-2']],
    )
  })

  it('draws a cost beyond the hold from the free amount, then from the account, even below zero', async () => {
    const shared = ledgerOf('10')
    const process = new PoolProcess(shared)
    const [one, other] = [await process.admitted(units(4)), await process.admitted(units(4))]
    other.release()
    await settle(one, 'req', units(15)).outcome
    await process.clock.advance(2000)
    const [wallet] = await shared.wallets(['account:acme'])
    assert.deepEqual([wallet?.spent, wallet?.leased, wallet?.overrun], [units(15), 0n, 0n])
    assert.deepEqual((await shared.check()).violations, [])
  })
})
