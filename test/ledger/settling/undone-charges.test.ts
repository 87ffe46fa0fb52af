import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Reservation } from '../../../lib/ledger/pool/reservation.ts'
import { copyOf, ledgerOf, units } from '../support/faulty-ledger.ts'
import { PoolProcess, settle, tally } from '../support/pool-process.ts'
import { turns } from '../support/virtual-clock.ts'

const ONE = units(1)

async function running(process: PoolProcess, count: number): Promise<readonly Reservation[]> {
  const answers = Array.from({ length: count }, () =>
    process.pool.reserve({ account: 'acme', key: null, amount: ONE }),
  )
  return (await tally(answers)).admitted
}

/** The fates of a charge that the ledger has again: it is written, written without an answer, or not written. */
const FATES = ['written', 'unheard', 'failed'] as const

/** A process with a charge that was set aside, and that the ledger has again. */
async function handedAgain(isClosing: boolean) {
  const shared = ledgerOf('1000')
  const process = new PoolProcess(shared, { confirmMs: 60_000 })
  const { ledger, clock, pool } = process
  const [bad, good] = (await running(process, 2)) as [Reservation, Reservation]
  ledger.poison.add('bad')
  const { resolved } = settle(bad, 'bad', ONE)
  settle(good, 'good', ONE)
  await clock.advance(2000)
  assert.equal(pool.stats.setAside, 1)
  ledger.poison.clear()
  const whole = ledger.settle.bind(ledger)
  let go: (fate: (typeof FATES)[number]) => void = () => {}
  ledger.settle = async (settlements) => {
    const kinds = settlements.map(({ requestId, kind }) => [requestId, kind])
    assert.deepEqual(kinds, [['bad', 'charge']])
    const handed = settlements.map(copyOf)
    ledger.settle = whole
    const fate = await new Promise<(typeof FATES)[number]>((resolve) => {
      go = resolve
    })
    const answer = fate === 'failed' ? [] : await whole(handed)
    if (fate !== 'written') throw new Error('the connection was lost')
    return answer
  }
  const closed = isClosing ? pool.close(100_000) : undefined
  await clock.advance(isClosing ? 100 : 31_000)
  return { shared, process, bad, resolved, closed, end: (fate: (typeof FATES)[number]) => go(fate) }
}

describe('a charge that was set aside, and is undone while it is sent again', () => {
  for (const isClosing of [false, true])
    for (const fate of FATES)
      it(`is not in effect, ${fate} in the end${isClosing ? ', while the pool closes' : ''}`, async () => {
        const { shared, process, bad, resolved, closed, end } = await handedAgain(isClosing)
        assert.equal(bad.revoke(null), 'queued')
        await turns()
        assert.deepEqual(resolved, [], 'nobody knows yet')
        end(fate)
        await process.clock.advance(40_000)
        await closed
        const { spent, violations } = await shared.check()
        assert.deepEqual([spent, violations, resolved], [ONE, [], ['voided']])
        assert.deepEqual([process.pool.stats.setAside, process.pool.stats.queued], [0, 0])
      })
})
