import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import fc from 'fast-check'
import { budgetWallet } from '../../../lib/ledger/budgets/budget.ts'
import { periodAt } from '../../../lib/ledger/budgets/budget-period.ts'
import type { HomeStore } from '../../../lib/ledger/regions/region-store.ts'
import { SqlBudgetStore, SqlLedger } from '../../../lib/stores/sql/index.ts'
import { originOf } from '../../contracts/account-money.ts'
import { charge, fresh, take } from '../../contracts/ledger-money.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { WITHOUT_POSTGRES } from '../../support/postgres-server.ts'
import { mirrored, openRegions, type Regions } from './region-world.ts'

let regions: Regions
const cleanUp = cleaningUp()
if (!WITHOUT_POSTGRES)
  before(async () => {
    regions = await openRegions(cleanUp)
  })

const PLACES = ['home', 'us', 'asia'] as const
type Place = (typeof PLACES)[number]
const ask = <T>(question: () => Promise<T>) => question()

/** An account of the home with a hard daily budget, which two other regions serve too. */
async function budgeted(amount: bigint) {
  const world = await mirrored(regions, { balance: '1' })
  const { home, us, asia, atHome, account, key, mirrors } = world
  await mirrors.asia.copy('eu', await atHome.keysById([key]))
  const id = fresh('budget')
  const store = new SqlBudgetStore(home)
  const scope = { account, key: null, user: null, tag: null }
  const terms = { amount, hard: true, soft: [] }
  await store.create({ id, scope, period: 'day', timezone: 'UTC', createdAt: 1, ...terms }, originOf())
  for (const each of [mirrors.us, mirrors.asia]) await each.refresh('eu', ask)
  const ledgers = { home: new SqlLedger(home), us: new SqlLedger(us), asia: new SqlLedger(asia) }
  const { start, end } = periodAt('day', 'UTC', Date.now())
  let wallet = budgetWallet(id, start)
  let away: ReadonlySet<Place> = new Set()
  let isLost = false
  /** The home as a region reaches it. */
  const reached = (place: Place): HomeStore => ({
    ping: () => atHome.ping(),
    async exchange(...asked) {
      if (away.has(place)) throw new Error('away')
      const answer = await atHome.exchange(...asked)
      if (isLost) throw new Error('the answer is lost')
      return answer
    },
  })
  const exchangeOf = (place: 'us' | 'asia') => world.process(reached(place), place)
  const stated = async (place: Place) => {
    const [found] = await ledgers[place].wallets([wallet])
    return { spent: found?.spent ?? 0n, leased: found?.leased ?? 0n, funds: found?.funds ?? 0n }
  }
  /** Takes a lease as a process does for a call: out of what the region has, or of what home gives it for that. */
  const leased = async (place: Place, cost: bigint): Promise<string | undefined> => {
    const ledger = ledgers[place]
    const lease = fresh('lease')
    const [first] = await ledger.change('p', [take(lease, wallet, cost)])
    if (first?.moved) return lease
    if (place === 'home') return undefined
    // As the ledger of a region does when it first meets the wallet of a budget.
    await world.shares[place].homesOf([wallet])
    await exchangeOf(place)
      .demand(wallet, cost, cost * 3n)
      .catch(() => {})
    const [second] = await ledger.change('p', [take(lease, wallet, cost)])
    return second?.moved ? lease : undefined
  }
  const report = (place: 'us' | 'asia', back = 0n) =>
    exchangeOf(place)
      .exchange([{ wallet, need: 0n, want: 0n, give: back }])
      .catch(() => {})
  return {
    ...world,
    /** Returns whether the call was served. */
    async spend(place: Place, cost: bigint): Promise<boolean> {
      const lease = await leased(place, cost)
      if (lease === undefined) return false
      const draws = [{ lease, wallet, amount: cost }]
      await ledgers[place].settle([charge(account, cost, { budgets: [wallet], draws })])
      return true
    },
    /** A process takes a lease and dies; the others find that after a while. */
    async die(place: Place, cost: bigint): Promise<() => Promise<void>> {
      const lease = await leased(place, cost)
      const beats = (await ledgers[place].leases()).find((each) => each.id === lease)?.beats ?? 0
      return async () => {
        if (lease !== undefined) await ledgers[place].sweep(lease, beats)
      }
    },
    report,
    lose: async (place: 'us' | 'asia', back: bigint) => {
      isLost = true
      await report(place, back)
      isLost = false
    },
    cut: (places: readonly Place[]) => {
      away = new Set(places)
    },
    patch: (next: bigint) =>
      store.change(id, (was) => ({ ...was, amount: next }), { ...originOf(), at: Date.now() }),
    /** What was spent everywhere, and what home knows of. */
    async figures() {
      const [own, ...others] = [await stated('home'), await stated('us'), await stated('asia')]
      const charged = await Promise.all(
        [home, us, asia].map(async (db) => {
          const rows = db.selectFrom('charges').select(({ fn }) => fn.sum<bigint>('amount').as('sum'))
          const found = await rows
            .where('account', '=', account)
            .where('budgets', 'like', `%${wallet}%`)
            .execute()
          return BigInt(found[0]?.sum ?? 0n)
        }),
      )
      return { home: own, others, inAll: charged.reduce((sum, each) => sum + each, 0n) }
    },
    /** The next period begins. */
    nextPeriod: () => {
      wallet = budgetWallet(id, end)
    },
    /** All come to know all, and hold nothing. */
    async settle() {
      away = new Set()
      for (const place of ['us', 'asia'] as const) {
        await report(place, 10_000n)
        await report(place)
      }
    },
  }
}
type World = Awaited<ReturnType<typeof budgeted>>

