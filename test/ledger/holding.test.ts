import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { assertFigure, MAX_AMOUNT } from '../../lib/core/catalog/money.ts'
import type { BudgetPeriod } from '../../lib/ledger/budgets/budget.ts'
import { type HoldWallets, judgeHold } from '../../lib/ledger/hold.ts'
import { MemoryLedger } from '../../lib/ledger/index.ts'
import type { WalletFigures } from '../../lib/ledger/lease.ts'
import { assertChange } from '../../lib/ledger/lease.ts'
import { assertSettlement } from '../../lib/ledger/plan.ts'
import { assertLimit } from '../../lib/ledger/wallet.ts'
import { charge, give, take } from '../contracts/ledger-money.ts'

const wallet = (figures: Partial<WalletFigures> = {}): WalletFigures => {
  return { limited: true, funds: 100n, spent: 0n, leased: 0n, overrun: 0n, ...figures }
}
const POOR = { spent: 90n }
const BUSY = { leased: 80n }
const UNLIMITED = { limited: false, funds: 0n }

describe('money for work that outlasts a call', () => {
  const judged = (amount: bigint, account: WalletFigures | undefined, key: HoldWallets['key'] = null) => {
    const refusal = judgeHold({ account, key }, amount)
    return refusal && [refusal.refused, refusal.required, refusal.available]
  }

  it('may be held up to the amount of account and key', () => {
    assert.equal(judged(100n, wallet()), undefined)
    assert.equal(judged(100n, wallet(), wallet()), undefined)
    assert.equal(judged(10n, wallet(POOR), wallet(POOR)), undefined)
    assert.equal(judged(20n, wallet(BUSY), wallet(BUSY)), undefined)
  })

  it('is refused as spent before it is refused as held, and for the key first', () => {
    assert.deepEqual(judged(11n, wallet(POOR), wallet(POOR)), ['key_quota_exhausted', 11n, 10n])
    assert.deepEqual(judged(11n, wallet(POOR), wallet()), ['insufficient_balance', 11n, 10n])
    assert.deepEqual(judged(11n, wallet(POOR)), ['insufficient_balance', 11n, 10n])
    assert.deepEqual(judged(21n, wallet(BUSY), wallet({ spent: 90n })), ['key_quota_exhausted', 21n, 10n])
    assert.deepEqual(judged(21n, wallet(POOR), wallet(BUSY)), ['insufficient_balance', 21n, 10n])
    assert.deepEqual(judged(21n, wallet({ leased: 85n }), wallet(BUSY)), ['quota_lease_exhausted', 21n, 20n])
    assert.deepEqual(judged(21n, wallet(BUSY), wallet()), ['quota_lease_exhausted', 21n, 20n])
    assert.deepEqual(judged(11n, wallet({ spent: 50n, leased: 40n })), ['quota_lease_exhausted', 11n, 10n])
  })

  it('is not limited by unlimited wallets, and is refused for an unknown account', () => {
    assert.equal(judged(1000n, wallet(UNLIMITED), wallet(UNLIMITED)), undefined)
    assert.deepEqual(judged(101n, wallet(UNLIMITED), wallet()), ['key_quota_exhausted', 101n, 100n])
    assert.deepEqual(judged(1n, undefined), ['insufficient_balance', 1n, 0n])
    assert.equal(
      judgeHold({ account: wallet(), key: undefined }, 100n),
      undefined,
      'an unknown key has no quota',
    )
    assert.equal(judgeHold({ account: wallet(), key: undefined }, 101n)?.refused, 'insufficient_balance')
  })

  it('is not limited by a budget that was just deleted, but by any other', () => {
    const budget = { budget: 'b', refused: 'key_quota_exhausted' } as BudgetPeriod
    const gone = { budget, wallet: undefined }
    assert.equal(judgeHold({ account: wallet(), key: null, budgets: [gone] }, 100n), undefined)
    const refusal = judgeHold(
      { account: wallet(), key: null, budgets: [gone, { budget, wallet: wallet(POOR) }] },
      11n,
    )
    assert.deepEqual(refusal, { refused: 'key_quota_exhausted', budget, required: 11n, available: 10n })
  })

  it('is never refused for an amount of zero', () => {
    assert.equal(judged(0n, undefined, undefined), undefined)
    assert.equal(judged(0n, wallet({ spent: 500n })), undefined)
  })
})

