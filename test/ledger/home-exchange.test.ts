import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { HomeExchange } from '../../lib/ledger/regions/home-exchange.ts'
import type {
  HomeStore,
  PreparedReport,
  ShareAnswer,
  ShareReport,
  ShareRequest,
  ShareStore,
} from '../../lib/ledger/regions/region-store.ts'
import type { WalletId } from '../../lib/ledger/wallet.ts'
import { recordingLogger } from '../support/app-server.ts'
import { turns } from './virtual-clock.ts'

const ACME: WalletId = 'account:acme'
const GLOBEX: WalletId = 'account:globex'

/** An exchange with a home that grants what it is asked for, when the test lets it. */
function exchanging({ waits = false } = {}) {
  const reports = new Map<WalletId, PreparedReport>()
  const applied: { answer: ShareAnswer; report: ShareReport }[] = []
  const asked: (readonly ShareRequest[])[] = []
  const open: (() => void)[] = []
  const state = {
    isAway: false,
    running: 0,
    most: 0,
    unknown: new Set<WalletId>(),
    unasked: [] as ShareAnswer[],
  }
  const shares = {
    async prepare(given: readonly { wallet: WalletId }[]) {
      return given.map(
        ({ wallet }) =>
          reports.get(wallet) ?? {
            wallet,
            seq: 1,
            received: 0n,
            returned: 0n,
            spent: 0n,
            balance: 0n,
            leased: 0n,
          },
      )
    },
    async apply(answers: typeof applied) {
      applied.push(...answers)
    },
  } as unknown as ShareStore
  const home: HomeStore = {
    async exchange(_region, requests) {
      asked.push(requests)
      state.most = Math.max(state.most, ++state.running)
      if (waits) await new Promise<void>((resolve) => open.push(resolve))
      state.running--
      if (state.isAway) throw new Error('away')
      return requests
        .filter(({ wallet }) => !state.unknown.has(wallet))
        .map(({ wallet, received, want }) => ({ wallet, granted: received + want, elsewhere: 7n }))
        .concat(state.unasked)
    },
    ping: async () => {},
  }
  const changes: boolean[] = []
  const exchange = new HomeExchange({
    ...{ name: 'eu', region: 'us', shares, home, logger: recordingLogger() },
    onChange: (away) => changes.push(away),
  })
  const letThrough = async () => {
    for (const go of open.splice(0)) go()
    await turns()
  }
  return { exchange, reports, applied, asked, state, changes, letThrough }
}

describe('what a region asks of the home of a wallet', () => {
  const rows: [
    what: string,
    report: Partial<PreparedReport>,
    need: bigint,
    want: bigint,
    asked: [bigint, bigint],
  ][] = [
    ['nothing is there', {}, 30n, 50n, [30n, 50n]],
    ['enough is there', { balance: 30n }, 30n, 0n, [0n, 0n]],
    ['enough is there, and more is wished for', { balance: 30n }, 30n, 50n, [0n, 50n]],
    ['some is there', { balance: 29n }, 30n, 0n, [1n, 1n]],
    ['some of it is leased', { balance: 40n, leased: 15n }, 30n, 2n, [5n, 5n]],
    ['more was spent than there was', { balance: -9n }, 30n, 0n, [30n, 30n]],
    ['nobody waits', { balance: -9n, leased: 3n }, 0n, 12n, [0n, 12n]],
  ]
  for (const [what, report, need, want, expected] of rows)
    it(`is what is lacking, where ${what}`, async () => {
      const { exchange, reports, asked } = exchanging()
      const sums = { wallet: ACME, seq: 4, received: 90n, returned: 3n, spent: 20n }
      reports.set(ACME, { ...sums, balance: 0n, leased: 0n, ...report })
      await exchange.demand(ACME, need, want)
      assert.deepEqual(asked, [[{ ...sums, need: expected[0], want: expected[1] }]])
    })

  it('is asked for together where several wait, of each wallet once', async () => {
    const { exchange, asked, letThrough } = exchanging({ waits: true })
    const first = [exchange.demand(ACME, 1n, 1n), exchange.demand(GLOBEX, 1n, 1n)]
    const more = [
      exchange.demand(ACME, 10n, 20n),
      exchange.demand(GLOBEX, 5n, 5n),
      exchange.demand(ACME, 3n, 4n),
    ]
    await turns()
    assert.deepEqual(
      asked.map((requests) => requests.map(({ wallet }) => wallet)),
      [[ACME], [GLOBEX]],
      'two at once',
    )
    await letThrough()
    assert.equal(asked.length, 3)
    assert.deepEqual(
      asked[2]?.map(({ wallet, need, want }) => [wallet, need, want]),
      [
        [ACME, 13n, 24n],
        [GLOBEX, 5n, 5n],
      ],
    )
    await letThrough()
    const supplied = await Promise.all([...first, ...more])
    assert.deepEqual(
      supplied.map((each) => each?.moved),
      [1n, 1n, 24n, 5n, 24n],
    )
  })

  it('is asked for by two exchanges at once, at most', async () => {
    const { exchange, state, letThrough } = exchanging({ waits: true })
    const demands: Promise<unknown>[] = []
    for (let i = 0; i < 5; i++) {
      demands.push(exchange.demand(ACME, 1n, 1n))
      await turns()
    }
    for (let i = 0; i < 5; i++) await letThrough()
    await Promise.all(demands)
    assert.equal(state.most, 2)
  })

  it('is 500 wallets at a time', async () => {
    const { exchange, asked, applied } = exchanging()
    const orders = Array.from({ length: 1001 }, (_, i) => ({
      ...{ wallet: `account:${i}` as WalletId, need: 0n, want: 1n, give: 0n },
    }))
    const supplied = await exchange.exchange(orders)
    assert.deepEqual(
      asked.map(({ length }) => length),
      [500, 500, 1],
    )
    assert.deepEqual([supplied.size, applied.length], [1001, 1001])
  })
})

