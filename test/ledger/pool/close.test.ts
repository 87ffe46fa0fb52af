import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { WalletsLocked } from '../../../lib/ledger/wallets-locked.ts'
import { ledgerOf, units } from '../support/faulty-ledger.ts'
import { PoolProcess, settle, tally } from '../support/pool-process.ts'
import { turns } from '../support/virtual-clock.ts'

const ONE = units(1)

describe('closing a pool', () => {
  it('admits no call, waits for charges, and returns all leases', async () => {
    const shared = ledgerOf('100', { k: '50' })
    const process = new PoolProcess(shared)
    const { pool, ledger, clock } = process
    const { admitted } = await tally(
      Array.from({ length: 10 }, () => pool.reserve({ account: 'acme', key: 'k', amount: ONE })),
    )
    const [running, ...others] = admitted
    ledger.faults.set('settle', 'waits')
    for (const [i, held] of others.entries()) settle(held, `req-${i}`, ONE / 2n)
    let closed = false
    const closing = pool.close().then(() => {
      closed = true
    })
    await clock.advance(400)
    assert.equal(closed, false)
    assert.deepEqual(pool.reserve({ account: 'acme', key: null, amount: ONE }), {
      refused: 'billing_unavailable',
      required: ONE,
      available: null,
    })
    ledger.mend()
    await closing
    const { spent, leased } = await shared.check()
    assert.deepEqual([spent, leased], [units(4.5), ONE])
    // A call that still ran gives back what it held when it ends.
    running?.release()
    await turns(20)
    assert.deepEqual(await shared.leases(), [])
  })

  it('closes a lease that a charge has emptied while a part of it was being returned', async () => {
    const shared = ledgerOf('3')
    const process = new PoolProcess(shared)
    const { pool, ledger } = process
    const [charged, released] = [await process.admitted(ONE), await process.admitted(ONE)]
    ledger.faults.set('settle', 'waits').set('change', 'late')
    const { outcome } = settle(charged, 'req', ONE)
    released.release()
    await turns(20)
    const [lease] = await shared.leases()
    assert.deepEqual([lease?.held, ledger.running], [ONE, 2], 'what is to be charged is in it still')
    ledger.letThrough(1)
    await outcome
    ledger.mend()
    await turns(20)
    await pool.close()
    assert.deepEqual([await shared.leases(), pool.stats.leasesLost], [[], 0])
  })

  it('closes the lease of a call that is charged after close', async () => {
    const shared = ledgerOf('100')
    const process = new PoolProcess(shared)
    const running = await process.admitted(ONE)
    await process.pool.close()
    process.ledger.faults.set('settle', 'waits')
    const { outcome } = settle(running, 'req', ONE)
    await turns(20)
    process.ledger.mend()
    await outcome
    await turns(20)
    const { spent, leased } = await shared.check()
    assert.deepEqual([spent, leased, await shared.leases()], [ONE, 0n, []])
  })

  for (const lockedMs of [1000, 5000])
    it(`waits for a lease whose rows are locked for ${lockedMs} ms, for 3000 ms at most`, async () => {
      const shared = ledgerOf('100')
      const process = new PoolProcess(shared)
      const { pool, ledger, clock } = process
      ;(await process.admitted(ONE)).release()
      const whole = ledger.change.bind(ledger)
      ledger.change = (owner, changes) =>
        clock.now() < lockedMs
          ? Promise.reject(new WalletsLocked(new Set(['account:acme'])))
          : whole(owner, changes)
      let open: number | undefined
      const closing = pool.close(3000).then(async () => {
        open = (await shared.leases()).length
      })
      await clock.advance(999)
      assert.equal(open, undefined)
      await clock.advance(2001)
      await closing
      assert.equal(open, lockedMs === 1000 ? 0 : 1)
    })

  it('returns money that arrives for a refused call, after its account is unlocked', async () => {
    const shared = ledgerOf('100')
    const { pool, ledger, clock } = new PoolProcess(shared)
    const whole = ledger.change.bind(ledger)
    ledger.change = (owner, changes) =>
      clock.now() < 1000
        ? Promise.reject(new WalletsLocked(new Set(['account:acme'])))
        : whole(owner, changes)
    void pool.reserve({ account: 'acme', key: null, amount: ONE })
    await turns(20)
    let open: number | undefined
    const closing = pool.close().then(async () => {
      open = (await shared.leases()).length
    })
    await clock.advance(2000)
    await closing
    const kinds = ledger.changes.flat().map(({ change }) => change.kind)
    assert.deepEqual([open, kinds], [0, ['take', 'give']])
  })

  it('answers the waiting calls', async () => {
    const process = new PoolProcess(ledgerOf('100'))
    process.ledger.faults.set('change', 'waits')
    const waiting = process.pool.reserve({ account: 'acme', key: null, amount: ONE })
    await turns()
    const closing = process.pool.close(100)
    assert.deepEqual(await waiting, { refused: 'billing_unavailable', required: ONE, available: null })
    await process.clock.advance(200)
    await closing
  })

  it('does not wait for a ledger that stays away, and logs each charge', async () => {
    const process = new PoolProcess(ledgerOf('100'))
    const held = await process.admitted(ONE)
    process.ledger.breakDown()
    settle(held, 'req', ONE / 2n)
    const closing = process.pool.close(3000)
    await process.clock.advance(3100)
    await closing
    const [line] = process.logger.lines.filter(({ message }) => message.includes('end of the process'))
    assert.ok(line)
    const { requestId, amount } = (line.fields as { settlement: Record<string, unknown> }).settlement
    assert.deepEqual([requestId, amount], ['req', '0.5'])
  })

  it('retries settlements that were set aside, and returns the leases after that', async () => {
    const shared = ledgerOf('100')
    const process = new PoolProcess(shared)
    const resolved = await setOneAside(process)
    process.ledger.poison.clear()
    await process.pool.close()
    assert.deepEqual(resolved, ['confirmed'])
    const { charges, spent, leased, violations } = await shared.check()
    assert.deepEqual([charges, spent, leased, violations], [2, 2n * ONE, 0n, []])
    assert.deepEqual(untold(process), [])
  })

  it('retries them only once, logs a failure, and does not take long', async () => {
    const shared = ledgerOf('100')
    const process = new PoolProcess(shared)
    await setOneAside(process)
    const handed = process.ledger.settled.length
    await process.pool.close()
    assert.equal(process.ledger.settled.length - handed, 1)
    const [line, ...more] = untold(process)
    assert.ok(line)
    const { requestId } = (line.fields as { settlement: Record<string, unknown> }).settlement
    assert.deepEqual([requestId, more], ['bad', []])
    assert.equal((await shared.check()).charges, 1)
    assert.equal(process.messages.includes('store is away'), false)
  })
})

const untold = ({ logger }: PoolProcess) =>
  logger.lines.filter(({ message }) => message.includes('end of the process'))

/** Sets one charge aside; returns its outcomes. */
async function setOneAside({ pool, ledger, clock }: PoolProcess): Promise<readonly string[]> {
  const { admitted } = await tally(
    Array.from({ length: 2 }, () => pool.reserve({ account: 'acme', key: null, amount: ONE })),
  )
  const [bad, good] = admitted
  assert.ok(bad && good)
  ledger.poison.add('bad')
  const { resolved } = settle(bad, 'bad', ONE)
  settle(good, 'good', ONE)
  await clock.advance(2000)
  assert.deepEqual([pool.stats.setAside, pool.stats.queued], [1, 0])
  return resolved
}
