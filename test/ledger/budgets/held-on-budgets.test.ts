import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import type { BudgetPeriod } from '../../../lib/ledger/budgets/budget.ts'
import { MemoryLedger, type WalletId } from '../../../lib/ledger/index.ts'
import { take } from '../../contracts/ledger-money.ts'

const NAMES = ['hard', 'soft', 'gone'] as const
type Name = (typeof NAMES)[number]
const walletOf = (name: Name): WalletId => `budget:${name}:0`
const periodOf = (name: Name): BudgetPeriod => ({
  budget: name,
  wallet: walletOf(name),
  scope: { account: 'acme', key: null, user: name, tag: null },
  refused: 'key_quota_exhausted',
  endsAt: null,
})
const TERMS = { hard: { amount: 50n, hard: true }, soft: { amount: 5n, hard: false } }

/** A ledger with an account of 1000 and three budgets: one bounds, one only counts, one was deleted. */
function opened() {
  const ledger = new MemoryLedger({ accounts: [{ id: 'acme', balance: '0.000001' }], keys: [{ id: 'k' }] })
  for (const name of ['hard', 'soft'] as const) {
    const { hard, amount } = TERMS[name]
    void ledger.setLimit(walletOf(name), { limited: hard, quota: amount })
  }
  return {
    ledger,
    open: (id: string, amount: bigint, names: readonly Name[], key: string | null = null) =>
      ledger.holds.open({ id, account: 'acme', key, amount, budgets: names.map(periodOf) }),
    async figures(...names: readonly Name[]) {
      const wallets = await ledger.wallets(names.map(walletOf))
      return wallets.map(({ limited, funds, spent, leased }) => [limited, funds, spent, leased])
    },
  }
}

describe('money held on budgets in memory', () => {
  it('is held on each of them, and a missing budget is opened without a limit', async () => {
    const { open, figures, ledger } = opened()
    assert.equal(open('video', 30n, NAMES), undefined)
    assert.deepEqual(await figures(...NAMES), [
      [true, 50n, 0n, 30n],
      [false, 5n, 0n, 30n],
      [false, 0n, 0n, 30n],
    ])
    assert.deepEqual((await ledger.check()).violations, [])
  })

  it('is held on none if one does not cover it, and that one is reported', async () => {
    const { open, figures, ledger } = opened()
    open('video', 30n, ['hard'])
    const refusal = open('other', 21n, ['gone', 'hard'])
    assert.deepEqual(
      [refusal?.refused, refusal?.required, refusal?.available, refusal?.budget],
      ['quota_lease_exhausted', 21n, 20n, periodOf('hard')],
    )
    assert.equal(open('too much', 51n, ['hard'])?.refused, 'key_quota_exhausted')
    assert.deepEqual(await figures('hard', 'gone'), [
      [true, 50n, 0n, 30n],
      [false, 0n, 0n, 0n],
    ])
    assert.deepEqual((await ledger.check()).violations, [])
  })

  it('opens no wallet of a key if no key pays', async () => {
    const { open, ledger } = opened()
    open('video', 30n, ['soft'])
    ledger.holds.release('video')
    ledger.holds.charge({ id: 'other', account: 'acme', key: null, amount: 3n })
    assert.deepEqual(await ledger.wallets(['key:null']), [])
    assert.deepEqual((await ledger.check()).violations, [])
  })
})

describe('a wallet of a budget that a lease is asked of', () => {
  it('is opened without a limit if it is missing, but an unknown account is not', async () => {
    const { ledger, figures } = opened()
    const wallets: WalletId[] = [walletOf('hard'), walletOf('gone'), 'account:nobody']
    const answers = await ledger.change(
      'p',
      wallets.map((wallet, i) => take(`lease-${i}`, wallet, 1n)),
    )
    assert.deepEqual(
      answers.map(({ moved, state }) => [moved, state?.limited]),
      [
        [1n, true],
        [0n, false],
        [0n, undefined],
      ],
    )
    await ledger.setLimit(walletOf('hard'), { limited: true, quota: 70n })
    await ledger.change('p', [take('another', walletOf('hard'), 1n)])
    assert.deepEqual(await figures('hard'), [[true, 70n, 0n, 2n]])
  })
})

describe('holds in memory', () => {
  const step = fc.record({
    op: fc.constantFrom('open' as const, 'open' as const, 'charge' as const, 'release' as const),
    id: fc.nat(4),
    amount: fc.bigInt(0n, 40n),
    key: fc.constantFrom('k', null),
    names: fc.subarray([...NAMES]),
  })

  it('keep the ledger consistent, and budgets spend what was charged, in any order', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
        const { ledger, open } = opened()
        const held = new Map<number, (typeof steps)[number]>()
        const spent = new Map<WalletId, bigint>()
        const charged = new Set<number>()
        for (const one of steps) {
          const { op, id, amount, key, names } = one
          const was = held.get(id)
          if (op === 'open') {
            const refusal = open(`video-${id}`, amount, names, key)
            if (!refusal && !was && amount > 0n) held.set(id, one)
            continue
          }
          held.delete(id)
          if (op === 'release') {
            ledger.holds.release(`video-${id}`)
            continue
          }
          ledger.holds.charge({ id: `video-${id}`, account: 'acme', key: was ? was.key : key, amount })
          if (charged.has(id) || (!was && amount === 0n)) continue
          charged.add(id)
          for (const name of was?.names ?? []) {
            spent.set(walletOf(name), (spent.get(walletOf(name)) ?? 0n) + amount)
          }
        }
        for (const { wallet, spent: found } of await ledger.wallets(NAMES.map(walletOf)))
          assert.equal(found, spent.get(wallet) ?? 0n)
        const { charges, leased, violations } = await ledger.check()
        const stillHeld = [...held.values()].reduce((sum, { amount }) => sum + amount, 0n)
        assert.deepEqual([charges, leased], [charged.size, stillHeld])
        // A hold of a call that is charged already can only be reported.
        assert.deepEqual(
          violations.filter((violation) => !violation.includes('which is charged')),
          [],
        )
        const ids = new Set(ledger.holds.all().map(({ id }) => id))
        assert.deepEqual(ids, new Set([...held.keys()].map((id) => `video-${id}`)))
      }),
    )
  })
})
