import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { LeaseAnswer, LeaseChange } from '../../../lib/ledger/index.ts'
import { LeaseChanges } from '../../../lib/ledger/pool/lease-changes.ts'
import { LedgerHealth } from '../../../lib/ledger/pool/ledger-health.ts'
import type { WalletLease } from '../../../lib/ledger/pool/wallet-lease.ts'
import { recordingLogger } from '../../support/app-server.ts'
import { turns, VirtualClock } from '../support/virtual-clock.ts'

const ANSWER: LeaseAnswer = { moved: 1n, lost: false, open: true, state: undefined }

/** Serves the calls of an account, and notes the wallets that the ledger has reported on. */
class Served {
  readonly told: (readonly unknown[])[] = []

  serve(told: readonly unknown[]): void {
    this.told.push(told)
  }
}

/** A wallet as those who ask see it. */
class Asked {
  readonly name: string
  readonly admissions: Served
  readonly answers: LeaseAnswer[] = []
  /** Whether there is nothing to ask for. */
  isContent = false

  constructor(name: string, admissions = new Served()) {
    this.name = name
    this.admissions = admissions
  }

  nextChange(): LeaseChange | undefined {
    const change = { kind: 'take', need: 1n, want: 1n } as const
    return this.isContent ? undefined : { lease: this.name, wallet: 'account:acme', seq: 1, change }
  }

  answered(answer: LeaseAnswer): void {
    this.answers.push(answer)
  }
}

function changes() {
  const clock = new VirtualClock()
  const logger = recordingLogger()
  const health = new LedgerHealth({ clock, logger, times: { stallMs: 10_000 }, onStoreChange: () => {} })
  const calls: { owner: string; names: string[]; at: number }[] = []
  const world = {
    fails: false,
    /** Changes of these can never be made, nor what is asked for with them. */
    poison: new Set<string>(),
    answersOf: (changes: readonly LeaseChange[]): LeaseAnswer[] => changes.map(() => ANSWER),
    answering: undefined as Promise<void> | undefined,
  }
  const change = async (owner: string, asked: readonly LeaseChange[]) => {
    const names = asked.map(({ lease }) => lease)
    calls.push({ owner, names, at: clock.now() })
    await world.answering
    if (world.fails || names.some((name) => world.poison.has(name))) throw new Error('the ledger is down')
    return world.answersOf(asked)
  }
  const asking = new LeaseChanges({
    ledger: { change },
    owner: 'p',
    clock,
    health,
    times: { admissionMs: 1000 },
  })
  return {
    clock,
    health,
    logger,
    calls,
    world,
    idle: () => asking.idle(),
    ask: (...wallets: Asked[]) => {
      for (const wallet of wallets) asking.ask(wallet as unknown as WalletLease)
    },
    sizes: () => calls.map(({ names }) => names.length),
  }
}

const many = (count: number) => Array.from({ length: count }, (_, i) => new Asked(`wallet-${i}`))

describe('a request to the ledger for changes', () => {
  it('gathers in a turn of the event loop, and until the last one is answered; one at a time', async () => {
    const { ask, calls, world, sizes } = changes()
    let answer = () => {}
    world.answering = new Promise((resolve) => {
      answer = resolve
    })
    const [one, two, three, four] = many(4) as [Asked, Asked, Asked, Asked]
    ask(one, two, one)
    assert.deepEqual(calls, [])
    await turns()
    ask(three)
    ask(four)
    await turns()
    assert.deepEqual(sizes(), [2])
    answer()
    await turns()
    assert.deepEqual(
      calls.map(({ owner, names }) => [owner, names]),
      [
        ['p', ['wallet-0', 'wallet-1']],
        ['p', ['wallet-2', 'wallet-3']],
      ],
    )
    assert.deepEqual(
      [one, two, three, four].map(({ answers }) => answers),
      [[ANSWER], [ANSWER], [ANSWER], [ANSWER]],
    )
  })

  it('contains two hundred changes at most', async () => {
    const { ask, sizes } = changes()
    ask(...many(401))
    await turns()
    assert.deepEqual(sizes(), [200, 200, 1])
  })

  it('is not sent if no wallet has a change', async () => {
    const { ask, calls, idle } = changes()
    const content = new Asked('content')
    content.isContent = true
    ask(content)
    await idle()
    assert.deepEqual([calls, content.answers], [[], []])
  })

  it('is idle after the last change, not before', async () => {
    const { ask, idle, world } = changes()
    await idle()
    let answer = () => {}
    world.answering = new Promise((resolve) => {
      answer = resolve
    })
    ask(new Asked('wallet'))
    let times = 0
    const count = () => void times++
    void idle().then(count)
    void idle().then(count)
    await turns()
    assert.equal(times, 0)
    answer()
    await turns()
    assert.equal(times, 2)
    ask(new Asked('again'))
    await idle()
  })

  it('serves the calls of each account once, with all its wallets that the ledger has reported', async () => {
    const { ask } = changes()
    const [acme, globex] = [new Served(), new Served()]
    const wallets = [new Asked('acme', acme), new Asked('globex', globex), new Asked('key', acme)]
    ask(...wallets)
    await turns()
    assert.deepEqual([acme.told, globex.told], [[[wallets[0], wallets[2]]], [[wallets[1]]]])
  })
})

