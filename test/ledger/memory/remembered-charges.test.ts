import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { MemoryLedger, type Settlement, type WalletId } from '../../../lib/ledger/index.ts'
import { charge, voidOf } from '../../contracts/ledger-money.ts'

const BUDGETS: readonly (readonly WalletId[] | undefined)[] = [
  undefined,
  [],
  ['budget:team:0'],
  ['budget:team:0', 'budget:user:0'],
]

/** The charge with a number: of one of two accounts, with a key or none, and with budgets or none. */
function numbered(i: number): Settlement {
  return charge(i % 2 === 0 ? 'acme' : 'globex', 10n ** BigInt(i % 5), {
    requestId: `req-${i}`,
    key: i % 3 === 0 ? null : `k${i % 3}`,
    cost: BigInt(i),
    budgets: BUDGETS[(i >> 1) % BUDGETS.length],
  })
}

/** How many of the last settlements are remembered, after so many. */
function remembered(maxCharges: number, count: number, what: (i: number) => Settlement): number {
  const ledger = new MemoryLedger({ maxCharges })
  for (let i = 0; i < count; i++) assert.deepEqual(ledger.settle([what(i)]), ['written'])
  let known = 0
  while (known < count && ledger.settle([what(count - 1 - known)])[0] === 'known') known++
  return known
}

describe('the charges that a ledger in memory remembers', () => {
  const kinds: Record<string, (i: number) => Settlement> = {
    charges: numbered,
    'voids that came first': (i) => voidOf(numbered(i)),
    'charges and voids in turn': (i) => (i % 2 === 0 ? numbered(i) : voidOf(numbered(i))),
  }
  for (const [name, what] of Object.entries(kinds))
    it(`are at least half of the maximum, and never more than it: ${name}`, () => {
      for (let most = 2; most <= 9; most++) {
        const seen = Array.from({ length: 4 * most }, (_, i) => remembered(most, i + 1, what))
        for (const [i, known] of seen.entries())
          assert.ok(known >= Math.min(i + 1, Math.floor(most / 2)), `${known} of ${i + 1}, at most ${most}`)
        assert.equal(Math.max(...seen), most - (most % 2))
      }
    })

  it('are 20,000 by default', () => {
    const ledger = new MemoryLedger()
    const calls = Array.from({ length: 20_001 }, (_, i) => charge('acme', 1n, { requestId: `req-${i}` }))
    ledger.settle(calls.slice(0, 20_000))
    assert.deepEqual(ledger.settle(calls.slice(0, 1)), ['known'])
    ledger.settle(calls.slice(20_000))
    assert.deepEqual(ledger.settle([calls[10_000] as Settlement]), ['known'])
    assert.deepEqual(ledger.settle(calls.slice(0, 1)), ['written'])
  })
})

describe('the sums of a ledger in memory that forgets', () => {
  const steps = fc.array(
    fc.record({
      kind: fc.constantFrom('charge' as const, 'charge' as const, 'void' as const, 'revoked' as const),
      /** How far behind the newest; 0 settles another one. */
      back: fc.nat(8),
    }),
    { maxLength: 60 },
  )
  const most = fc.integer({ min: 2, max: 7 })

  it('are consistent for any charges, voids and repetitions, before or after they are forgotten', async () => {
    await fc.assert(
      fc.asyncProperty(most, steps, async (maxCharges, taken) => {
        const ledger = new MemoryLedger({ maxCharges })
        let [newest, written] = [0, 0]
        for (const { kind, back } of taken) {
          if (back === 0) newest++
          const one = numbered(Math.max(0, newest - back))
          const [result] = ledger.settle([kind === 'void' ? voidOf(one) : { ...one, kind }])
          if (kind !== 'void' && result === 'written') written++
        }
        const { violations, charges } = await ledger.check()
        assert.deepEqual([violations, charges], [[], written])
      }),
    )
  })

  it('are exact if only the latest charges are repeated and undone', async () => {
    await fc.assert(
      fc.asyncProperty(most, steps, async (maxCharges, taken) => {
        const ledger = new MemoryLedger({ maxCharges })
        const [charged, undone] = [new Set<number>(), new Set<number>()]
        let newest = 0
        for (const { kind, back } of taken) {
          const i = back === 0 ? ++newest : Math.max(0, newest - (back % Math.floor(maxCharges / 2)))
          const one = numbered(i)
          ledger.settle([kind === 'void' ? voidOf(one) : { ...one, kind }])
          if (kind !== 'void' && !undone.has(i)) charged.add(i)
          if (kind !== 'charge') undone.add(i)
        }
        const spent = new Map<string, bigint>()
        for (const i of charged) {
          const { account, key, budgets = [], amount } = numbered(i)
          const own: string[] = [`account:${account}`, ...budgets, ...(key === null ? [] : [`key:${key}`])]
          for (const id of own) spent.set(id, (spent.get(id) ?? 0n) + (undone.has(i) ? 0n : amount))
        }
        const ids = ['account:acme', 'account:globex', 'key:k1', 'key:k2', 'budget:team:0', 'budget:user:0']
        const wallets = await ledger.wallets(ids as WalletId[])
        const found = wallets
          .map((each) => [each.wallet, each.spent] as const)
          .filter(([, some]) => some > 0n)
        assert.deepEqual(new Map<string, bigint>(found), new Map([...spent].filter(([, some]) => some > 0n)))
        assert.deepEqual((await ledger.check()).violations, [])
      }),
    )
  })
})
