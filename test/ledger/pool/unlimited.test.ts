import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Reservation } from '../../../lib/ledger/pool/reservation.ts'
import { ledgerOf, units } from '../support/faulty-ledger.ts'
import { PoolProcess, settle } from '../support/pool-process.ts'
import { turns } from '../support/virtual-clock.ts'

const ONE = units(1)

describe('an unlimited wallet', () => {
  it('is read once, and has no lease', async () => {
    const process = new PoolProcess(ledgerOf(undefined, { k: null }))
    const first = await process.admitted(units(1_000_000), 'k')
    assert.ok(process.pool.reserve({ account: 'acme', key: 'k', amount: ONE }) instanceof Reservation)
    assert.equal(process.ledger.changes.length, 1)
    assert.equal(process.pool.stats.leases, 0)
    await settle(first, 'req', ONE).outcome
    assert.deepEqual(process.ledger.settled[0]?.[0]?.draws, [])
  })

  it('is limited within 5 s of becoming limited, while calls arrive', async () => {
    const shared = ledgerOf('1000', { k: null })
    const process = new PoolProcess(shared)
    ;(await process.admitted(ONE, 'k')).release()
    await shared.setLimit('key:k', { limited: true, quota: 0n })
    for (let ms = 0; ms <= 5000; ms += 500) {
      const held = await process.reserve(ONE, 'k')
      if (held instanceof Reservation) held.release()
      await process.clock.advance(500)
    }
    const refused = await process.reserve(ONE, 'k')
    assert.equal(
      typeof refused === 'object' && 'refused' in refused && refused.refused,
      'key_quota_exhausted',
    )
  })

  it('is read again when the last read is too old', async () => {
    const shared = ledgerOf('1000', { k: null })
    const process = new PoolProcess(shared)
    ;(await process.admitted(ONE, 'k')).release()
    await process.clock.advance(5000)
    await shared.setLimit('key:k', { limited: true, quota: 0n })
    const refused = await process.reserve(ONE, 'k')
    assert.equal(
      typeof refused === 'object' && 'refused' in refused && refused.refused,
      'key_quota_exhausted',
    )
  })

  it('returns its lease when it becomes unlimited', async () => {
    const shared = ledgerOf('1000', { k: '100' })
    const process = new PoolProcess(shared)
    ;(await process.admitted(ONE, 'k')).release()
    await shared.setLimit('key:k', { limited: false })
    await process.clock.advance(2000)
    ;(await process.admitted(ONE, 'k')).release()
    await process.clock.advance(4000)
    await turns()
    assert.deepEqual(
      (await shared.leases()).map(({ wallet }) => wallet),
      ['account:acme'],
    )
    assert.ok((await process.reserve(units(500), 'k')) instanceof Reservation)
  })

  it('applies a lowered quota within 5 s, while calls arrive', async () => {
    const shared = ledgerOf('1000', { k: '1000' })
    const process = new PoolProcess(shared)
    ;(await process.admitted(units(50), 'k')).release()
    await shared.setLimit('key:k', { limited: true, quota: 0n })
    for (let ms = 0; ms <= 4500; ms += 500) {
      const held = await process.reserve(ONE, 'k')
      if (held instanceof Reservation) held.release()
      await process.clock.advance(500)
    }
    const refused = await process.reserve(ONE, 'k')
    assert.equal(
      typeof refused === 'object' && 'refused' in refused && refused.refused,
      'key_quota_exhausted',
    )
  })
})
