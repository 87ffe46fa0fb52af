import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { budgetWallet } from '../../lib/ledger/budgets/budget.ts'
import {
  accountWallet,
  type LeaseChange,
  MemoryLedger,
  type WalletId,
  WalletsHeldUp,
} from '../../lib/ledger/index.ts'
import { RegionalLedger } from '../../lib/ledger/regions/regional-ledger.ts'
import { charge, give, take } from '../contracts/ledger-money.ts'
import { turns } from './virtual-clock.ts'

const SHARE = accountWallet('far')
const OTHER = accountWallet('further')
const OWN = accountWallet('near')
/** What a wallet has elsewhere, until its home has told. */
const UNKNOWN = 2n ** 61n

type Answer = { readonly moved: bigint; readonly elsewhere: bigint } | undefined | Error

/** The home of two wallets, which answers when a test says so. */
class Home {
  away = false
  readonly demands: [WalletId, need: bigint, want: bigint][] = []
  readonly #waiting: ((answer: Answer) => void)[] = []

  demand(wallet: WalletId, need: bigint, want: bigint): Promise<Exclude<Answer, Error>> {
    this.demands.push([wallet, need, want])
    return new Promise((resolve, reject) => {
      this.#waiting.push((answer) => (answer instanceof Error ? reject(answer) : resolve(answer)))
    })
  }

  /** Answers the oldest demand. */
  async answer(answer: Answer): Promise<void> {
    this.#waiting.shift()?.(answer)
    await turns()
  }
}

/** A region with 10 of two shares of one home, and 10 of a wallet of its own. */
async function region(t: TestContext) {
  const memory = new MemoryLedger()
  for (const account of ['far', 'further', 'near']) await memory.deposit(account, 10n, 'opening', 1)
  const home = new Home()
  const lookedUp: WalletId[][] = []
  const shares = {
    async homesOf(wallets: readonly WalletId[]) {
      lookedUp.push([...wallets])
      return new Map(wallets.filter((wallet) => wallet !== OWN).map((wallet) => [wallet, 'eu']))
    },
  }
  let now = 100_000
  t.mock.method(performance, 'now', () => now)
  const ledger = new RegionalLedger({ ledger: memory, shares, homes: new Map([['eu', home]]) })
  let lease = 0
  const taking = (wallet: WalletId, need: bigint, want?: bigint) =>
    take(`lease-${++lease}`, wallet, need, { want })
  const change = (...changes: LeaseChange[]) => ledger.change('p', changes)
  return {
    ...{ memory, home, ledger, lookedUp, taking, change },
    /** The wallets that a change waits for. */
    async heldUp(...changes: LeaseChange[]): Promise<WalletId[]> {
      const error = await change(...changes).catch((error: unknown) => error)
      assert.ok(error instanceof WalletsHeldUp && error.own, `${error}`)
      return [...error.wallets]
    },
    /** What a call is told of a share: what moved, and what is there in all, less what is in this region. */
    async told(wallet: WalletId, need: bigint) {
      const [answer] = await change(taking(wallet, need))
      const { funds = 0n, leased = 0n, away } = answer?.state ?? {}
      const [here] = await memory.wallets([wallet])
      assert.equal(funds - leased, (here?.funds ?? 0n) - (here?.leased ?? 0n), 'no more can be had')
      return { moved: answer?.moved, elsewhere: funds - (here?.funds ?? 0n), ...(away && { away }) }
    },
    pass(ms: number): void {
      now += ms
    },
  }
}