describe('money held in memory', () => {
  const hold = { id: 'video', account: 'acme', key: 'k', amount: 40n }
  const figuresOf = async (ledger: MemoryLedger) =>
    (await ledger.wallets(['account:acme', 'key:k'])).map(({ spent, leased, overrun }) => [
      spent,
      leased,
      overrun,
    ])
  const opened = () =>
    new MemoryLedger({
      accounts: [{ id: 'acme', balance: '0.0000001' }],
      keys: [{ id: 'k', quota: '0.0000001' }],
    })

  it('is held on both wallets or on none, once', async () => {
    const ledger = opened()
    assert.deepEqual(ledger.holds.open({ ...hold, amount: 101n })?.refused, 'key_quota_exhausted')
    assert.deepEqual(await figuresOf(ledger), [
      [0n, 0n, 0n],
      [0n, 0n, 0n],
    ])
    for (const amount of [40n, 90n]) assert.equal(ledger.holds.open({ ...hold, amount }), undefined)
    assert.deepEqual(await figuresOf(ledger), [
      [0n, 40n, 0n],
      [0n, 40n, 0n],
    ])
    assert.deepEqual(ledger.holds.all(), [{ ...hold, charged: false }])
    assert.deepEqual((await ledger.check()).violations, [])
  })

  it('is not stored for an amount of zero', async () => {
    const ledger = opened()
    assert.equal(ledger.holds.open({ ...hold, amount: 0n }), undefined)
    assert.deepEqual(ledger.holds.all(), [])
    assert.deepEqual((await ledger.check()).violations, [])
  })

  it('is returned once', async () => {
    const ledger = opened()
    ledger.holds.open(hold)
    for (let times = 0; times < 2; times++) ledger.holds.release('video')
    ledger.holds.release('never')
    assert.deepEqual(await figuresOf(ledger), [
      [0n, 0n, 0n],
      [0n, 0n, 0n],
    ])
    assert.deepEqual([ledger.holds.all(), (await ledger.check()).violations], [[], []])
  })

  it('is charged once for its request, and the rest is returned', async () => {
    const ledger = opened()
    ledger.holds.open(hold)
    for (const amount of [45n, 7n]) ledger.holds.charge({ ...hold, amount })
    assert.deepEqual(await figuresOf(ledger), [
      [45n, 0n, 5n],
      [45n, 0n, 5n],
    ])
    const { charges, spent, violations } = await ledger.check()
    assert.deepEqual([charges, spent, violations], [1, 45n, []])
    assert.deepEqual(ledger.settle([charge('acme', 3n, { requestId: 'video' })]), ['known'])
  })

  it('is returned whole if its request is charged already', async () => {
    const ledger = opened()
    ledger.settle([charge('acme', 3n, { requestId: 'video', key: 'k' })])
    ledger.holds.open(hold)
    assert.deepEqual(ledger.holds.all(), [{ ...hold, charged: true }])
    ledger.holds.charge({ ...hold, amount: 9n })
    assert.deepEqual(await figuresOf(ledger), [
      [3n, 0n, 0n],
      [3n, 0n, 0n],
    ])
    assert.equal((await ledger.check()).charges, 1)
  })

  it('is charged zero if the work was free, and writes no charge if nothing was held either', async () => {
    const ledger = opened()
    ledger.holds.charge({ ...hold, amount: 0n })
    assert.equal((await ledger.check()).charges, 0)
    ledger.holds.open(hold)
    ledger.holds.charge({ ...hold, amount: 0n })
    assert.deepEqual(
      [(await ledger.check()).charges, await figuresOf(ledger)],
      [
        1,
        [
          [0n, 0n, 0n],
          [0n, 0n, 0n],
        ],
      ],
    )
    ledger.holds.charge({ id: 'not held', account: 'acme', key: null, amount: 6n })
    assert.deepEqual(await figuresOf(ledger), [
      [6n, 0n, 6n],
      [0n, 0n, 0n],
    ])
  })

  it('of an unknown account is refused, or opens account and key without limits if that is configured', async () => {
    const strict = new MemoryLedger()
    assert.equal(strict.holds.open({ ...hold, key: null })?.refused, 'insufficient_balance')
    assert.deepEqual(await strict.wallets(['account:acme']), [])
    const postpaid = new MemoryLedger({ unknownAccounts: 'postpaid' })
    assert.equal(postpaid.holds.open(hold), undefined)
    assert.deepEqual(await figuresOf(postpaid), [
      [0n, 40n, 0n],
      [0n, 40n, 0n],
    ])
    assert.deepEqual((await postpaid.check()).violations, [])
  })
})

