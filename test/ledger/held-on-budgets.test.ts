import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import type { BudgetPeriod } from '../../lib/ledger/budgets/budget.ts'
import { MemoryLedger, type WalletId } from '../../lib/ledger/index.ts'
import { charge, take, voidOf } from '../contracts/ledger-money.ts'

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

/** A ledger with an account of 1000 and three budgets: one bounds, one only counts, one was deleted; and what it tells. */
function opened() {
  const ledger = new MemoryLedger({ accounts: [{ id: 'acme', balance: '0.000001' }], keys: [{ id: 'k' }] })
  const told: [wallet: WalletId, before: bigint, now: bigint][] = []
  ledger.openBudgetsBy({
    termsOf: (budget) => (budget === 'gone' ? undefined : TERMS[budget as keyof typeof TERMS]),
    spent: (...all) => void told.push(all),
  })
  return {
    ...{ ledger, told },
    open: (id: string, amount: bigint, names: readonly Name[], key: string | null = null) =>
      ledger.holds.open({ id, account: 'acme', key, amount, budgets: names.map(periodOf) }),
    async figures(...names: readonly Name[]) {
      const wallets = await ledger.wallets(names.map(walletOf))
      return wallets.map(({ limited, funds, spent, leased }) => [limited, funds, spent, leased])
    },
  }
}

describe('money held on budgets in memory', () => {
  it('is held on each of them, which are opened as their terms are', async () => {
    const { open, figures, ledger, told } = opened()
    assert.equal(open('video', 30n, NAMES), undefined)
    assert.deepEqual(await figures(...NAMES), [
      [true, 50n, 0n, 30n],
      [false, 5n, 0n, 30n],
      [false, 0n, 0n, 30n],
    ])
    assert.deepEqual([(await ledger.check()).violations, told], [[], []])
  })

  it('is held on none where one does not cover it, which says so', async () => {
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

  it('opens no wallet of a key where none pays', async () => {
    const { open, ledger } = opened()
    open('video', 30n, ['soft'])
    ledger.holds.release('video')
    ledger.holds.charge({ id: 'other', account: 'acme', key: null, amount: 3n })
    assert.deepEqual(await ledger.wallets(['key:null']), [])
    assert.deepEqual((await ledger.check()).violations, [])
  })
})

describe('what budgets in memory are told of', () => {
  it('is each charge that is written, with what was spent before it and is now', async () => {
    const { ledger, told } = opened()
    const calls = [3n, 0n, 4n].map((amount) => charge('acme', amount, { budgets: [walletOf('soft')] }))
    ledger.settle(calls)
    ledger.settle([charge('acme', 1n), charge('acme', 2n, { budgets: NAMES.slice(0, 2).map(walletOf) })])
    assert.deepEqual(told, [
      [walletOf('soft'), 0n, 3n],
      [walletOf('soft'), 3n, 3n],
      [walletOf('soft'), 3n, 7n],
      [walletOf('hard'), 0n, 2n],
      [walletOf('soft'), 7n, 9n],
    ])
    // A charge may come to a wallet that no call has opened.
    assert.equal((await ledger.wallets([walletOf('hard')]))[0]?.funds, 50n)
  })

  it('is not what changes nothing: a charge that is known, voided or revoked', () => {
    const { ledger, told } = opened()
    const once = charge('acme', 3n, { budgets: [walletOf('soft')] })
    const never = charge('acme', 3n, { budgets: [walletOf('soft')] })
    ledger.settle([once])
    told.length = 0
    ledger.settle([once, voidOf(once), voidOf(never), never])
    ledger.settle([charge('acme', 3n, { kind: 'revoked', budgets: [walletOf('soft')] })])
    assert.deepEqual(told, [])
  })
})

describe('a wallet of a budget that a lease is asked of', () => {
  it('is opened as its terms are, once, and an unknown one of an account is not', async () => {
    const { ledger, figures } = opened()
    const wallets: WalletId[] = [walletOf('hard'), walletOf('soft'), 'account:nobody']
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

  it('leave books that add up, and tell budgets of what was spent, whatever comes in whatever order', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
        const { ledger, told, open } = opened()
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
            const before = spent.get(walletOf(name)) ?? 0n
            assert.deepEqual(told.shift(), [walletOf(name), before, before + amount])
            spent.set(walletOf(name), before + amount)
          }
        }
        assert.deepEqual(told, [])
        const { charges, leased, violations } = await ledger.check()
        const stillHeld = [...held.values()].reduce((sum, { amount }) => sum + amount, 0n)
        assert.deepEqual([charges, leased], [charged.size, stillHeld])
        // A hold of what is charged already can only be told.
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