describe('a change that the ledger has not answered', () => {
  it('is repeated after increasing delays', async () => {
    const { ask, calls, clock, world } = changes()
    world.fails = true
    const wallet = new Asked('wallet')
    ask(wallet)
    await clock.advance(2250)
    assert.deepEqual(
      calls.map(({ at }) => at),
      [0, 50, 150, 350, 750, 1250, 1750, 2250],
    )
    assert.deepEqual([wallet.answers, wallet.admissions.told], [[], []])
    world.fails = false
    await clock.advance(500)
    assert.deepEqual(wallet.answers, [ANSWER])
    world.fails = true
    ask(wallet)
    await clock.advance(150)
    assert.deepEqual(
      calls.slice(-3).map(({ at }) => at),
      [2750, 2800, 2900],
    )
  })

  it('is repeated in ever smaller parts, so that an impossible change soon delays no other', async () => {
    const { ask, calls, clock, world, sizes } = changes()
    world.poison.add('wallet-0')
    const wallets = many(200)
    ask(...wallets)
    await clock.advance(3000)
    assert.deepEqual(sizes().slice(0, 6), [200, 25, 4, 32, 164, 21])
    assert.ok(wallets.slice(1).every(({ answers }) => answers.length === 1))
    assert.deepEqual(wallets[0]?.answers, [])
    assert.deepEqual(calls.at(-1)?.names, ['wallet-0'])
  })

  it('is repeated in larger parts again after an answer', async () => {
    const { ask, clock, world, sizes } = changes()
    world.fails = true
    ask(...many(300))
    await clock.advance(200)
    assert.deepEqual(sizes(), [200, 25, 4])
    world.fails = false
    await clock.advance(2000)
    assert.deepEqual(sizes().slice(3), [1, 8, 64, 200, 27])
  })

  it('fails if the ledger answers fewer changes than requested, and none is applied', async () => {
    const { ask, clock, world, calls } = changes()
    world.answersOf = () => [ANSWER]
    const wallets = many(2)
    ask(...wallets)
    await turns()
    assert.deepEqual(
      wallets.map(({ answers }) => answers),
      [[], []],
    )
    world.answersOf = (asked) => asked.map(() => ANSWER)
    await clock.advance(100)
    assert.deepEqual(
      wallets.map(({ answers }) => answers),
      [[ANSWER], [ANSWER]],
    )
    assert.equal(calls.length, 3)
  })

  it('makes the ledger count as away after the maximum wait of a call, until it answers', async () => {
    const { ask, clock, health, world } = changes()
    let answer = () => {}
    world.answering = new Promise((resolve) => {
      answer = resolve
    })
    ask(new Asked('wallet'))
    await clock.advance(999)
    assert.equal(health.away, false)
    await clock.advance(1)
    assert.equal(health.away, true)
    answer()
    await turns()
    assert.equal(health.away, false)
    await clock.advance(5000)
    assert.deepEqual([health.away, health.outages], [false, 1])
  })

  it('makes the ledger count as failing if it fails, not as late', async () => {
    const { ask, clock, health, world } = changes()
    world.fails = true
    ask(new Asked('wallet'))
    await clock.advance(9999)
    assert.equal(health.away, false)
    await clock.advance(1000)
    assert.equal(health.away, true)
  })
})