describe('an amount that every ledger can keep', () => {
  const acme = 'account:acme'

  it('is from zero to the largest 64-bit amount', () => {
    assert.equal(MAX_AMOUNT, 9_223_372_036_854_775_807n)
    for (const amount of [0n, MAX_AMOUNT]) {
      assertSettlement(charge('acme', amount, { draws: [{ lease: 'l', wallet: acme, amount }] }))
      assertChange(take('l', acme, amount))
      assertChange(give('l', acme, amount))
      assertLimit('key:k', { quota: amount })
    }
    assertLimit('key:k', {})
    assertLimit(acme, {})
  })

  it('is rejected with the fault and the account', () => {
    const above = MAX_AMOUNT + 1n
    const wrong = (what: string, amount: bigint) => ({
      name: 'RangeError',
      message: `${what}: an amount must be from 0 to 9223372036854775807 nano-units, and is ${amount}`,
    })
    for (const amount of [-1n, above]) {
      const draws = [
        { lease: 'l', wallet: acme, amount: 1n },
        { lease: 'l', wallet: acme, amount },
      ] as const
      assert.throws(
        () => assertSettlement(charge('acme', amount, { requestId: 'req' })),
        wrong('req', amount),
      )
      assert.throws(
        () => assertSettlement(charge('acme', 1n, { requestId: 'req', draws })),
        wrong('req', amount),
      )
      assert.throws(() => assertChange(take('l', acme, amount, { want: 1n })), wrong('lease "l"', amount))
      assert.throws(() => assertChange(take('l', acme, 1n, { want: amount })), wrong('lease "l"', amount))
      assert.throws(() => assertChange(give('l', acme, amount)), wrong('lease "l"', amount))
      assert.throws(() => assertLimit('key:k', { quota: amount }), wrong('wallet "key:k"', amount))
    }
    for (const seq of [0, -1, 1.5, Number.NaN, 2 ** 53])
      assert.throws(() => assertChange(give('l', acme, 1n, seq)), {
        name: 'RangeError',
        message: 'lease "l": seq must be at least 1',
      })
    assertChange(give('l', acme, 1n, 1))
  })

  it('of an account is not a quota: its funds change by deposits', () => {
    const message = 'wallet "account:acme": an account\'s funds change by deposits'
    assert.throws(() => assertLimit(acme, { quota: 1n }), { name: 'TypeError', message })
  })

  it('may have any sign if it is a figure', () => {
    for (const figure of [0n, MAX_AMOUNT, -MAX_AMOUNT]) assert.equal(assertFigure(figure, 'funds'), figure)
    for (const figure of [MAX_AMOUNT + 1n, -MAX_AMOUNT - 1n])
      assert.throws(() => assertFigure(figure, 'funds of "acme"'), {
        name: 'RangeError',
        message: `funds of "acme" would be ${figure} nano-units, more than 64 bits hold`,
      })
  })
})
