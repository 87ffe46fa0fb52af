import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { CallLogEntry } from '../../../lib/core/call/index.ts'
import { LeasePool } from '../../../lib/ledger/pool/lease-pool.ts'
import { Reservation } from '../../../lib/ledger/pool/reservation.ts'
import { recordingLogger } from '../../support/app-server.ts'
import { FaultyLedger, ledgerOf, units } from '../support/faulty-ledger.ts'
import { PoolProcess, settle, tally } from '../support/pool-process.ts'
import { turns } from '../support/virtual-clock.ts'

const ONE = units(1)
const UNAVAILABLE = { refused: 'billing_unavailable', required: ONE, available: null }

describe('a ledger that is away', () => {
  for (const fault of ['fails', 'waits', 'unheard'] as const) {
    it(`stops admission when a charge has waited for 500 ms, until it is back (${fault})`, async () => {
      const changes: boolean[] = []
      const shared = ledgerOf('1000')
      const process = new PoolProcess(shared, { onStoreChange: (away) => changes.push(away) })
      const { pool, clock, ledger } = process
      const calls = await tally(
        Array.from({ length: 20 }, () => pool.reserve({ account: 'acme', key: null, amount: ONE })),
      )
      ledger.breakDown(fault)
      const settled = calls.admitted.map((call, i) => settle(call, `req-${i}`, ONE / 2n))
      await clock.advance(450)
      const sooner = pool.reserve({ account: 'acme', key: null, amount: ONE })
      assert.ok(sooner instanceof Reservation)
      sooner.release()
      await clock.advance(60)
      assert.equal(pool.away, true)
      assert.deepEqual(pool.reserve({ account: 'acme', key: null, amount: ONE }), UNAVAILABLE)
      const free = pool.reserve({ account: 'acme', key: null, amount: 0n, settles: false })
      assert.ok(free instanceof Reservation, 'a call that needs no charge goes on')
      free.release()
      await clock.advance(1000)
      assert.deepEqual(
        new Set(await Promise.all(settled.map(({ outcome }) => outcome))),
        new Set(['unconfirmed']),
      )
      await clock.advance(9000)
      ledger.mend()
      await clock.advance(3000)
      assert.equal(pool.away, false)
      assert.ok((await process.reserve(ONE)) instanceof Reservation)
      assert.ok(settled.every(({ resolved }) => resolved.length === 1 && resolved[0] === 'confirmed'))
      const { spent, charges, violations } = await shared.check()
      assert.deepEqual([spent, charges, violations], [units(10), 20, []])
      assert.deepEqual(changes, [true, false])
      const told = process.messages
      assert.deepEqual(told, ['store is away', 'store is back'])
      assert.equal(pool.stats.outages, 1)
    })
  }

  it('admits calls that the present leases cover, while no charge waits', async () => {
    const process = new PoolProcess(ledgerOf('1000'))
    const { pool, clock, ledger } = process
    const held = await tally(
      Array.from({ length: 5 }, () => pool.reserve({ account: 'acme', key: null, amount: ONE })),
    )
    ledger.faults.set('change', 'waits')
    const waiting = Promise.resolve(pool.reserve({ account: 'acme', key: null, amount: units(50) }))
    await clock.advance(1100)
    assert.deepEqual(await waiting, { ...UNAVAILABLE, required: units(50) })
    assert.equal(pool.away, true)
    held.admitted[0]?.release()
    assert.ok(pool.reserve({ account: 'acme', key: null, amount: ONE }) instanceof Reservation)
    // Nobody waits for what is known to be away, but for one now and then.
    const tries = Array.from({ length: 10 }, () =>
      pool.reserve({ account: 'acme', key: null, amount: units(50) }),
    )
    assert.equal(tries.filter((answer) => answer instanceof Promise).length, 1)
    ledger.mend()
    await clock.advance(1000)
    assert.equal(pool.away, false)
    assert.ok((await process.reserve(units(50))) instanceof Reservation)
  })

  it('does not count as away while this process itself is busy', async () => {
    const logger = recordingLogger()
    const ledger = new FaultyLedger(ledgerOf('1000'))
    const pool = new LeasePool({ ledger, logger, stallMs: 30, confirmMs: 40, admissionMs: 40 })
    const held = await pool.reserve({ account: 'acme', key: null, amount: ONE })
    assert.ok(held instanceof Reservation)
    const { outcome } = settle(held, 'req', ONE)
    const next = pool.reserve({ account: 'acme', key: null, amount: units(100) })
    const busyUntil = performance.now() + 100
    while (performance.now() < busyUntil);
    assert.equal(await outcome, 'confirmed')
    assert.ok((await next) instanceof Reservation)
    assert.deepEqual([logger.lines, pool.stats.outages], [[], 0])
    await pool.close()
  })
})

