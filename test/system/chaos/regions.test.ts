import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseAmount } from '../../../lib/core/catalog/index.ts'
import { accountWallet } from '../../../lib/ledger/index.ts'
import { percentile } from '../../bench/statistics.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { WITHOUT_POSTGRES } from '../../support/postgres-server.ts'
import { untilAsync } from '../../support/until.ts'
import { shutDown } from './paid-gateways.ts'
import {
  ACCOUNTS,
  ADMIN_TOKEN,
  asked,
  COST,
  REGIONS,
  type RegionalCall,
  regionWorld,
  startTraffic,
} from './region-world.ts'

const CUT_MS = 8000
const BESIDE_MS = 4000
/** What is spent in a region while the other is cut off, twice. */
const LASTING = 270n * COST
const isServed = ({ status }: RegionalCall): boolean => status === 200

describe('three regions, of which one is cut off, and a process dies', { skip: WITHOUT_POSTGRES }, () => {
  const cleanUp = cleaningUp()

  it('serve the accounts of each other, and no money is lost, made or spent twice', {
    timeout: 240_000,
  }, async (t) => {
    const world = await regionWorld(cleanUp)
    const [eu, us, doomed, asia] = await Promise.all((['eu', 'us', 'us', 'asia'] as const).map(world.start))
    assert.ok(eu && us && doomed && asia)
    const traffic = startTraffic([
      { region: 'eu', gateway: eu },
      { region: 'us', gateway: us },
      { region: 'us', gateway: doomed },
      { region: 'asia', gateway: asia },
    ])
    const { seen } = traffic
    await untilAsync(
      async () =>
        REGIONS.every((region) =>
          ACCOUNTS.every(({ id }) =>
            seen.some((call) => call.region === region && call.account === id && isServed(call)),
          ),
        ),
      'every account is served in every region',
      60_000,
    )
    const knownAt = performance.now()
    await sleep(BESIDE_MS)
    // A region learns what is spent there.
    await untilAsync(
      async () => {
        const books = await Promise.all((['us', 'asia'] as const).map(world.books))
        const shares = books.map(({ shares }) => shares.get(accountWallet('rich-eu')))
        return shares.every((share) => share && share.received - share.told > LASTING)
      },
      'they have shares that last',
      60_000,
    )

    world.others('eu', 'cut')
    const cutAt = performance.now()
    await untilAsync(async () => {
      const ready = await asked<{ status: string; regions_away?: string[] }>(us, '/readyz')
      return ready.status === 'ready' && ready.regions_away?.join() === 'eu'
    }, 'the region is ready, and says that another is away')
    const { data } = await asked<{ data: { id: string; reachable: boolean }[] }>(us, '/admin/regions')
    assert.deepEqual(
      data.map(({ id, reachable }) => [id, reachable]),
      [
        ['asia', true],
        ['eu', false],
      ],
    )
    const refusal = await fetch(`${us.url}/admin/accounts/rich-eu`, {
      method: 'PATCH',
      headers: { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' },
      body: '{"name":"x"}',
    })
    assert.equal(refusal.status, 409)
    assert.match(await refusal.text(), /is the region .*eu.*Make this change there/)
    doomed.kill('SIGKILL')
    await sleep(Math.max(0, CUT_MS - (performance.now() - cutAt)))
    const mendedAt = performance.now()
    world.others('eu', 'mend')
    await untilAsync(
      async () => !('regions_away' in (await asked<object>(us, '/readyz'))),
      'the region says that the other is back',
    )
    await sleep(BESIDE_MS)
    await traffic.stop()
    await shutDown([eu, us, asia])

    const meanwhile = seen.filter(({ sentAt, ms }) => sentAt > cutAt && sentAt + ms < mendedAt)
    const foreign = meanwhile.filter(({ account, region }) => account === 'rich-eu' && region !== 'eu')
    const lost = foreign.filter((call) => !isServed(call) && call.status !== undefined)
    assert.ok(foreign.filter(isServed).length > 10, 'a region serves on the share that it has')
    // On a busy machine its own database may be slow too.
    assert.ok(lost.length * 10 <= foreign.length, `and refuses few whom that covers: ${lost.length}`)
    const later = seen.filter(({ sentAt }) => sentAt > knownAt)
    const refused = new Set(later.flatMap(({ code }) => (code === undefined ? [] : [code])))
    const poor = ['insufficient_balance', 'quota_lease_exhausted', 'billing_unavailable']
    assert.deepEqual(
      [...refused].filter((code) => !poor.includes(code)),
      [],
    )

    const books = new Map(
      await Promise.all(REGIONS.map(async (region) => [region, await world.books(region)] as const)),
    )
    for (const [region, { violations }] of books) assert.deepEqual(violations, [], region)
    // Whom the process that died did not answer may be charged, or not.
    const unseen = seen.filter(({ status }) => status === undefined).length
    const charges = [...books.values()].flatMap(({ charged }) => [...charged.values()])
    const calls = Number(charges.reduce((sum, amount) => sum + amount, 0n) / COST)
    const served = seen.filter(isServed)
    assert.ok(
      calls >= served.length && calls <= served.length + unseen,
      `${calls} charged, ${served.length} served`,
    )
    const bill = world.served()
    assert.ok(served.every(({ text }) => bill.get(text)?.length === 1))
    for (const { id, home, balance } of ACCOUNTS) {
      const everywhere = REGIONS.reduce((sum, region) => sum + (books.get(region)?.charged.get(id) ?? 0n), 0n)
      assert.equal(books.get(home)?.spent.get(id), everywhere, `${id}: home knows all that was spent`)
      assert.ok(everywhere <= parseAmount(balance), `${id} has spent ${everywhere} of ${balance}`)
      for (const region of REGIONS.filter((each) => each !== home)) {
        const lent = books.get(home)?.lent.get(`account:${id} ${region}`)
        const share = books.get(region)?.shares.get(`account:${id}`)
        assert.deepEqual(
          [lent?.granted, lent?.returned],
          [share?.received, share?.returned],
          `${id} in ${region}`,
        )
      }
    }
    assert.deepEqual(
      us.logged.filter(({ store }) => store === 'region eu').map(({ msg }) => msg),
      ['store is away', 'store is back'],
    )
    const median = (account: string) => {
      const own = served.filter((call) => call.region === 'us' && call.account === account)
      return percentile(
        own.map(({ ms }) => ms),
        50,
      )
    }
    const [near, far] = [median('rich-us'), median('rich-asia')]
    t.diagnostic(
      `p50 in us: ${Math.round(near)} ms for its own account, ${Math.round(far)} ms for one of asia`,
    )
    t.diagnostic(
      `${served.length} served, ${seen.length - served.length} refused, ${unseen} unseen, ${foreign.length} of a region that was away`,
    )
  })
})
