import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { accountWallet, LeasePool, type MemoryLedger } from '../../../lib/ledger/index.ts'
import { recordingLogger } from '../../support/app-server.ts'
import { ledgerOf, units } from '../support/faulty-ledger.ts'
import { VirtualClock } from '../support/virtual-clock.ts'

const never = (): Promise<never> => new Promise(() => {})

/** A pool over a ledger whose lease changes go wrong for the account "mine". */
async function poolOver(fault: () => unknown) {
  const ledger: MemoryLedger = ledgerOf('1000')
  await ledger.deposit('mine', units(1000), 'opening', 1)
  const clock = new VirtualClock()
  const work = ledger.change.bind(ledger) as (...given: never[]) => unknown
  const state = { isFaulty: true }
  Object.assign(ledger, {
    change: (...given: never[]) => {
      const asked = JSON.stringify(given, (_, value) => (typeof value === 'bigint' ? `${value}` : value))
      return state.isFaulty && asked.includes('mine') ? fault() : work(...given)
    },
  })
  const pool = new LeasePool({ ledger, clock, logger: recordingLogger() })
  const outcomeOf = async (account: string) => {
    const asked = pool.reserve({ account, key: null, amount: units(1) })
    let outcome: unknown = 'waits'
    void Promise.resolve(asked).then((held) => {
      outcome = 'refused' in held ? held.refused : 'held'
      if (!('refused' in held)) held.release()
    })
    await clock.advance(1100)
    return outcome
  }
  return { ledger, clock, state, outcomeOf }
}

describe('a ledger that does not answer for one account,', () => {
  const faults: Record<string, () => unknown> = {
    'never answers': never,
    'answers nonsense': async () => ['x'],
    'answers null': async () => null,
    throws: () => {
      throw new Error('at once')
    },
  }
  for (const [what, fault] of Object.entries(faults)) {
    it(`and ${what} to a change of its lease, fails the calls of that account only, and recovers when it answers`, async () => {
      const { clock, state, outcomeOf, ledger } = await poolOver(fault)
      assert.equal(await outcomeOf('acme'), 'held', 'before')
      assert.equal(await outcomeOf('mine'), 'billing_unavailable')
      await clock.advance(10_000)
      // Its wallet is asked for apart from now on.
      for (let i = 0; i < 5; i++) {
        assert.equal(await outcomeOf('mine'), 'billing_unavailable')
        assert.equal(await outcomeOf('acme'), 'held', `somebody else, ${i}`)
        await clock.advance(3000)
      }
      state.isFaulty = false
      await clock.advance(20_000)
      assert.equal(await outcomeOf('mine'), 'held')
      assert.equal(await outcomeOf('acme'), 'held')
      const wallets = await ledger.wallets([accountWallet('mine'), accountWallet('acme')])
      assert.deepEqual(
        wallets.map(({ spent }) => spent),
        [0n, 0n],
      )
    })
  }
})
