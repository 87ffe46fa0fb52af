import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { MAX_AMOUNT } from '../../../lib/core/catalog/money.ts'
import type { HeldLease } from '../../../lib/ledger/pool/held-lease.ts'
import { opened, UNLIMITED, world } from '../support/one-wallet.ts'

describe('a wallet without a report of the ledger', () => {
  it('covers only a call that costs nothing', () => {
    const { wallet, covers, hold } = world()
    assert.deepEqual([covers(0n), covers(1n), hold(1n), hold(0n)], [true, false, undefined, undefined])
    assert.deepEqual([wallet.lease, wallet.reach, wallet.isAsking], [undefined, undefined, false])
  })

  it('requests the amount for waiting calls once, until the ledger answers', () => {
    const { wallet, waiting, answer } = world()
    waiting.push(30n, 12n)
    const change = wallet.nextChange()
    const asked = { kind: 'take', need: 42n, want: 42n }
    assert.deepEqual(change, { lease: 'lease-1', wallet: 'account:acme', seq: 1, change: asked })
    waiting.push(100n)
    assert.equal(wallet.nextChange(), change, 'asked for again')
    assert.equal(wallet.isAsking, true)
    answer({ moved: 42n })
    assert.deepEqual([wallet.isAsking, wallet.lease?.free], [false, 42n])
    answer({ moved: 9n })
    assert.equal(wallet.lease?.free, 42n, 'an answer to nothing')
  })

  it('opens its lease again with the first change if that moved nothing', () => {
    const { wallet, waiting, answer } = world()
    waiting.push(30n)
    const seqs = [wallet.nextChange()?.seq]
    assert.equal(wallet.lease?.seq, 1)
    answer()
    assert.equal(wallet.lease === undefined, true)
    seqs.push(wallet.nextChange()?.seq)
    answer({ moved: 30n })
    waiting.push(500n)
    seqs.push(wallet.nextChange()?.seq)
    answer()
    seqs.push(wallet.nextChange()?.seq)
    assert.deepEqual([seqs, wallet.lease?.id], [[1, 1, 2, 3], 'lease-1'])
  })
})

describe('a call on a limited wallet', () => {
  it('is covered by the free amount while the lease is usable', async () => {
    const { clock, covers, wallet } = opened(40n)
    assert.deepEqual([covers(40n), covers(41n)], [true, false])
    await clock.advance(25_000)
    assert.equal(covers(40n), false)
    wallet.lease?.confirm({ now: clock.now(), wall: clock.wall() })
    assert.equal(covers(40n), true)
    wallet.drop(wallet.lease as HeldLease)
    assert.equal(covers(1n), false)
  })

  it('holds its maximum cost, which is returned on release', () => {
    const { wallet, lease, hold, seen } = opened(40n)
    assert.equal(hold(15n), lease)
    assert.deepEqual([lease.free, lease.reserved, seen.served], [25n, 15n, 0])
    assert.equal(hold(26n), undefined)
    assert.deepEqual([lease.free, lease.reserved], [25n, 15n])
    wallet.release(lease, 15n)
    wallet.release(undefined, 15n)
    assert.deepEqual([lease.free, lease.reserved, seen.served], [40n, 0n, 1])
    assert.equal(hold(40n), lease)
  })

  it('draws its cost from its hold, and from the free amount', () => {
    const { wallet, lease, hold, seen } = opened(40n)
    hold(15n)
    const drawn = wallet.draw(lease, 15n, 11n)
    assert.deepEqual([drawn?.lease, drawn?.wallet, drawn?.amount], ['lease-1', 'account:acme', 11n])
    assert.deepEqual([lease.free, lease.reserved, lease.drawing, seen.served], [29n, 0n, 1, 1])
    hold(15n)
    assert.equal(wallet.draw(lease, 15n, 50n)?.amount, 29n)
    assert.deepEqual([lease.free, lease.drawing], [0n, 2])
    assert.equal(wallet.draw(lease, 0n, 5n), undefined)
    assert.deepEqual([lease.free, lease.drawing], [0n, 2])
  })

  it('without a hold draws on the present lease', () => {
    const { wallet, lease } = opened(40n)
    assert.equal(wallet.draw(undefined, 0n, 7n)?.amount, 7n)
    assert.deepEqual([lease.free, lease.reserved, lease.drawing], [33n, 0n, 1])
    assert.equal(wallet.draw(undefined, 0n, 0n), undefined)
    assert.equal(world().wallet.draw(undefined, 0n, 7n), undefined)
  })

  it('draws at most its hold on a lost lease, which is an overrun', () => {
    const { wallet, lease, hold, deps } = opened(40n)
    hold(15n)
    wallet.drop(lease)
    wallet.drop(lease)
    assert.deepEqual([deps.figures, wallet.lease], [{ lost: 1, overruns: 0 }, undefined])
    assert.equal(wallet.draw(lease, 15n, 50n)?.amount, 15n)
    assert.deepEqual(deps.figures, { lost: 1, overruns: 1 })
  })

  it('causes a request for the whole amount after its lease is lost', () => {
    const { wallet, lease, waiting, next } = opened(40n, 10n)
    wallet.drop(lease)
    waiting.push(10n)
    assert.deepEqual(next(), { kind: 'take', need: 10n, want: 40n })
  })

  it('has its drawn amount either in the ledger or still in the lease', () => {
    const { wallet, lease, seen } = opened(40n)
    const [taken, returned] = [wallet.draw(undefined, 0n, 7n), wallet.draw(undefined, 0n, 5n)]
    assert.ok(taken && returned)
    seen.served = 0
    wallet.drawn(taken, false)
    assert.deepEqual([lease.free, lease.drawing, seen.served], [28n, 1, 0])
    wallet.drawn(returned, true)
    assert.deepEqual([lease.free, lease.drawing, seen.served], [33n, 0, 1])
  })
})