describe('what the home has answered', () => {
  it('is what it has granted beyond what was received, and the balance elsewhere', async () => {
    const { exchange, reports, applied } = exchanging()
    const report = { wallet: ACME, seq: 4, received: 90n, returned: 0n, spent: 90n, balance: 0n, leased: 0n }
    reports.set(ACME, report)
    assert.deepEqual(await exchange.demand(ACME, 5n, 5n), { moved: 5n, elsewhere: 7n })
    assert.deepEqual(applied, [{ answer: { wallet: ACME, granted: 95n, elsewhere: 7n }, report }])
  })

  it('is nothing where it grants no more than was received', async () => {
    const { exchange, reports, asked } = exchanging()
    const report = { wallet: ACME, seq: 4, received: 90n, returned: 0n, spent: 0n, balance: 90n, leased: 0n }
    reports.set(ACME, report)
    assert.deepEqual(await exchange.demand(ACME, 90n, 0n), { moved: 0n, elsewhere: 7n })
    assert.equal(asked.length, 1)
  })

  it('is nothing of a wallet that it does not know', async () => {
    const { exchange, state, applied } = exchanging()
    state.unknown.add(ACME)
    const answers = await Promise.all([exchange.demand(ACME, 1n, 1n), exchange.demand(GLOBEX, 1n, 1n)])
    assert.deepEqual([answers[0], answers[1]?.moved, applied.length], [undefined, 1n, 1])
  })

  it('is left alone of a wallet that was not asked for', async () => {
    const { exchange, state, applied } = exchanging()
    state.unasked = [{ wallet: GLOBEX, granted: 5n, elsewhere: 7n }]
    assert.deepEqual(await exchange.demand(ACME, 1n, 1n), { moved: 1n, elsewhere: 7n })
    assert.deepEqual(
      applied.map(({ answer }) => answer.wallet),
      [ACME],
    )
  })

  it('is told to those who wait where there is none, and others are asked for again', async () => {
    const { exchange, state, changes } = exchanging()
    assert.equal(exchange.away, false)
    state.isAway = true
    await assert.rejects(exchange.demand(ACME, 1n, 1n), { name: 'StoreAway' })
    assert.deepEqual([exchange.away, changes], [true, [true]])
    await assert.rejects(exchange.demand(ACME, 1n, 1n))
    state.isAway = false
    assert.equal(await exchange.ask(async () => 'back'), 'back')
    assert.deepEqual([exchange.away, changes], [false, [true, false]])
    assert.equal((await exchange.demand(ACME, 1n, 1n))?.moved, 1n)
  })
})
