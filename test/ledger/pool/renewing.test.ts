import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { HeldLease } from '../../../lib/ledger/pool/held-lease.ts'
import { LeaseRenewal } from '../../../lib/ledger/pool/lease-renewal.ts'
import { LedgerHealth } from '../../../lib/ledger/pool/ledger-health.ts'
import type { WalletLease } from '../../../lib/ledger/pool/wallet-lease.ts'
import { recordingLogger } from '../../support/app-server.ts'
import { turns, VirtualClock } from '../support/virtual-clock.ts'

/** A wallet as the renewal sees it. */
interface Seen {
  lease: HeldLease | undefined
  isAsking: boolean
  readonly dropped: HeldLease[]
  drop(lease: HeldLease): void
}

function seen(id: string | undefined, isAsking = false): Seen {
  const dropped: HeldLease[] = []
  const lease = id === undefined ? undefined : new HeldLease(id)
  return { lease, isAsking, dropped, drop: (lease) => void dropped.push(lease) }
}

function renewal(wallets: readonly Seen[]) {
  const clock = new VirtualClock()
  const health = new LedgerHealth({
    clock,
    logger: recordingLogger(),
    times: { stallMs: 500 },
    onStoreChange: () => {},
  })
  const asked: { ids: readonly string[]; at: number; wall: number }[] = []
  const world = {
    /** The leases that the ledger has. Defaults to all that a renewal names. */
    has: undefined as ReadonlySet<string> | undefined,
    fails: false,
    answering: undefined as Promise<void> | undefined,
  }
  const renew = async (ids: readonly string[], wall: number) => {
    asked.push({ ids, at: clock.now(), wall })
    await world.answering
    if (world.fails) throw new Error('the ledger is down')
    return world.has ?? new Set(ids)
  }
  const all = () => wallets as readonly unknown[] as readonly WalletLease[]
  const renewing = new LeaseRenewal({
    ledger: { leases: async () => [], renew },
    clock,
    health,
    wallets: all,
  })
  return { clock, health, asked, world, renewing }
}

describe('the leases of a process', () => {
  it('are renewed every seven seconds, measured from the request', async () => {
    const wallets = [seen('a'), seen(undefined), seen('b')]
    const { clock, asked } = renewal(wallets)
    await clock.advance(6999)
    assert.equal(asked.length, 0)
    await clock.advance(14_001)
    assert.deepEqual(
      asked.map(({ ids, at }) => [ids, at]),
      [7000, 14_000, 21_000].map((at) => [['a', 'b'], at]),
    )
    assert.equal(asked[0]?.wall, 1_700_000_007_000)
  })

  it('are usable from the time of the request, even if the answer is late', async () => {
    const wallet = seen('a')
    const { clock, world } = renewal([wallet])
    let answer = () => {}
    world.answering = new Promise((resolve) => {
      answer = resolve
    })
    await clock.advance(9000)
    assert.equal(wallet.lease?.isUsable(9000, clock.wall()), false)
    answer()
    await turns()
    assert.equal(wallet.lease?.isUsable(31_999, clock.wall()), true)
    assert.equal(wallet.lease?.isUsable(32_000, clock.wall()), false)
  })

  it('are renewed in batches of five hundred, one after the other', async () => {
    const { clock, asked } = renewal(Array.from({ length: 1001 }, (_, i) => seen(`lease-${i}`)))
    await clock.advance(7000)
    assert.deepEqual(
      asked.map(({ ids }) => [ids.length, ids[0]]),
      [
        [500, 'lease-0'],
        [500, 'lease-500'],
        [1, 'lease-1000'],
      ],
    )
  })

  it('cause no request if there are none', async () => {
    const { clock, asked } = renewal([seen(undefined)])
    await clock.advance(30_000)
    assert.deepEqual(asked, [])
  })

  it('are renewed again a second after a failure, which counts for the health of the ledger', async () => {
    const wallet = seen('a')
    const { clock, asked, world, health } = renewal([wallet])
    world.fails = true
    await clock.advance(9500)
    assert.deepEqual(
      asked.map(({ at }) => at),
      [7000, 8000, 9000],
    )
    assert.equal(health.silent, true)
    world.fails = false
    await clock.advance(500)
    assert.deepEqual([asked.at(-1)?.at, health.silent], [10_000, false])
    assert.equal(wallet.lease?.isUsable(10_000, clock.wall()), true)
    await clock.advance(7000)
    assert.deepEqual([asked.length, asked.at(-1)?.at], [5, 17_000])
    assert.deepEqual(wallet.dropped, [])
  })

  it('are not renewed after close, not even by a round that has begun', async () => {
    for (const fails of [false, true]) {
      const { clock, asked, world, renewing } = renewal([seen('a')])
      let answer = () => {}
      world.answering = new Promise((resolve) => {
        answer = resolve
      })
      await clock.advance(7000)
      world.fails = fails
      renewing.close()
      answer()
      await clock.advance(30_000)
      assert.equal(asked.length, 1)
    }
    const { clock, asked, renewing } = renewal([seen('a')])
    renewing.close()
    await clock.advance(30_000)
    assert.deepEqual(asked, [])
  })
})

describe('a lease that the ledger no longer has', () => {
  it('is given up, and others are kept', async () => {
    const [gone, there] = [seen('gone'), seen('there')]
    const { clock, world } = renewal([gone, there])
    world.has = new Set(['there'])
    await clock.advance(7000)
    assert.deepEqual([gone.dropped, there.dropped], [[gone.lease], []])
    assert.equal(gone.lease?.isUsable(7000, clock.wall()), false)
    assert.equal(there.lease?.isUsable(7000, clock.wall()), true)
  })

  it('is kept while it is being opened or closed, until that is answered', async () => {
    const [before, meanwhile, replaced] = [seen('before', true), seen('meanwhile'), seen('replaced')]
    const { clock, world } = renewal([before, meanwhile, replaced])
    world.has = new Set()
    let answer = () => {}
    world.answering = new Promise((resolve) => {
      answer = resolve
    })
    await clock.advance(7000)
    before.isAsking = false
    meanwhile.isAsking = true
    replaced.lease = new HeldLease('next')
    answer()
    await turns()
    assert.deepEqual([before.dropped, meanwhile.dropped, replaced.dropped], [[], [], []])
  })
})
