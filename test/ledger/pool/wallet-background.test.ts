import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { LIMITED, opened, UNLIMITED, world } from '../support/one-wallet.ts'

describe('more money is requested in the background', () => {
  it('when less than half of the free amount of the last answer is left, and at each further half', () => {
    const { hold, seen } = opened(1000n, 0n, { ...LIMITED, funds: 1_000_000n })
    const asked = Array.from({ length: 18 }, () => {
      hold(50n)
      return seen.asked
    })
    // Below 500, which leaves 450; below 225, which leaves 200; and 100 is not below that.
    assert.deepEqual(asked, [...Array(10).fill(0), ...Array(5).fill(1), 2, 2, 2])
  })

  it('when less than half of the amount beyond waiting charges is left', () => {
    const { wallet, waiting, answer, hold, seen } = world()
    waiting.push(1000n)
    wallet.nextChange()
    answer({ moved: 1000n, state: { ...LIMITED, funds: 1_000_000n } })
    waiting.length = 0
    hold(999n)
    assert.equal(seen.asked, 0, 'all that is free is for what waits')
  })

  it('up to the amount that should be held, without a minimum', () => {
    const { next } = opened(100n, 50n, { ...LIMITED, funds: 1_000_000n })
    assert.deepEqual(next(), { kind: 'take', need: 0n, want: 100n })
  })

  it('but not if the wallet has little left, nor during close', () => {
    // A tenth of what is left is one call such as the last.
    assert.equal(opened(100n, 50n, { ...LIMITED, funds: 500n }).next()?.kind, 'take')
    const poor = opened(100n, 50n, { ...LIMITED, funds: 490n })
    assert.deepEqual(poor.next(), { kind: 'give', amount: 100n })
    const closing = opened(100n, 50n, { ...LIMITED, funds: 1_000_000n })
    closing.deps.closing = true
    assert.deepEqual(closing.next(), { kind: 'give', amount: 100n })
  })

  it('after a second, if an amount is missing', async () => {
    const { wallet, seen, tick, answer } = opened(100n, 50n, { ...LIMITED, funds: 1_000_000n })
    await tick(1)
    assert.equal(seen.asked, 1)
    wallet.nextChange()
    await tick(1)
    assert.equal(seen.asked, 1, 'it was asked for already')
    answer({ moved: 100n, state: { ...LIMITED, funds: 1_000_000n } })
    await tick(1)
    assert.equal(seen.asked, 1)
  })

  it('after a second, if the smallest amount is missing', async () => {
    const { hold, tick, seen, next } = opened(1n, 0n, { ...LIMITED, funds: 1_000_000n })
    hold(1n)
    hold(0n)
    await tick(1)
    assert.deepEqual([seen.asked, next()], [1, { kind: 'take', need: 0n, want: 1n }])
  })

  it('as a read of the state only, after three seconds, for a wallet that was used since', async () => {
    const { clock, hold, tick, seen, next } = opened(1000n, 1n, { ...LIMITED, funds: 1_000_000n })
    await clock.advance(1)
    hold(1n)
    await tick(2)
    assert.deepEqual([seen.asked, next()], [0, undefined])
    await tick(1)
    assert.deepEqual([seen.asked, next()], [1, { kind: 'take', need: 0n, want: 0n }])
  })
})

