import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { HeldLease } from '../../../lib/ledger/pool/held-lease.ts'
import { WalletSnapshot } from '../../../lib/ledger/pool/wallet-lease.ts'

const ASKED_AT = 1000

function snapshotOf(figures: { limited?: boolean; funds?: bigint; spent?: bigint; leased?: bigint }) {
  const snapshot = new WalletSnapshot()
  const { limited = true, funds = 0n, spent = 0n, leased = 0n } = figures
  snapshot.update({ limited, funds, spent, leased }, ASKED_AT)
  return snapshot
}

describe('a snapshot of a wallet from the ledger', () => {
  it('contains the amount that all leases leave, and the amount after their return', () => {
    const { limited, available, balance, poorBeyond } = snapshotOf({ funds: 100n, spent: 30n, leased: 20n })
    assert.deepEqual([limited, available, balance, poorBeyond], [true, 50n, 70n, 5n])
  })

  it('leaves nothing if more is spent and leased than the wallet has', () => {
    const { available, balance, poorBeyond } = snapshotOf({ funds: 100n, spent: 130n, leased: 20n })
    assert.deepEqual([available, balance, poorBeyond], [0n, -30n, 0n])
  })

  it('has no valid values before the first answer', () => {
    const snapshot = new WalletSnapshot()
    assert.equal(snapshot.limited, undefined)
    assert.equal(snapshot.isUnlimited(0), false)
    assert.equal(snapshot.availableAt(0), undefined)
    assert.equal(snapshot.isOld(0, 0), true)
  })

  it('makes a wallet unlimited for less than 4.9 seconds', () => {
    const snapshot = snapshotOf({ limited: false })
    assert.deepEqual(
      [ASKED_AT, 5899, 5900].map((now) => snapshot.isUnlimited(now)),
      [true, true, false],
    )
    assert.equal(snapshotOf({}).isUnlimited(ASKED_AT), false)
  })

  it('returns the amount that others leave for less than a second', () => {
    const snapshot = snapshotOf({ funds: 7n })
    assert.deepEqual(
      [ASKED_AT, 1999, 2000].map((now) => snapshot.availableAt(now)),
      [7n, 7n, undefined],
    )
    assert.equal(snapshotOf({ limited: false, funds: 7n }).availableAt(ASKED_AT), undefined)
  })

  it('is old after three seconds, if the wallet was used since', () => {
    const snapshot = snapshotOf({ funds: 7n })
    assert.deepEqual(
      [4000, 4001].map((now) => snapshot.isOld(now, 1001)),
      [false, true],
    )
    assert.equal(snapshot.isOld(4001, ASKED_AT), false)
  })
})

describe('a lease that a process has', () => {
  const opened = () => {
    const lease = new HeldLease('lease')
    lease.confirm({ now: 0, wall: 5000 })
    return lease
  }

  it('grants its free and its reserved amount, and is empty when no charge draws on it either', () => {
    const lease = opened()
    assert.equal(lease.empty, true)
    Object.assign(lease, { free: 2n, reserved: 3n })
    assert.equal(lease.granted, 5n)
    assert.equal(lease.empty, false)
    Object.assign(lease, { free: 0n, reserved: 0n, drawing: 1 })
    assert.equal(lease.empty, false)
  })

  it('is usable for less than 25 seconds after its last renewal was sent, by both clocks', () => {
    const lease = opened()
    assert.equal(lease.isUsable(24_999, 29_999), true)
    assert.equal(lease.isUsable(25_000, 29_999), false, 'by the one that never goes back')
    assert.equal(lease.isUsable(24_999, 30_000), false, 'by that of the machine, which has slept')
  })

  it('is not usable before it was confirmed, nor once it is lost', () => {
    assert.equal(new HeldLease('lease').isUsable(0, 0), false)
    const lease = opened()
    lease.lost = true
    assert.equal(lease.isUsable(0, 5000), false)
  })

  it('is usable by the latest of its renewals, in any order of the answers', () => {
    const lease = opened()
    lease.confirm({ now: 10_000, wall: 15_000 })
    lease.confirm({ now: 5000, wall: 10_000 })
    assert.equal(lease.isUsable(34_999, 39_999), true)
    assert.equal(lease.isUsable(35_000, 39_999), false)
    // The wall clock may have been set back since.
    lease.confirm({ now: 10_000, wall: 90_000 })
    assert.equal(lease.isUsable(10_000, 40_000), false)
  })
})