describe('a call on a wallet without limits', () => {
  it('is covered while the report is valid, and holds nothing', async () => {
    const { wallet, waiting, answer, clock, covers, hold } = world()
    waiting.push(5n)
    wallet.nextChange()
    waiting.length = 0
    answer({ open: false, state: UNLIMITED })
    assert.deepEqual([covers(5_000_000n), hold(5n), wallet.reach], [true, undefined, MAX_AMOUNT])
    await clock.advance(4900)
    assert.deepEqual([covers(5n), covers(0n)], [false, true])
  })

  it('returns the amount leased under a former limit, and requests none for any spending', async () => {
    const { wallet, lease, answer, next, hold, tick, seen } = opened(40n)
    hold(10n)
    wallet.snapshot.update(UNLIMITED, 0)
    assert.equal(hold(5n), undefined, 'nothing is held any more')
    assert.deepEqual(next(), { kind: 'give', amount: 30n })
    answer({ moved: 30n, state: UNLIMITED })
    wallet.release(lease, 10n)
    assert.deepEqual(next(), { kind: 'give', amount: 10n })
    answer({ moved: 10n, open: false, state: UNLIMITED })
    wallet.draw(undefined, 0n, 100_000n)
    seen.asked = 0
    await tick(2)
    assert.deepEqual([seen.asked, next()], [0, undefined])
  })
})

describe('the answer of the ledger', () => {
  it('reporting a lost lease gives it up', () => {
    const { wallet, lease, waiting, answer, deps } = opened(40n)
    waiting.push(50n)
    wallet.nextChange()
    answer({ moved: 10n, lost: true, open: false })
    assert.deepEqual([lease.lost, lease.free, wallet.lease, deps.figures.lost], [true, 40n, undefined, 1])
    assert.equal(wallet.nextChange()?.lease, 'lease-2')
  })

  it('reporting a closed lease makes the next take open another', () => {
    const { wallet, waiting, answer, deps } = opened(40n)
    deps.closing = true
    assert.equal(wallet.nextChange()?.change.kind, 'give')
    answer({ moved: 40n, open: false })
    assert.equal(wallet.lease, undefined)
    deps.closing = false
    waiting.push(5n)
    const { lease, seq } = wallet.nextChange() ?? {}
    assert.deepEqual([lease, seq, deps.figures.lost], ['lease-2', 1, 0])
  })

  it('reporting an open lease after a return keeps it', () => {
    const { wallet, lease, answer, deps } = opened(40n)
    deps.closing = true
    wallet.nextChange()
    assert.equal(lease.free, 0n, 'what is given is not free meanwhile')
    answer({ moved: 40n, open: true })
    assert.deepEqual([wallet.lease, lease.free], [lease, 0n])
  })

  it('makes the lease usable from the time of the request', async () => {
    const { wallet, waiting, clock, answer, covers } = world()
    waiting.push(5n)
    wallet.nextChange()
    waiting.length = 0
    await clock.advance(20_000)
    answer({ moved: 5n })
    assert.equal(covers(5n), true)
    await clock.advance(5000)
    assert.equal(covers(5n), false)
  })

  it('contains the amount that calls could get: what is free, and what others leave', () => {
    const { wallet } = opened(40n, 0n, { limited: true, funds: 1000n, spent: 300n, leased: 240n })
    assert.equal(wallet.reach, 500n)
  })
})
