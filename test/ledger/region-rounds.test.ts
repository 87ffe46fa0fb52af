import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { StoreAway } from '../../lib/core/store-guard/index.ts'
import type { HomeExchange, ShareOrder } from '../../lib/ledger/regions/home-exchange.ts'
import { RegionRounds } from '../../lib/ledger/regions/region-rounds.ts'
import type { Mirrors, Share, ShareStore } from '../../lib/ledger/regions/region-store.ts'
import type { WalletId } from '../../lib/ledger/wallet.ts'
import { recordingLogger } from '../support/app-server.ts'

const ACME: WalletId = 'account:acme'
const WALL = 1_700_000_000_000
/** A share that is as it should be: all of it is held, and home knows all of it. */
const HELD: Share = {
  wallet: ACME,
  limited: true,
  funds: 100n,
  spent: 0n,
  leased: 100n,
  elsewhere: 0n,
  usedAt: WALL,
  isTold: true,
}

/** What looks after the shares of a home in a process, on a clock of the test, and all that it does, in its order. */
function process(t: TestContext, maxAwayMs = 60_000) {
  const logger = recordingLogger()
  const done: unknown[][] = []
  const state = {
    now: 5_000_000,
    wall: WALL,
    inUse: [] as Share[],
    /** When home last answered; undefined while another process looks after it. */
    contactAt: WALL as number | undefined,
    isAway: false,
    /** What fails of the region's own database, and how. */
    failures: new Map<string, unknown>(),
  }
  t.mock.restoreAll()
  t.mock.method(performance, 'now', () => state.now)
  t.mock.method(Date, 'now', () => state.wall)
  const act = async (name: string, ...given: unknown[]) => {
    done.push([name, ...given])
    if (state.failures.has(name)) throw state.failures.get(name)
  }
  const ask = async <T>(question: () => Promise<T>): Promise<T> => {
    if (state.isAway) throw new StoreAway('region eu is away')
    return question()
  }
  const exchange = {
    name: 'eu',
    ask,
    exchange: async (orders: readonly ShareOrder[]) => {
      await act('exchange', orders)
      return new Map()
    },
  } as unknown as HomeExchange
  const shares = {
    async claim(...given: unknown[]) {
      await act('claim', ...given)
      return state.contactAt
    },
    inUse: async (home: string) => (home === 'eu' ? state.inUse : []),
    wake: (home: string) => act('wake', home),
    rest: (wallets: readonly WalletId[], before: number) => act('rest', wallets, before),
    noteContact: (home: string, at: number) => act('noteContact', home, at),
  } as unknown as ShareStore
  const mirrors: Mirrors = {
    refresh: (home, asking) => asking(() => act('refresh', home)),
    expire: (home) => act('expire', home),
  }
  const home = { ping: () => act('ping'), exchange: async () => [] }
  const rounds = new RegionRounds({ exchange, home, shares, mirrors, logger, maxAwayMs })
  t.after(() => rounds.close())
  return {
    ...{ state, rounds, logger },
    /** What a round has done, of these or of all, after so many milliseconds. */
    async round(ms = 1000, ...names: string[]): Promise<unknown[][]> {
      state.now += ms
      state.wall += ms
      done.length = 0
      await rounds.now()
      return names.length === 0 ? [...done] : done.filter(([name]) => names.includes(name as string))
    },
    done,
  }
}
type Process = ReturnType<typeof process>

describe('a round of a region', () => {
  it('asks whether home answers before anything leaves a share, and then compares the copies', async (t) => {
    const { round, state } = process(t)
    state.inUse = [HELD]
    const names = (await round()).map(([name]) => name)
    assert.deepEqual(names.slice(0, 2), ['claim', 'ping'])
    assert.deepEqual(names.slice(2).sort(), ['exchange', 'noteContact', 'refresh', 'rest', 'wake'])
    state.isAway = true
    assert.deepEqual(
      (await round()).map(([name]) => name),
      ['claim'],
    )
  })

  it('notes by the calendar when the copies were compared, and not where that failed', async (t) => {
    const { round, state } = process(t)
    assert.deepEqual(await round(1000, 'noteContact'), [['noteContact', 'eu', WALL + 1000]])
    state.failures.set('refresh', new StoreAway('region eu is away'))
    assert.deepEqual(await round(1000, 'noteContact'), [])
  })

  const orders: [name: string, share: Partial<Share>, order: [want: bigint, give: bigint] | undefined][] = [
    ['moves nothing of a share that is as it should be', {}, undefined],
    ['tells what home does not know', { isTold: false }, [0n, 0n]],
    ['asks for more where calls hold nearly all', { elsewhere: 9900n }, [100n, 0n]],
    ['gives back what a wallet without a limit does not need', { limited: false, leased: 60n }, [0n, 40n]],
    ['moves nothing of one without a limit that has nothing free', { limited: false }, undefined],
  ]
  for (const [name, share, order] of orders)
    it(name, async (t) => {
      const { round, state } = process(t)
      state.inUse = [{ ...HELD, ...share }]
      const [want, give] = order ?? []
      const expected = order ? [{ wallet: ACME, need: 0n, want, give }] : []
      assert.deepEqual(await round(1000, 'exchange'), [['exchange', expected]])
    })
})

