import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { LedgerWorld, type Step } from './support/ledger-world.ts'

const at = fc.nat(2)
const steps: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 10,
    arbitrary: fc.record({
      op: fc.constant('reserve' as const),
      at,
      key: fc.constantFrom(null, 'one', 'two'),
      amount: fc.integer({ min: 0, max: 12 }),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({ op: fc.constant('settle' as const), which: fc.nat(), cost: fc.nat(15) }),
  },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('release' as const), which: fc.nat() }) },
  { weight: 4, arbitrary: fc.record({ op: fc.constant('revoke' as const), which: fc.nat() }) },
  { weight: 5, arbitrary: fc.record({ op: fc.constant('advance' as const), ms: fc.nat(9000) }) },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('advance' as const), ms: fc.nat(40_000) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      op: fc.constant('fault' as const),
      at,
      operation: fc.constantFrom('change', 'settle', 'settle', 'renew', 'leases', 'sweep'),
      fault: fc.constantFrom('fails', 'unheard', 'waits', 'late', 'late'),
    }),
  },
  { weight: 4, arbitrary: fc.record({ op: fc.constant('mend' as const), at }) },
  { weight: 6, arbitrary: fc.record({ op: fc.constant('through' as const), at }) },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('poison' as const), at }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('cure' as const), at }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('stop' as const), at, ms: fc.nat(80_000) }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('crash' as const), at }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('deposit' as const), amount: fc.nat(50) }) },
)

it('money is neither lost, overspent nor charged twice, in any interleaving of three processes', async () => {
  const runs = fc.asyncProperty(fc.array(steps, { minLength: 5, maxLength: 60 }), async (sequence) => {
    const world = new LedgerWorld()
    for (const step of sequence) {
      await world.take(step)
      await world.check()
    }
    await world.end()
  })
  // A sequence that does not end is reported as one that fails, and not shortened: each try would take as long.
  await fc.assert(runs, { numRuns: 30, timeout: 20_000, endOnFailure: true })
})

it('a charge that is written twice violates an invariant', async () => {
  const world = new LedgerWorld()
  await world.take({ op: 'reserve', at: 0, key: null, amount: 5 })
  await world.take({ op: 'settle', which: 0, cost: 5 })
  world.shared.settle([
    {
      kind: 'charge',
      requestId: 'again',
      account: 'acme',
      key: null,
      amount: 5n,
      at: 0,
      draws: [],
      basis: null,
      claim: null,
      entry: null,
    },
  ])
  await assert.rejects(world.end())
})