describe('money that is not needed is returned', () => {
  it('at once if there is little left', () => {
    const { wallet, lease, hold, seen } = opened(100n, 50n, { ...LIMITED, funds: 490n })
    hold(50n)
    seen.asked = 0
    wallet.release(lease, 50n)
    assert.equal(seen.asked, 1)
    const rich = opened(100n, 50n, { ...LIMITED, funds: 1_000_000n })
    rich.hold(20n)
    rich.seen.asked = 0
    rich.wallet.release(rich.lease, 20n)
    assert.equal(rich.seen.asked, 0)
  })

  it('but not while calls wait, except during close', () => {
    const { waiting, next, deps } = opened(100n, 50n, { ...LIMITED, funds: 490n })
    waiting.push(60n)
    assert.equal(next(), undefined, 'what is free covers it')
    deps.closing = true
    assert.deepEqual(next(), { kind: 'give', amount: 100n })
  })

  it('after ten unused seconds, except for the amount that should be held', async () => {
    const { hold, wallet, lease, tick, next, seen, answer, clock } = opened(1000n, 10n, {
      ...LIMITED,
      funds: 1_000_000n,
    })
    for (let second = 1; second <= 10; second++) {
      wallet.release(hold(10n), 10n)
      // The ledger reports the state of the wallet often enough here, so nothing need be asked for that.
      wallet.snapshot.update({ ...LIMITED, funds: 1_000_000n }, clock.now() + 1000)
      seen.asked = 0
      await tick(1)
      assert.equal(seen.asked, second < 10 ? 0 : 1, `second ${second}`)
    }
    const given = next()
    assert.deepEqual([given?.kind, lease.free], ['give', 40n])
    answer({ moved: 960n, state: { ...LIMITED, funds: 1_000_000n } })
    assert.equal(next(), undefined)
  })

  it('but not sooner if the wallet was empty in these seconds', async () => {
    const { clock, wallet, take, hold, tick, seen } = world()
    await tick(10)
    const lease = take(1000n, { ...LIMITED, funds: 1_000_000n })
    assert.equal(hold(1n), lease)
    wallet.release(lease, 1n)
    seen.asked = 0
    await tick(2)
    assert.deepEqual([seen.asked, clock.now()], [0, 12_000])
  })

  it('at the next second if the wallet is no longer limited, including the smallest amount', async () => {
    const { wallet, seen, tick, clock, next } = opened(1n)
    wallet.snapshot.update(UNLIMITED, clock.now())
    await tick(1)
    assert.deepEqual([seen.asked, next()], [1, { kind: 'give', amount: 1n }])
  })

  it('whole when the wallet is idle for ten seconds, which closes it', async () => {
    const { wallet, tick, next, answer, clock, seen } = opened(100n, 50n, { ...LIMITED, funds: 1_000_000n })
    await clock.advance(9999)
    assert.equal(next()?.kind, 'take')
    answer({ state: { ...LIMITED, funds: 1_000_000n } })
    assert.equal(wallet.isOver, false)
    seen.asked = 0
    await clock.advance(1)
    wallet.tick()
    assert.deepEqual([seen.asked, next(), wallet.isOver], [1, { kind: 'give', amount: 100n }, false])
    answer({ moved: 100n, open: false })
    assert.equal(wallet.isOver, true)
    seen.asked = 0
    await tick(3)
    assert.equal(seen.asked, 0)
    wallet.unhanded = 1n
    assert.equal(wallet.isOver, false)
  })

  it('and its lease closed by returning zero, if calls have spent it all and it is idle or closing', () => {
    const { wallet, next, answer, deps } = opened(100n)
    const drawn = wallet.draw(undefined, 0n, 100n)
    assert.ok(drawn)
    deps.closing = true
    assert.equal(next(), undefined, 'a charge draws on it still')
    wallet.drawn(drawn, false)
    assert.deepEqual(next(), { kind: 'give', amount: 0n })
    answer({ open: false })
    assert.deepEqual([next(), wallet.lease], [undefined, undefined])
    const used = opened(100n)
    used.hold(100n)
    used.deps.closing = true
    assert.equal(used.next(), undefined, 'a call runs on it')
    const busy = opened(100n)
    const taken = busy.wallet.draw(undefined, 0n, 100n)
    assert.ok(taken)
    busy.wallet.drawn(taken, false)
    assert.equal(busy.next()?.kind, 'take', 'it is neither')
  })

  it('in a request for each amount that is released during close', () => {
    const { wallet, lease, hold, deps, seen } = opened(100n, 0n, { ...LIMITED, funds: 1_000_000n })
    hold(40n)
    hold(10n)
    deps.closing = true
    seen.asked = 0
    wallet.release(lease, 40n)
    assert.equal(seen.asked, 1)
    const drawn = wallet.draw(lease, 10n, 10n)
    assert.ok(drawn)
    assert.equal(seen.asked, 2)
    wallet.drawn(drawn, false)
    assert.equal(seen.asked, 3)
    const without = world()
    without.deps.closing = true
    without.wallet.draw(undefined, 0n, 5n)
    assert.equal(without.seen.asked, 0, 'it has nothing to give back')
  })

  it('and none is taken during close, for any waiting calls', () => {
    const { waiting, deps, next, wallet } = world()
    waiting.push(5n)
    deps.closing = true
    assert.deepEqual([next(), wallet.lease], [undefined, undefined])
  })
})