const place = fc.constantFrom(...PLACES)
const elsewhere = fc.constantFrom('us', 'asia')
const amount = fc.bigInt(1n, 60n)
const STEPS = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('spend' as const), place, amount }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('die' as const), place, amount }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('report' as const), place: elsewhere, amount }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('lose' as const), place: elsewhere, amount }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('cut' as const), places: fc.subarray(['us', 'asia']) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('patch' as const), to: fc.bigInt(1n, 500n) }) },
)
type Step = typeof STEPS extends fc.Arbitrary<infer Each> ? Each : never

/** Carries out steps; returns the most that may have been spent, and how to end what has died. */
async function run(world: World, steps: readonly Step[], amountThen: bigint) {
  const ends: (() => Promise<void>)[] = []
  let most = amountThen
  let inForce = amountThen
  for (const step of steps) {
    if (step.kind === 'spend') await world.spend(step.place as Place, step.amount)
    else if (step.kind === 'die') ends.push(await world.die(step.place as Place, step.amount))
    else if (step.kind === 'report') await world.report(step.place as 'us', step.amount)
    else if (step.kind === 'lose') await world.lose(step.place as 'us', step.amount)
    else if (step.kind === 'cut') world.cut(step.places as Place[])
    else {
      await world.patch(step.to)
      inForce = step.to
      // What was given away before may be spent.
      const { spent, leased } = (await world.figures()).home
      most = spent + leased
      if (step.to > most) most = step.to
    }
    const { inAll } = await world.figures()
    assert.ok(inAll <= most, `${inAll} of at most ${most}`)
  }
  return { inForce, ends }
}

describe('a hard budget over regions', { skip: WITHOUT_POSTGRES }, () => {
  it('is exact, whatever is spent, cut off, lost, killed and changed meanwhile, and hurts no other', async () => {
    const beside = await budgeted(1_000_000n)
    let expected = 0n
    const steps = fc.array(STEPS, { minLength: 4, maxLength: 14 })
    const first = fc.bigInt(20n, 400n)
    await fc.assert(
      fc.asyncProperty(first, steps, steps, async (given, today, tomorrow) => {
        const world = await budgeted(given)
        let { inForce, ends } = await run(world, today, given)
        for (const period of [today, tomorrow]) {
          for (const end of ends) await end()
          await world.settle()
          const { home, others, inAll } = await world.figures()
          assert.equal(home.spent, inAll, 'home knows all that was spent')
          assert.deepEqual(
            [home.leased, ...others.map(({ funds, spent, leased }) => funds - spent - leased)].map(
              (each) => each <= 0n,
            ),
            [true, true, true],
            'nobody holds anything',
          )
          const left = inForce - inAll
          if (left > 0n) assert.equal(await world.spend('home', left), true, 'what is left can be spent')
          for (const each of PLACES) assert.equal(await world.spend(each, 1n), false, 'and nothing beyond')
          if (period === tomorrow) break
          world.nextPeriod()
          ;({ inForce, ends } = await run(world, tomorrow, inForce))
        }
        for (const each of PLACES) assert.equal(await beside.spend(each, 3n), true, 'another account')
        expected += 9n
        await world.assertSound()
      }),
      { numRuns: 6 },
    )
    await beside.settle()
    const { home, inAll } = await beside.figures()
    assert.deepEqual([home.spent, inAll], [expected, expected])
  })
})
