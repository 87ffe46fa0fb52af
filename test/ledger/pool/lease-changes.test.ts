import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import type { LeaseChange } from '../../../lib/ledger/index.ts'
import { changeLease, type LeaseRecord, sweepLease, type WalletFigures } from '../../../lib/ledger/lease.ts'

type Asked = LeaseChange & { readonly owner: string }

const FUNDS = 100n

/** A wallet, and its lease once a change has opened one. */
function opened(figures: Partial<WalletFigures> = {}) {
  const wallet = { limited: true, funds: FUNDS, spent: 0n, leased: 0n, overrun: 0n, ...figures }
  let lease: LeaseRecord | undefined
  return {
    wallet,
    get lease() {
      return lease
    },
    ask(seq: number, change: LeaseChange['change'], members: Partial<Asked> = {}, now = seq) {
      const asked: Asked = { lease: 'l', wallet: 'account:acme', owner: 'us', seq, change, ...members }
      const changed = changeLease(wallet, lease, asked, now)
      lease = changed.lease ?? lease
      const { moved, lost, open } = changed.answer
      return [moved, lost ? 'lost' : open ? 'open' : 'closed']
    },
  }
}

const take = (need: bigint, want = need) => ({ kind: 'take', need, want }) as const
const give = (amount: bigint) => ({ kind: 'give', amount }) as const

describe('the amount that a lease takes of its wallet', () => {
  const rows: [figures: Partial<WalletFigures>, need: bigint, want: bigint, moved: bigint][] = [
    [{}, 100n, 100n, 100n],
    [{}, 99n, 100n, 99n],
    [{}, 101n, 101n, 0n],
    [{}, 0n, 50n, 10n],
    [{}, 0n, 10n, 10n],
    [{}, 0n, 9n, 9n],
    [{}, 10n, 50n, 10n],
    [{}, 9n, 50n, 10n],
    [{}, 11n, 50n, 11n],
    [{ spent: 30n, leased: 20n }, 50n, 50n, 50n],
    [{ spent: 30n, leased: 20n }, 51n, 51n, 0n],
    [{ spent: 30n, leased: 20n }, 0n, 50n, 5n],
    [{ spent: 100n }, 0n, 50n, 0n],
    [{ spent: 99n }, 1n, 1n, 1n],
    [{ spent: 120n }, 0n, 50n, 0n],
    [{ limited: false }, 5n, 50n, 0n],
  ]
  for (const [figures, need, want, moved] of rows) {
    const of = JSON.stringify(figures, (_, value) => (typeof value === 'bigint' ? `${value}` : value))
    it(`is ${moved} of ${of} for a need of ${need} and a wish of ${want}`, () => {
      for (const isFirst of [true, false]) {
        const world = opened()
        const before = isFirst ? 0n : 1n
        if (!isFirst) world.ask(1, take(before))
        const leased = (figures.leased ?? 0n) + before
        Object.assign(world.wallet, { ...figures, leased, funds: FUNDS + before })
        assert.deepEqual(world.ask(isFirst ? 1 : 2, take(need, want))[0], moved)
        assert.equal(world.wallet.leased, leased + moved)
        assert.equal(world.lease?.held ?? 0n, before + moved)
      }
    })
  }

  it('opens it with its first change, if that takes something', () => {
    const world = opened()
    assert.deepEqual(world.ask(1, take(101n)), [0n, 'closed'])
    assert.deepEqual(world.ask(1, give(1n)), [0n, 'lost'])
    assert.deepEqual(world.ask(2, take(1n)), [0n, 'lost'])
    assert.equal(world.lease === undefined, true)
    assert.deepEqual(world.ask(1, take(7n), {}, 50), [7n, 'open'])
    const { id, wallet, owner, ...figures } = world.lease as LeaseRecord
    assert.deepEqual([id, wallet, owner], ['l', 'account:acme', 'us'])
    const ended = { ended: null, endedAt: null }
    assert.deepEqual(figures, { held: 7n, seq: 1, lastMoved: 7n, beats: 1, renewedAt: 50, ...ended })
  })

  it('is zero for a missing wallet', () => {
    const asked: Asked = { lease: 'l', wallet: 'account:no', owner: 'us', seq: 1, change: take(1n) }
    assert.deepEqual(changeLease(undefined, undefined, asked, 1), {
      answer: { moved: 0n, lost: false, open: false, state: undefined },
      lease: undefined,
    })
  })
})