describe('the ledger of a region', () => {
  it('asks the home of a share for what a call lacks, ten times what is wanted, while only its own calls wait', async (t) => {
    const { home, heldUp, taking, change, told } = await region(t)
    assert.deepEqual(await heldUp(taking(SHARE, 11n, 12n), taking(OWN, 11n), taking(OTHER, 10n)), [SHARE])
    assert.deepEqual(home.demands, [[SHARE, 11n, 120n]])
    assert.deepEqual(await heldUp(taking(SHARE, 1n), taking(OWN, 1n)), [SHARE], 'while home is asked')
    const [own] = await change(taking(OWN, 11n))
    assert.deepEqual([own?.moved, own?.state?.funds], [0n, 10n], 'of its own wallet')
    assert.equal(home.demands.length, 1)
    await home.answer({ moved: 0n, elsewhere: 960n })
    assert.deepEqual(await told(SHARE, 10n), { moved: 10n, elsewhere: 960n })
  })

  it('asks two homes for two wallets at once, and waits for both', async (t) => {
    const { home, heldUp, taking, change } = await region(t)
    assert.deepEqual(await heldUp(taking(SHARE, 11n), taking(OTHER, 12n)), [SHARE, OTHER])
    await home.answer({ moved: 0n, elsewhere: 0n })
    assert.deepEqual(await heldUp(taking(SHARE, 1n), taking(OTHER, 1n)), [OTHER])
    await home.answer({ moved: 0n, elsewhere: 0n })
    assert.deepEqual(
      (await change(taking(SHARE, 1n), taking(OTHER, 1n))).map(({ moved }) => moved),
      [1n, 1n],
    )
  })

  const nothingLacks: [string, (first: LeaseChange) => LeaseChange][] = [
    ['gives something back', ({ lease }) => give(lease, SHARE, 10n)],
    ['needs nothing', () => take('idle', SHARE, 0n, { want: 50n })],
    ['needs what is there', () => take('fitting', SHARE, 5n)],
  ]
  for (const [name, changeOf] of nothingLacks)
    it(`asks nobody for a change that ${name}`, async (t) => {
      const { home, taking, change } = await region(t)
      const first = taking(SHARE, 5n)
      await change(first)
      await change(changeOf(first))
      assert.deepEqual(home.demands, [])
    })

  it('asks nobody for a change that needs nothing, though more was spent of the share than is there', async (t) => {
    const { memory, home, change } = await region(t)
    memory.settle([charge('far', 15n)])
    await change(take('idle', SHARE, 0n, { want: 50n }))
    assert.deepEqual(home.demands, [])
  })

  it('asks nobody for a lease that was swept, nor for a share without a limit', async (t) => {
    const { memory, home, taking, change } = await region(t)
    const first = taking(SHARE, 5n)
    await change(first)
    for (let beats = 0; beats < 2; beats++) await memory.sweep(first.lease, beats)
    const [lost] = await change({ ...take(first.lease, SHARE, 50n), seq: 2 })
    assert.equal(lost?.lost, true)
    await memory.setLimit(SHARE, { limited: false })
    const [unlimited] = await change(taking(SHARE, 50n))
    assert.deepEqual([unlimited?.state?.limited, unlimited?.state?.funds], [false, 10n])
    assert.deepEqual(home.demands, [])
  })

  const nothing: [string, Answer, elsewhere: bigint][] = [
    ['had nothing', { moved: 0n, elsewhere: 7n }, 7n],
    ['does not know the wallet', undefined, UNKNOWN],
    ['fails', new Error('row is broken'), UNKNOWN],
  ]
  for (const [name, answer, elsewhere] of nothing)
    it(`asks a home that ${name} again after half a second`, async (t) => {
      const { home, heldUp, taking, told, pass } = await region(t)
      await heldUp(taking(SHARE, 11n))
      await home.answer(answer)
      pass(499)
      assert.deepEqual(await told(SHARE, 11n), { moved: 0n, elsewhere })
      pass(1)
      assert.deepEqual(await heldUp(taking(SHARE, 11n)), [SHARE])
      assert.equal(home.demands.length, 2)
    })

  it('asks a home that gave something again at once', async (t) => {
    const { home, heldUp, taking } = await region(t)
    await heldUp(taking(SHARE, 11n))
    await home.answer({ moved: 1n, elsewhere: 0n })
    assert.deepEqual(await heldUp(taking(SHARE, 11n)), [SHARE])
    assert.equal(home.demands.length, 2)
  })

  it('tells of a home that is away, with what it told last, for five seconds', async (t) => {
    const { home, heldUp, taking, told, pass } = await region(t)
    assert.deepEqual(await told(SHARE, 1n), { moved: 1n, elsewhere: UNKNOWN })
    await heldUp(taking(SHARE, 11n))
    await home.answer({ moved: 1n, elsewhere: 5n })
    home.away = true
    await heldUp(taking(SHARE, 11n))
    await home.answer(new Error('away'))
    assert.deepEqual(await told(SHARE, 11n), { moved: 0n, elsewhere: 5n, away: true })
    pass(4999)
    assert.deepEqual(await told(SHARE, 1n), { moved: 1n, elsewhere: 5n, away: true })
    pass(1)
    assert.deepEqual(await told(SHARE, 1n), { moved: 1n, elsewhere: UNKNOWN })
  })

  it('refuses at once where the home is no region that it knows', async (t) => {
    const { memory } = await region(t)
    const shares = { homesOf: async () => new Map([[SHARE, 'gone']]) }
    const ledger = new RegionalLedger({ ledger: memory, shares, homes: new Map() })
    const [answer] = await ledger.change('p', [take('l', SHARE, 11n)])
    assert.deepEqual([answer?.moved, answer?.state?.funds], [0n, 10n + UNKNOWN])
  })

  it('looks up the home of a wallet once, and again only where there was no wallet', async (t) => {
    const { memory, lookedUp, taking, change } = await region(t)
    const late = accountWallet('late')
    await change(taking(SHARE, 1n), taking(OWN, 1n), taking(late, 1n))
    await change(taking(SHARE, 1n), taking(OWN, 1n), taking(late, 1n))
    assert.deepEqual(lookedUp, [[SHARE, OWN]])
    await memory.deposit('late', 10n, 'opening', 1)
    await change(taking(late, 1n))
    assert.deepEqual(lookedUp, [[SHARE, OWN], [late]])
  })

  it('knows what a share is while it looks up the homes of others, however many there were', async (t) => {
    const { memory, home, taking, change } = await region(t)
    const others = Array.from({ length: 60_000 }, (_, i) => `other-${i}`)
    for (const account of others) await memory.deposit(account, 10n, 'opening', 1)
    await change(taking(SHARE, 1n))
    for (let i = 0; i < others.length; i += 1000) {
      const taken = others.slice(i, i + 1000).map((account) => taking(accountWallet(account), 1n))
      const asked = await change(taking(SHARE, 11n), ...taken).then(
        () => false,
        (error: unknown) => error instanceof WalletsHeldUp && error.wallets.has(SHARE),
      )
      assert.ok(asked, `refused behind ${i} others, though its home has more`)
      await home.answer({ moved: 1n, elsewhere: 5n })
    }
  })

  it('tells which shares were used since the last time', async (t) => {
    const { ledger, taking, change } = await region(t)
    await change(taking(SHARE, 1n), taking(OWN, 1n))
    assert.deepEqual(ledger.takeUsed(), [SHARE])
    assert.deepEqual(ledger.takeUsed(), [])
    await change(taking(SHARE, 1n), taking(SHARE, 1n), taking(OTHER, 1n))
    assert.deepEqual(ledger.takeUsed(), [SHARE, OTHER])
  })

  it('gets money for what waits for no lease, and never rejects', async (t) => {
    const { memory, home, ledger } = await region(t)
    const budget = {
      budget: 'b',
      scope: { account: 'near', key: null, user: null, tag: null },
      refused: 'insufficient_balance',
    } as const
    const budgets = [{ ...budget, wallet: budgetWallet('b', 7), endsAt: null }]
    const supplied = ledger.supply({ account: 'near', key: 'k', budgets }, 30n)
    await turns()
    assert.deepEqual(home.demands, [
      ['budget:b:7', 30n, 30n],
      ['key:k', 30n, 30n],
    ])
    await home.answer({ moved: 30n, elsewhere: 0n })
    await home.answer(new Error('away'))
    await supplied
    const shares = { homesOf: () => Promise.reject(new Error('its own database is away')) }
    await new RegionalLedger({ ledger: memory, shares, homes: new Map([['eu', home]]) }).supply(
      { account: 'far', key: null },
      5n,
    )
    assert.equal(home.demands.length, 2)
  })
})
