import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Reservation } from '../../../lib/ledger/pool/reservation.ts'
import { ledgerOf, units } from '../support/faulty-ledger.ts'
import { PoolProcess, settle, tally } from '../support/pool-process.ts'

const ONE = units(1)
const SET_ASIDE = 'a settlement fails while others are written: it is set aside'

async function running(process: PoolProcess, count: number): Promise<readonly Reservation[]> {
  const answers = Array.from({ length: count }, () =>
    process.pool.reserve({ account: 'acme', key: null, amount: ONE }),
  )
  return (await tally(answers)).admitted
}

describe('a settlement that the ledger fails', () => {
  it('delays no other for long, is logged with its figures, and is kept', async () => {
    const shared = ledgerOf('1000')
    const process = new PoolProcess(shared)
    const { ledger, pool, clock } = process
    const calls = await running(process, 200)
    ledger.poison.add('req-60')
    const settled = calls.map((call, i) => settle(call, `req-${i}`, ONE))
    await clock.advance(450)
    assert.equal((await shared.check()).charges, 199)
    // No other waited for long enough to stop admission.
    assert.deepEqual([pool.away, pool.stats.outages], [false, 0])
    assert.deepEqual([pool.stats.setAside, pool.stats.queued], [1, 0])
    await clock.advance(1500)
    assert.equal(await settled[60]?.outcome, 'unconfirmed')
    const [line] = process.logger.lines.filter(({ message }) => message === SET_ASIDE)
    assert.ok(line)
    const { requestId, account, amount } = (line.fields as { settlement: Record<string, unknown> }).settlement
    assert.deepEqual([requestId, account, amount], ['req-60', 'acme', '1'])
    await clock.advance(65_000)
    assert.equal(process.messages.filter((message) => message === SET_ASIDE).length, 1)
    assert.deepEqual(settled[60]?.resolved, [])
    ledger.poison.clear()
    await clock.advance(31_000)
    assert.deepEqual([(await shared.check()).charges, pool.stats.setAside], [200, 0])
    assert.deepEqual(settled[60]?.resolved, ['confirmed'])
  })

  it('does not stop admission permanently by itself', async () => {
    const process = new PoolProcess(ledgerOf('1000'))
    const { ledger, pool, clock } = process
    const [bad] = await running(process, 1)
    ledger.poison.add('bad')
    settle(bad!, 'bad', ONE)
    await clock.advance(3000)
    // One call is let through to see whether it is the ledger.
    const [trial] = await running(process, 1)
    assert.ok(trial)
    const { resolved } = settle(trial, 'trial', ONE)
    await clock.advance(1000)
    assert.deepEqual(resolved, ['confirmed'])
    assert.deepEqual([pool.away, pool.stats.setAside], [false, 1])
    assert.equal((await running(process, 5)).length, 5)
  })

  it('lets one call in two seconds through, to test the ledger', async () => {
    const process = new PoolProcess(ledgerOf('1000'))
    const { ledger, pool, clock } = process
    const [bad] = await running(process, 1)
    ledger.poison.add('bad')
    settle(bad!, 'bad', ONE)
    await clock.advance(3000)
    const admitted = async () => (await running(process, 3)).length
    const seen = [await admitted()]
    await clock.advance(1999)
    seen.push(await admitted())
    await clock.advance(1)
    seen.push(await admitted(), await admitted())
    assert.deepEqual([seen, pool.away, pool.onTrial], [[1, 0, 1, 0], true, true])
  })

  for (const [when, ms] of [
    ['before', 0],
    ['after', 3000],
  ] as const)
    it(`is undone if its call was not answered, reported ${when} it was set aside, even if the charge is never written`, async () => {
      const shared = ledgerOf('1000')
      const process = new PoolProcess(shared)
      const { ledger, clock } = process
      const [bad, good] = await running(process, 2)
      ledger.poison.add('bad')
      const { resolved } = settle(bad!, 'bad', ONE)
      await clock.advance(ms)
      assert.equal(bad?.revoke(null), 'queued')
      settle(good!, 'good', ONE)
      await clock.advance(90_000)
      assert.deepEqual(resolved, ['voided'])
      const { spent, leased, violations } = await shared.check()
      assert.deepEqual([spent, leased, violations], [ONE, 0n, []])
    })
})