describe('a lease', () => {
  it('is renewed by each change, even if that moves nothing', () => {
    const world = opened()
    world.ask(1, take(100n), {}, 10)
    assert.deepEqual(world.ask(2, take(1n), {}, 20), [0n, 'open'])
    const { seq, lastMoved, beats, renewedAt } = world.lease as LeaseRecord
    assert.deepEqual([seq, lastMoved, beats, renewedAt], [2, 0n, 2, 20])
  })

  it('returns at most its amount, and is closed when it has returned all', () => {
    const world = opened()
    world.ask(1, take(40n))
    assert.deepEqual(world.ask(2, give(15n)), [15n, 'open'])
    assert.deepEqual([world.lease?.held, world.wallet.leased], [25n, 25n])
    assert.deepEqual(world.ask(3, give(26n), {}, 99), [25n, 'closed'])
    assert.deepEqual([world.lease?.ended, world.lease?.endedAt, world.wallet.leased], ['closed', 99, 0n])
  })

  it('has the same answer for a repeated change, and none for an earlier one', () => {
    const world = opened()
    world.ask(1, take(40n))
    world.ask(2, give(15n))
    for (let times = 0; times < 2; times++) {
      assert.deepEqual(world.ask(2, give(15n)), [15n, 'open'])
      assert.deepEqual(world.ask(1, take(40n)), [0n, 'open'])
    }
    world.ask(3, give(25n))
    assert.deepEqual(world.ask(3, give(25n)), [25n, 'closed'])
    assert.deepEqual(world.ask(2, give(15n)), [0n, 'closed'])
    assert.deepEqual([world.lease?.beats, world.wallet.leased], [3, 0n])
  })

  it('is lost for changes after it was closed or swept, or of another wallet', () => {
    const world = opened()
    world.ask(1, take(40n))
    assert.deepEqual(world.ask(2, take(1n), { wallet: 'account:other' }), [0n, 'lost'])
    world.ask(2, give(40n))
    assert.deepEqual(world.ask(3, take(1n)), [0n, 'lost'])
    const swept = opened()
    swept.ask(1, take(40n))
    sweepLease(swept.wallet, swept.lease as LeaseRecord, 77)
    const { held, ended, endedAt } = swept.lease as LeaseRecord
    assert.deepEqual([held, ended, endedAt, swept.wallet.leased], [0n, 'swept', 77, 0n])
    for (const seq of [1, 2]) assert.deepEqual(swept.ask(seq, take(1n)), [0n, 'lost'])
  })

  it('is consistent with its wallet after any changes, and no more is leased than the wallet has', () => {
    const amount = fc.bigInt({ min: 0n, max: 120n })
    const change = fc.oneof(
      fc.tuple(amount, amount).map(([need, more]) => take(need, need + more)),
      amount.map(give),
    )
    const steps = fc.array(fc.tuple(fc.integer({ min: -1, max: 2 }), change), { maxLength: 30 })
    fc.assert(
      fc.property(steps, (taken) => {
        const world = opened()
        for (const [ahead, asked] of taken) {
          world.ask((world.lease?.seq ?? 0) + ahead, asked)
          const held = world.lease?.held ?? 0n
          assert.equal(world.wallet.leased, held)
          assert.ok(held >= 0n && held <= FUNDS)
          assert.equal(world.lease?.ended === 'closed' ? held : 0n, 0n)
        }
      }),
    )
  })
})