describe('a charge that is revoked', () => {
  it('is dropped if the ledger cannot have it, and its money is available at once', async () => {
    const shared = ledgerOf('10')
    const process = new PoolProcess(shared)
    const { ledger } = process
    const { admitted } = await tally(
      [4, 4].map((amount) => process.pool.reserve({ account: 'acme', key: null, amount: units(amount) })),
    )
    ledger.faults.set('settle', 'waits')
    settle(admitted[0]!, 'flies', ONE)
    const { resolved } = settle(admitted[1]!, 'waits', units(4))
    assert.equal(admitted[1]?.revoke(null), 'dropped')
    assert.deepEqual(resolved, ['voided'])
    ledger.mend()
    await turns(20)
    assert.equal((await shared.check()).spent, ONE)
    assert.deepEqual(
      ledger.settled.flat().map(({ requestId }) => requestId),
      ['flies'],
    )
    await process.admitted(units(9))
  })

  it('is followed by a void if the ledger may have it', async () => {
    const shared = ledgerOf('10')
    const process = new PoolProcess(shared)
    const { ledger, clock } = process
    const held = await process.admitted(units(4))
    ledger.faults.set('settle', 'unheard')
    const { outcome, resolved } = settle(held, 'req', units(3))
    await clock.advance(1600)
    assert.equal(await outcome, 'unconfirmed')
    assert.equal((await shared.check()).spent, units(3))
    assert.equal(held.revoke(null), 'queued')
    await clock.advance(600)
    assert.deepEqual(resolved, [])
    ledger.mend()
    await clock.advance(600)
    assert.deepEqual(resolved, ['voided'])
    const { spent, violations } = await shared.check()
    assert.deepEqual([spent, violations], [0n, []])
    await process.admitted(units(10))
  })

  it('is not confirmed to its caller, even if the ledger has written it', async () => {
    const process = new PoolProcess(ledgerOf('10'))
    const { ledger, clock } = process
    const held = await process.admitted(units(4))
    ledger.faults.set('settle', 'late')
    const { outcome, resolved } = settle(held, 'req', units(3))
    await turns()
    assert.equal(held.revoke(null), 'queued')
    ledger.mend()
    assert.equal(await outcome, 'unconfirmed')
    await clock.advance(600)
    assert.deepEqual(resolved, ['voided'])
  })

  for (const fault of ['fails', 'unheard'] as const) {
    it(`is never in effect, and never completes its claim, after it is sent again (${fault})`, async () => {
      const shared = ledgerOf('10')
      const process = new PoolProcess(shared, { settlesRecords: true })
      const { ledger, clock } = process
      const held = await process.admitted(units(4))
      ledger.faults.set('settle', fault)
      const { outcome, resolved } = settle(held, 'req', units(3))
      await clock.advance(1600)
      assert.equal(await outcome, 'unconfirmed')
      held.revoke(null)
      const before = ledger.settled.length
      ledger.mend()
      await clock.advance(600)
      const kinds = ledger.settled.slice(before).flatMap((batch) => batch.map(({ kind }) => kind))
      assert.deepEqual([kinds, resolved], [['revoked'], ['voided']])
      const { spent, violations } = await shared.check()
      assert.deepEqual([spent, violations], [0n, []])
      await process.admitted(units(10))
    })
  }

  it('needs no void if the claim belonged to a later call, and is not logged twice', async () => {
    const shared = ledgerOf('10')
    const process = new PoolProcess(shared)
    const held = await process.admitted(units(4))
    process.ledger.settle = async () => ['fenced']
    const { outcome, resolved } = settle(held, 'req', ONE)
    assert.equal(await outcome, 'fenced')
    assert.equal(held.revoke(null), 'dropped')
    assert.deepEqual([resolved, process.pool.stats.queued], [['fenced'], 0])
    assert.equal((await shared.check()).spent, 0n)
    await process.admitted(units(10))
  })

  it('stops admission like a charge if its void fails, until that is written', async () => {
    const process = new PoolProcess(ledgerOf('10'))
    const { ledger, clock, pool } = process
    const held = await process.admitted(units(4))
    const { outcome, resolved } = settle(held, 'req', ONE)
    assert.equal(await outcome, 'confirmed')
    ledger.faults.set('settle', 'waits')
    assert.equal(held.revoke(null), 'queued')
    await clock.advance(499)
    assert.equal(pool.away, false)
    await clock.advance(1)
    assert.deepEqual([pool.away, pool.stats.queued], [true, 1])
    ledger.mend()
    await turns()
    assert.deepEqual([pool.away, pool.stats.queued, resolved], [false, 0, ['confirmed', 'voided']])
  })

  it('writes the log entry and frees the claim even if the charge was never sent', async () => {
    const process = new PoolProcess(ledgerOf('10'), { settlesRecords: true })
    const { ledger } = process
    const [first, second] = [await process.admitted(ONE), await process.admitted(ONE)]
    ledger.faults.set('settle', 'waits')
    settle(first, 'flies', ONE)
    const claim = { id: 'claim', owner: 'req', keepUntil: 1 }
    void second.settle({ requestId: 'req', amount: ONE, at: 0, basis: () => '[]', claim, entry: null })
    assert.equal(second.revoke(null), 'queued')
    ledger.mend()
    await turns(20)
    const [written] = ledger.settled.flat().filter(({ requestId }) => requestId === 'req')
    assert.deepEqual([written?.kind, written?.claim, written?.draws], ['void', claim, []])
    assert.equal(written?.basis, null)
  })

  it('is dropped without its entry if the ledger writes no entries', async () => {
    const log = { id: 'req' } as unknown as CallLogEntry
    const revoked = async (settlesRecords: boolean, entry: CallLogEntry | null) => {
      const process = new PoolProcess(ledgerOf('10'), { settlesRecords })
      const [first, second] = [await process.admitted(ONE), await process.admitted(ONE)]
      process.ledger.faults.set('settle', 'waits')
      settle(first, 'flies', ONE)
      settle(second, 'req', ONE)
      return second.revoke(entry && (() => entry))
    }
    assert.equal(await revoked(true, log), 'queued')
    assert.equal(await revoked(true, null), 'dropped')
    assert.equal(await revoked(false, log), 'dropped')
  })
})
