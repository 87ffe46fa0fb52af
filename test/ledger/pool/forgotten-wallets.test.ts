import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Reservation } from '../../../lib/ledger/pool/reservation.ts'
import { type Fault, ledgerOf, units } from '../support/faulty-ledger.ts'
import { PoolProcess, settle } from '../support/pool-process.ts'
import { turns } from '../support/virtual-clock.ts'

const ONE = units(1)
/** More than a lease is kept that nobody uses. */
const IDLE_MS = 30_000

/** The outcomes of a charge, each with the sum of all charges after it. */
const FATES: readonly [
  name: string,
  run: (process: PoolProcess, held: Reservation) => Promise<void>,
  spent: bigint,
][] = [
  ['is written', written, ONE],
  [
    'is undone when it stands',
    async (process, held) => {
      await written(process, held)
      held.revoke(null)
    },
    0n,
  ],
  ['is undone while the ledger has it', undoneUnder('waits'), 0n],
  [
    'is dropped before the ledger has it',
    async ({ ledger }, held) => {
      settle(held, 'mine', ONE)
      held.revoke(null)
      ledger.mend()
    },
    0n,
  ],
  [
    'fails at first',
    async ({ ledger }, held) => {
      ledger.faults.set('settle', 'fails')
      settle(held, 'mine', ONE)
      await turns()
      ledger.mend()
    },
    ONE,
  ],
  ['is written without an answer, and undone', undoneUnder('unheard'), 0n],
]

function undoneUnder(fault: Fault) {
  return async ({ ledger }: PoolProcess, held: Reservation): Promise<void> => {
    ledger.faults.set('settle', fault)
    settle(held, 'mine', ONE)
    await turns()
    held.revoke(null)
    ledger.mend()
  }
}

async function written({ ledger }: PoolProcess, held: Reservation): Promise<void> {
  const { outcome } = settle(held, 'mine', ONE)
  ledger.mend()
  await outcome
}

describe('an unused account and its unused key are forgotten', () => {
  for (const gathers of [false, true])
    for (const waits of [false, true])
      for (const [fate, run, spent] of FATES)
        it(`when a charge ${fate}; the ledger ${gathers ? 'gathers' : 'takes each'}${waits ? ', and has another one' : ''}`, async () => {
          const shared = ledgerOf('100', { k: '50' })
          const process = new PoolProcess(shared, { gathers })
          const held = await process.admitted(ONE, 'k')
          const other = waits ? await process.admitted(ONE, 'k') : undefined
          if (other) {
            process.ledger.faults.set('settle', 'waits')
            settle(other, 'other', ONE)
            await turns()
          }
          await run(process, held)
          process.ledger.mend()
          await process.clock.advance(IDLE_MS)
          assert.deepEqual([process.pool.stats.queued, process.pool.stats.wallets], [0, 0])
          assert.equal((await shared.check()).spent, spent + (other ? ONE : 0n))
        })
})

describe('an unused account without limits', () => {
  it('is not forgotten while a lease of its key is being returned, which would be lost otherwise', async () => {
    const shared = ledgerOf(undefined, { k: '50' })
    const process = new PoolProcess(shared)
    ;(await process.admitted(ONE, 'k')).release()
    process.ledger.faults.set('change', 'fails')
    await process.clock.advance(IDLE_MS)
    const { wallets, leases } = process.pool.stats
    assert.deepEqual([wallets, leases], [2, 1])
    process.ledger.mend()
    await process.clock.advance(IDLE_MS)
    assert.deepEqual([process.pool.stats.wallets, await shared.leases()], [0, []])
  })
})

describe('an unused key', () => {
  it('is forgotten although a call of another key has waited without success for a silent ledger', async () => {
    const process = new PoolProcess(ledgerOf('100', { idle: null, other: null }))
    ;(await process.admitted(ONE, 'idle')).release()
    process.ledger.faults.set('change', 'waits')
    const waiting = process.pool.reserve({ account: 'acme', key: 'other', amount: units(50) })
    await process.clock.advance(IDLE_MS)
    assert.ok('refused' in (await waiting))
    assert.equal(process.pool.stats.wallets, 2, 'the account and the other key, of which the ledger is asked')
  })
})
