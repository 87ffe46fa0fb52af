import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { accountWallet } from '../../lib/ledger/index.ts'
import type { Share } from '../../lib/ledger/regions/region-store.ts'
import { ShareTarget } from '../../lib/ledger/regions/share-target.ts'

const NOTHING = { want: 0n, give: 0n }

function share(members: Partial<Share> = {}): Share {
  return {
    wallet: accountWallet('acme'),
    limited: true,
    funds: 0n,
    spent: 0n,
    leased: 0n,
    elsewhere: 1_000_000n,
    usedAt: 0,
    isTold: true,
    ...members,
  }
}

/** What is decided about shares that come once a second. */
function decided(shares: readonly Partial<Share>[]) {
  const target = new ShareTarget(share(shares[0]), 0)
  return shares.map((each, i) => target.next(share(each), (i + 1) * 1000))
}

describe('the share that a region should have', () => {
  const rows: [name: string, share: Partial<Share>, want: bigint, give: bigint][] = [
    ['is twice what its processes hold', { leased: 50n }, 100n, 0n],
    ['is filled up where less than three quarters are there', { funds: 74n, leased: 50n }, 26n, 0n],
    ['is left alone where three quarters are there', { funds: 75n, leased: 50n }, 0n, 0n],
    ['is no more for what was spent beyond it', { spent: 30n, leased: 50n }, 100n, 0n],
    ['is at most a quarter of the balance', { funds: 10n, leased: 50n, elsewhere: 110n }, 20n, 0n],
    ['is no less if it is more than a quarter', { funds: 60n, leased: 50n, elsewhere: 100n }, 0n, 0n],
    ['is a quarter of what is left of a debt too', { spent: 40n, leased: 50n, elsewhere: 100n }, 55n, 0n],
    ['goes back where the wallet has no limit', { limited: false, funds: 90n, leased: 50n }, 0n, 40n],
    ['of a wallet without a limit that is all held stays', { limited: false, leased: 50n }, 0n, 0n],
  ]
  for (const [name, row, want, give] of rows)
    it(name, () => assert.deepEqual(decided([row]), [{ want, give }]))

  it('is a minute of the spending', () => {
    const target = new ShareTarget(share(), 0)
    let [funds, spent] = [0n, 0n]
    for (let second = 1; second <= 60; second++) {
      spent += 10n
      const { want, give } = target.next(share({ funds, spent }), second * 1000)
      funds += want - give
    }
    const balance = funds - spent
    assert.ok(balance > 400n && balance <= 600n, `${balance} for 10 a second`)
  })

  it('does not grow by a void, which is a use', () => {
    const [before, after] = decided([
      { funds: 100n, spent: 80n },
      { funds: 100n, spent: 20n },
    ])
    assert.deepEqual([before, after], [NOTHING, NOTHING])
    const target = new ShareTarget(share({ spent: 80n }), 0)
    target.next(share({ spent: 80n }), 14_000)
    target.next(share({ spent: 20n }), 15_000)
    assert.equal(target.isIdle(29_999), false)
    assert.equal(target.isIdle(30_000), true)
  })

  it('goes back once it was not used for 15 s, but for what is held', () => {
    const shares = Array.from({ length: 16 }, () => ({ funds: 5n, spent: 2n }))
    const answers = decided(shares)
    assert.deepEqual(answers.slice(0, 9), Array(9).fill(NOTHING))
    assert.deepEqual(answers[14], { want: 0n, give: 3n })
    const spentUp = decided(Array.from({ length: 16 }, () => ({ funds: 5n, spent: 5n })))
    assert.deepEqual(spentUp, Array(16).fill(NOTHING))
    for (const [funds, leased] of [
      [20n, 10n],
      [2n, 1n],
    ] as const)
      assert.deepEqual(
        decided(Array.from({ length: 16 }, () => ({ funds, leased }))),
        Array(16).fill(NOTHING),
      )
  })

  it('gives back what was not needed for ten seconds, and watches again before it gives more', () => {
    const answers = decided(Array.from({ length: 20 }, () => ({ funds: 1000n, leased: 10n })))
    const given = { want: 0n, give: 980n }
    assert.deepEqual(answers, [...Array(9).fill(NOTHING), given, ...Array(9).fill(NOTHING), given])
  })
})
