import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { MAX_AMOUNT } from '../../../lib/core/catalog/money.ts'
import { TopUpPolicy } from '../../../lib/ledger/pool/top-up-policy.ts'

const NOTHING = { free: 0n, granted: 0n }

/** A policy that has seen so many seconds, in which that much was free and nothing reserved. */
function idle(seconds: number, free: bigint): { policy: TopUpPolicy; tick: (free: bigint) => void } {
  const policy = new TopUpPolicy(0)
  let now = 0
  const tick = (free: bigint) => {
    now += 1000
    policy.tick(now, 0n, free)
  }
  for (let second = 0; second < seconds; second++) tick(free)
  return { policy, tick }
}

/** Returns the amount to hold for a rate, in whole units. */
const tenSecondsOf = (rate: number): bigint => BigInt(Math.round(rate * 10))

describe('the amount that a process should hold of a wallet', () => {
  it('is nothing before the first call', () => {
    const policy = new TopUpPolicy(0)
    assert.equal(policy.missing(0n), 0n)
    assert.equal(policy.missing(5n), 0n)
  })

  it('is that of four calls like the last, requested once more than a quarter of it is missing', () => {
    const policy = new TopUpPolicy(0)
    policy.admitted(90n, 0n, 0n)
    policy.admitted(10n, 0n, 0n)
    assert.deepEqual(
      [0n, 29n, 30n, 40n, 41n].map((granted) => policy.missing(granted)),
      [40n, 11n, 0n, 0n, 0n],
    )
  })

  it('is twice the amount that calls held at once, for ten seconds afterwards', () => {
    const policy = new TopUpPolicy(0)
    policy.admitted(1n, 50n, 0n)
    policy.admitted(1n, 40n, 0n)
    assert.equal(policy.missing(0n), 100n)
    for (let second = 1; second <= 10; second++) policy.tick(second * 1000, 0n, 0n)
    assert.equal(policy.missing(0n), 100n)
    policy.tick(11_000, 0n, 0n)
    assert.equal(policy.missing(0n), 4n)
  })

  it('is twice the amount still held, even if nothing was admitted since', () => {
    const policy = new TopUpPolicy(0)
    policy.tick(1000, 30n, 0n)
    assert.equal(policy.missing(0n), 60n)
    policy.admitted(1n, 20n, 0n)
    assert.equal(policy.missing(0n), 60n)
    policy.tick(2000, 0n, 0n)
    assert.equal(policy.missing(0n), 60n)
  })

  it('is twice the amount spent since the last second, until that second is over', () => {
    const policy = new TopUpPolicy(0)
    policy.spent = 30n
    assert.equal(policy.missing(0n), 60n)
    policy.tick(0, 0n, 0n)
    assert.equal(policy.missing(0n), 60n, 'no time has passed')
    policy.tick(1000, 0n, 0n)
    assert.equal(policy.spent, 0n)
  })

  it('is ten seconds of spending, with an average that rises faster than it falls', () => {
    const policy = new TopUpPolicy(0)
    policy.spent = 1000n
    policy.tick(500, 0n, 0n)
    const rate = 2000 * (1 - Math.exp(-0.5 / 2))
    assert.equal(policy.missing(0n), tenSecondsOf(rate))
    policy.tick(2500, 0n, 0n)
    assert.equal(policy.missing(0n), tenSecondsOf(rate * Math.exp(-2 / 10)))
  })

  it('is the sum of the amounts held at once and spent', () => {
    const policy = new TopUpPolicy(0)
    policy.spent = 1000n
    policy.admitted(1n, 7n, 0n)
    policy.tick(1000, 0n, 0n)
    assert.equal(policy.missing(0n), tenSecondsOf(1000 * (1 - Math.exp(-1 / 2))) + 14n)
  })
})