describe('the process that looks after a home', () => {
  it('claims that by one name, for ten seconds from now', async (t) => {
    const one = process(t)
    const claims = [await one.round(), await one.round()].map(([claim]) => claim)
    const [[other] = []] = [await process(t).round()]
    const [, , owner] = claims[0] ?? []
    assert.ok(typeof owner === 'string' && owner !== '')
    assert.deepEqual(claims, [
      ['claim', 'eu', owner, WALL + 1000, WALL + 11_000],
      ['claim', 'eu', owner, WALL + 2000, WALL + 12_000],
    ])
    assert.notEqual(other?.[2], owner)
  })

  it('claims it for no longer once it closes, and tells home the rest', async (t) => {
    const { rounds, done, state } = process(t)
    state.inUse = [{ ...HELD, isTold: false }]
    await rounds.close()
    const [[, , , at, until] = [], ...others] = done
    assert.deepEqual([at, until], [WALL, WALL])
    assert.ok(others.some(([name]) => name === 'exchange'))
  })

  it('is one: any other only sees whether home answers, also where it does not', async (t) => {
    const { round, state, logger } = process(t)
    state.inUse = [{ ...HELD, isTold: false }]
    state.contactAt = undefined
    const names = async () => (await round()).map(([name]) => name)
    assert.deepEqual(await names(), ['claim', 'ping'])
    state.failures.set('ping', new StoreAway('region eu is away'))
    assert.deepEqual(await names(), ['claim', 'ping'])
    state.isAway = true
    assert.deepEqual(await names(), ['claim'])
    assert.deepEqual(logger.lines, [])
  })

  it('learns anew what shares are needed where another one did it meanwhile', async (t) => {
    const given = async (isReplaced: boolean) => {
      const { round, state } = process(t)
      state.inUse = [{ ...HELD, leased: 0n }]
      await round()
      state.contactAt = isReplaced ? undefined : WALL
      await round(14_000)
      state.contactAt = WALL
      const [[, [order] = []] = []] = (await round(1000, 'exchange')) as [string, ShareOrder[]][]
      return order?.give
    }
    assert.deepEqual([await given(false), await given(true)], [100n, undefined])
  })
})

describe('while a home is away', () => {
  for (const [awayMs, isTooLong] of [
    [59_999, false],
    [60_000, false],
    [60_001, true],
  ] as const)
    it(`the copies of its keys ${isTooLong ? 'are forgotten' : 'are used'} ${awayMs} ms after it last answered`, async (t) => {
      const { round, state, logger } = process(t)
      state.isAway = true
      state.contactAt = WALL + 1000 - awayMs
      const expired = await round(1000, 'expire', 'exchange', 'rest', 'wake')
      assert.deepEqual(expired, isTooLong ? [['expire', 'eu']] : [])
      assert.deepEqual(logger.lines, [])
    })

  it('also one that goes away in the round is no failure of the region', async (t) => {
    const { round, state, logger } = process(t)
    state.failures.set('exchange', new StoreAway('region eu is away'))
    assert.deepEqual(await round(1000, 'rest', 'wake'), [])
    assert.deepEqual(logger.lines, [])
  })

  it('a failure of the region’s own database is told, once for each cause, with its home', async (t) => {
    const { round, state, logger } = process(t)
    const told: number[] = []
    for (const cause of ['is away', 'is away', 'is full', undefined, 'is full']) {
      state.failures.clear()
      if (cause !== undefined) state.failures.set('exchange', new Error(cause))
      await round()
      told.push(logger.lines.length)
    }
    assert.deepEqual(told, [1, 1, 2, 2, 3])
    const [first] = logger.lines
    const fields = { err: new Error('is away'), home: 'eu' }
    assert.deepEqual([first?.message, first?.fields], ['a round of a region failed', fields])
  })
})

describe('a share that nobody uses', () => {
  const unused = { ...HELD, leased: 0n, funds: 0n }
  const rested = async ({ round }: Process, ms: number) => (await round(ms, 'rest'))[0]?.slice(1)

  it('rests a minute after its last use, once nothing came of it for a while', async (t) => {
    const world = process(t)
    world.state.inUse = [unused]
    assert.deepEqual(await rested(world, 50_000), [[], WALL - 10_000])
    assert.deepEqual(await rested(world, 10_000), [[], WALL])
    world.state.wall -= 1
    assert.deepEqual(await rested(world, 5001), [[ACME], WALL + 5000])
  })

  it('does not rest while home does not know all of it, or it was used within the minute', async (t) => {
    for (const share of [{ isTold: false }, { usedAt: WALL + 61_000 }]) {
      const world = process(t)
      world.state.inUse = [{ ...unused, ...share }]
      await world.round()
      assert.deepEqual((await rested(world, 119_000))?.[0], [])
    }
  })

  it('is watched anew when it is used again', async (t) => {
    const world = process(t)
    world.state.inUse = [unused]
    await world.round(0)
    assert.deepEqual((await rested(world, 61_000))?.[0], [ACME])
    assert.deepEqual((await rested(world, 1000))?.[0], [])
    assert.deepEqual((await rested(world, 15_000))?.[0], [ACME])
  })

  it('is woken where it has something to report: at first, then every minute, whatever the clock is set to, but not while home is away', async (t) => {
    const { round, state } = process(t)
    const woken = async (ms: number) => (await round(ms, 'wake')).length
    assert.deepEqual(
      [await woken(1000), await woken(59_999), await woken(1), await woken(1000)],
      [1, 0, 1, 0],
    )
    state.wall -= 3_600_000
    state.isAway = true
    assert.equal(await woken(60_000), 0)
    state.isAway = false
    assert.equal(await woken(1000), 1)
  })
})
