import assert from 'node:assert/strict'
import { before, describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { RegionRounds } from '../../../lib/ledger/regions/region-rounds.ts'
import type { HomeStore } from '../../../lib/ledger/regions/region-store.ts'
import { SqlLedger } from '../../../lib/stores/sql/index.ts'
import { charge, take } from '../../contracts/ledger-money.ts'
import { recordingLogger } from '../../support/app-server.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { WITHOUT_POSTGRES } from '../../support/postgres-server.ts'
import { mirrored, openRegions, type Regions } from './region-world.ts'

let regions: Regions
const cleanUp = cleaningUp()
if (!WITHOUT_POSTGRES)
  before(async () => {
    regions = await openRegions(cleanUp)
  })

/** A region with a share of 100 of an account, and what looks after it in a process. */
async function lookedAfter(t: TestContext) {
  const world = await mirrored(regions)
  const { us, atHome, ACCOUNT, shares, mirrors, process } = world
  await process().demand(ACCOUNT, 100n, 100n)
  const rounds = (home: HomeStore = atHome, maxAwayMs = 60_000) => {
    const logger = recordingLogger()
    const options = { home, shares: shares.us, mirrors: mirrors.us, logger, maxAwayMs }
    const opened = new RegionRounds({ exchange: process(home), ...options })
    t.after(() => opened.close())
    return Object.assign(opened, { logged: () => logger.lines.map(({ message }) => message) })
  }
  return { ...world, ledger: new SqlLedger(us), rounds }
}

/** A home that does not answer while it is away. */
function leaving(home: HomeStore) {
  const state = { away: false, pings: 0, exchanges: 0 }
  const answer = <T>(question: () => Promise<T>) =>
    state.away ? Promise.reject(new Error('away')) : question()
  const store: HomeStore = {
    ping: () => answer(() => home.ping().finally(() => state.pings++)),
    exchange: (...asked) => answer(() => home.exchange(...asked).finally(() => state.exchanges++)),
  }
  return { state, store }
}

describe('the rounds of a region', { skip: WITHOUT_POSTGRES }, () => {
  it('report what was spent, and ask for what is needed', async (t) => {
    const { account, ACCOUNT, ledger, rounds, figures, assertSound } = await lookedAfter(t)
    await ledger.settle([charge(account, 30n)])
    await ledger.change('p', [take('l', ACCOUNT, 60n)])
    await rounds().now()
    assert.deepEqual(await figures(), { home: [1000n, 30n, 120n], region: [150n, 30n, 60n] })
    await assertSound()
  })

  it('are those of one process, until it closes, which tells what was spent', async (t) => {
    const { account, ledger, atHome, rounds, figures } = await lookedAfter(t)
    const other = leaving(atHome)
    const [first, second] = [rounds(), rounds(other.store)]
    await first.now()
    await ledger.settle([charge(account, 30n)])
    await second.now()
    assert.deepEqual([other.state.pings > 0, other.state.exchanges], [true, 0])
    assert.equal((await figures()).home[1], 0n)
    await first.close()
    assert.equal((await figures()).home[1], 30n)
    await ledger.settle([charge(account, 5n)])
    await second.now()
    assert.equal((await figures()).home[1], 35n)
  })

  it('are those of the next process, too, if the last one died with a clock that was ahead', async (t) => {
    const { account, ledger, shares, rounds, figures } = await lookedAfter(t)
    const later = Date.now() + 3_600_000
    await shares.us.claim('eu', 'the process that died', later, later + 10_000)
    await ledger.settle([charge(account, 30n)])
    await rounds().now()
    assert.equal((await figures()).home[1], 30n)
  })

  it('give back what nobody uses, which rests a minute after its last use, until the next', async (t) => {
    const { ACCOUNT, KEY, shares, rounds, figures } = await lookedAfter(t)
    const isInUse = async () => (await shares.us.inUse('eu')).some(({ wallet }) => wallet === ACCOUNT)
    const opened = rounds()
    await opened.now()
    const [now, wall] = [performance.now.bind(performance), Date.now()]
    const time = t.mock.method(performance, 'now', () => now() + 16_000)
    await opened.now()
    assert.deepEqual((await figures()).home, [1000n, 0n, 0n])
    await shares.us.touch([ACCOUNT, KEY, 'account:of nobody'], wall - 59_000)
    await opened.now()
    assert.equal(await isInUse(), true, 'it was used when it was opened')
    const calendar = t.mock.method(Date, 'now', () => wall + 70_000)
    await opened.now()
    assert.equal(await isInUse(), false)
    await shares.us.touch([ACCOUNT], wall + 70_000)
    assert.equal(await isInUse(), true)
    await opened.now()
    assert.equal(await isInUse(), true)
    time.mock.restore()
    calendar.mock.restore()
    assert.deepEqual(opened.logged(), [])
  })

  it('report what is spent of a share that rests: its call took long, or its process died', async (t) => {
    const { account, ACCOUNT, ledger, shares, rounds, figures, assertSound } = await lookedAfter(t)
    await shares.us.rest([ACCOUNT], Date.now() + 1)
    assert.deepEqual(
      await shares.us.inUse('eu').then((all) => all.filter(({ wallet }) => wallet === ACCOUNT)),
      [],
    )
    await ledger.settle([charge(account, 30n)])
    const opened = rounds()
    await opened.now()
    await opened.now()
    assert.equal((await figures()).home[1], 30n)
    await assertSound()
  })

  it('of a home that is away leave the copies of keys until that was too long', async (t) => {
    const { us, key, atHome, rounds } = await lookedAfter(t)
    const { state, store } = leaving(atHome)
    const hasKey = async () =>
      (await us.selectFrom('keys').select('id').where('id', '=', key).execute()).length === 1
    const opened = rounds(store)
    await opened.now()
    state.away = true
    await opened.now()
    assert.equal(await hasKey(), true)
    await opened.close()
    // Longer than no time has passed.
    await sleep(2)
    await rounds(store, 0).now()
    assert.equal(await hasKey(), false)
    assert.deepEqual(opened.logged(), [])
  })

  it('that fail are told once for each cause', async (t) => {
    const { shares, rounds } = await lookedAfter(t)
    const opened = rounds()
    const claim = t.mock.method(shares.us, 'claim')
    const told: number[] = []
    const causes = [
      'the database is away',
      'the database is away',
      'a disk is full',
      undefined,
      'a disk is full',
    ]
    for (const cause of causes) {
      if (cause !== undefined) claim.mock.mockImplementationOnce(() => Promise.reject(new Error(cause)))
      await opened.now()
      told.push(opened.logged().length)
    }
    assert.deepEqual(told, [1, 1, 2, 2, 3])
    assert.equal(opened.logged()[0], 'a round of a region failed')
  })
})