describe('the amount that a process can spare of a wallet', () => {
  it('is the amount that was not needed for ten seconds, limited to what is free now', () => {
    const { policy, tick } = idle(9, 100n)
    assert.equal(policy.surplus({ free: 100n, granted: 100n }), 0n, 'nine seconds')
    tick(100n)
    assert.equal(policy.surplus({ free: 100n, granted: 100n }), 100n)
    assert.equal(policy.surplus({ free: 60n, granted: 100n }), 60n)
    assert.equal(policy.surplus({ free: 100n, granted: 80n }), 80n)
  })

  it('is measured again after an amount was returned', () => {
    const { policy, tick } = idle(10, 100n)
    policy.restart()
    for (let second = 0; second < 9; second++) tick(100n)
    assert.equal(policy.surplus({ free: 100n, granted: 100n }), 0n)
    tick(100n)
    assert.equal(policy.surplus({ free: 100n, granted: 100n }), 100n)
  })

  it('is only returned beyond a quarter of the held amount', () => {
    const surplusOf = (free: bigint) => idle(10, free).policy.surplus({ free, granted: 100n })
    assert.deepEqual([24n, 25n, 26n].map(surplusOf), [0n, 0n, 26n])
  })

  it('is the smallest free amount of these seconds, at any point within a second', () => {
    const { policy, tick } = idle(10, 100n)
    const surplus = () => policy.surplus({ free: 100n, granted: 100n })
    policy.admitted(0n, 0n, 70n)
    policy.admitted(0n, 0n, 80n)
    tick(100n)
    assert.equal(surplus(), 70n)
    policy.admitted(0n, 0n, 90n)
    tick(60n)
    assert.equal(surplus(), 60n)
    for (let second = 0; second < 9; second++) tick(100n)
    assert.equal(surplus(), 60n)
    tick(100n)
    assert.equal(surplus(), 100n)
  })

  it('leaves the amount that should be held', () => {
    const { policy } = idle(10, 100n)
    policy.admitted(10n, 0n, 100n)
    assert.equal(policy.surplus({ free: 100n, granted: 100n }), 60n)
  })
})

describe('the amount that is requested while calls wait', () => {
  it('is what all of them lack, if the amount left by others is unknown', () => {
    const policy = new TopUpPolicy(0)
    const holding = { free: 2n, granted: 5n }
    assert.deepEqual(policy.takeFor([3n, 4n], holding, undefined, false), {
      kind: 'take',
      need: 5n,
      want: 5n,
    })
  })

  it('includes the amount that should be held, unless there is little left', () => {
    const policy = new TopUpPolicy(0)
    policy.admitted(10n, 0n, 0n)
    const holding = { free: 2n, granted: 5n }
    assert.deepEqual(policy.takeFor([3n, 4n], holding, undefined, false), {
      kind: 'take',
      need: 5n,
      want: 35n,
    })
    assert.deepEqual(policy.takeFor([3n, 4n], holding, undefined, true), { kind: 'take', need: 5n, want: 5n })
  })

  it('needs as many calls as the rest can serve, in their order, and wants all', () => {
    const policy = new TopUpPolicy(0)
    const holding = { free: 2n, granted: 2n }
    const asked = (available: bigint, ...amounts: bigint[]) => {
      const { need, want } = policy.takeFor(amounts, holding, available, false)
      return [need, want]
    }
    assert.deepEqual(asked(5n, 3n, 4n), [5n, 5n], 'just enough for both')
    assert.deepEqual(asked(4n, 3n, 4n), [1n, 5n], 'only the first')
    assert.deepEqual(asked(2n, 10n, 3n), [1n, 11n], 'only the second')
    assert.deepEqual(asked(0n, 3n, 4n), [1n, 5n], 'none: the first is asked for all the same')
    assert.deepEqual(asked(9n), [0n, 0n], 'nobody waits')
  })

  it('halves its need each time that others were faster, four times at most', () => {
    const policy = new TopUpPolicy(0)
    const amounts = Array.from({ length: 320 }, () => 1n)
    const needed = () => policy.takeFor(amounts, NOTHING, 320n, true).need
    const seen = [needed()]
    for (let times = 0; times < 5; times++) {
      policy.taken(0n, 1n)
      seen.push(needed())
    }
    assert.deepEqual(seen, [320n, 160n, 80n, 40n, 20n, 20n])
    policy.taken(1n, 2n)
    assert.equal(needed(), 320n, 'something was moved')
    policy.taken(0n, 1n)
    policy.taken(0n, 0n)
    assert.equal(needed(), 320n, 'nothing was needed')
  })

  it('is accepted by a ledger for calls of any size', () => {
    const policy = new TopUpPolicy(0)
    const { need, want } = policy.takeFor([MAX_AMOUNT, MAX_AMOUNT], NOTHING, undefined, false)
    assert.deepEqual([need, want], [MAX_AMOUNT, MAX_AMOUNT])
    policy.admitted(MAX_AMOUNT, 0n, 0n)
    assert.equal(policy.missing(0n), MAX_AMOUNT)
  })
})
