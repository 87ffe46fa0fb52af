import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { describe, it } from 'node:test'
import { openLimitStores } from '../../../examples/gateway/limit-stores.ts'
import { type OpenGateway, openGateway } from '../../../examples/gateway/open-gateway.ts'
import { parseAmount } from '../../../lib/core/catalog/index.ts'
import { loadConfig } from '../../../lib/core/config/index.ts'
import { accountWallet } from '../../../lib/ledger/index.ts'
import { openDatabase } from '../../../lib/stores/sql/index.ts'
import { postgresUrl } from '../../stores/sql/postgres-database.ts'
import { recordingLogger } from '../../support/app-server.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { farServer } from '../../support/far-server.ts'
import { WITHOUT_POSTGRES } from '../../support/postgres-server.ts'
import { chatAnswer, startUpstream } from '../../support/scripted-upstream.ts'
import { untilAsync } from '../../support/until.ts'

const REGIONS = ['eu', 'us', 'asia'] as const
type Region = (typeof REGIONS)[number]
const BALANCE = '10'
const COST = parseAmount('0.001')

/** What becomes of the config, one after the other; the first home is `eu`. */
interface Step {
  readonly home: Region
  /** The regions that take it over, in this order. */
  readonly regions: readonly Region[]
  /** By a start of the gateway; else by a reload. */
  readonly byStart?: boolean
  /** A region that no other one can reach meanwhile. */
  readonly cut?: Region
  /** The regions that serve a call before, so that they have a copy of the account. */
  readonly called?: readonly Region[]
}

const CASES: Readonly<Record<string, readonly Step[]>> = {
  'by a reload everywhere': [{ home: 'us', regions: ['eu', 'us', 'asia'] }],
  'by a reload, first in the new home': [{ home: 'us', regions: ['us', 'asia', 'eu'] }],
  'by a restart': [{ home: 'us', regions: ['us', 'eu', 'asia'], byStart: true }],
  'to a region that has a copy': [
    { home: 'us', regions: ['us', 'eu'], called: ['us'] },
    { home: 'us', regions: ['us', 'eu'], byStart: true },
  ],
  'while its region is away': [{ home: 'asia', regions: ['asia', 'us'], cut: 'eu', byStart: true }],
  'while its region is away, by a reload': [{ home: 'asia', regions: ['asia', 'us'], cut: 'eu' }],
  'on and back': [
    { home: 'us', regions: ['us', 'eu'] },
    { home: 'asia', regions: ['asia', 'us', 'eu'], cut: 'us' },
    { home: 'eu', regions: ['eu', 'asia', 'us'], byStart: true },
  ],
}

async function inEach<T>(make: (region: Region) => Promise<T>): Promise<Readonly<Record<Region, T>>> {
  const made = REGIONS.map(async (region) => [region, await make(region)] as const)
  return Object.fromEntries(await Promise.all(made)) as Record<Region, T>
}

for (const authority of ['database', 'config'] as const)
  describe(`an account whose home the config moves, under the authority of the ${authority}`, {
    skip: WITHOUT_POSTGRES,
  }, () => {
    const cleanUp = cleaningUp()

    for (const [name, steps] of Object.entries(CASES))
      it(`stays with its balance in one region, and is served in all: ${name}`, async () => {
        const world = await worldOf(authority)
        for (const region of REGIONS) await world.start(region, 'eu')
        for (const { home, regions, byStart = false, cut, called = [] } of steps) {
          for (const region of called) assert.equal(await world.call(region), 200)
          if (cut) world.others(cut, 'cut')
          for (const region of regions)
            await (byStart ? world.start(region, home) : world.reload(region, home))
          assert.deepEqual(await world.opened(), { eu: parseAmount(BALANCE) })
          if (cut) world.others(cut, 'mend')
        }
        for (const region of REGIONS)
          await untilAsync(async () => (await world.call(region)) === 200, `${region} serves the account`)
        assert.deepEqual(await world.opened(), { eu: parseAmount(BALANCE) })
        await world.close()
        assert.equal(await world.spentAtHome(), BigInt(world.served()) * COST)
      })

    async function worldOf(authority: 'database' | 'config') {
      const upstream = await startUpstream((res) => chatAnswer(res))
      cleanUp.after(() => upstream.close())
      const urls = await inEach(postgresUrl)
      const dbs = await inEach((region) => openDatabase(urls[region]))
      cleanUp.after(() => Promise.all(Object.values(dbs).map((db) => db.destroy())))
      const far = await inEach((to) => farServer(Number(new URL(urls[to]).port), 0))
      cleanUp.after(() => Promise.all(Object.values(far).map((proxy) => proxy.close())))
      const farUrl = (to: Region): string => {
        const url = new URL(urls[to])
        url.port = String(far[to].port)
        return url.href
      }
      const configOf = (region: Region, home: Region) =>
        loadConfig({
          ...{ region, authority },
          accounts: [{ id: 'acme', home, balance: BALANCE }],
          keys: [{ id: 'key_acme', account: 'acme', secret: 'sk-acme' }],
          models: [{ id: 'm', kind: 'chat', maxOutputTokens: 100, price: { perRequest: '0.001' } }],
          lines: [
            { id: 'l', provider: 'p', protocol: 'openai', baseUrl: `${upstream.url}/v1`, models: { m: 'u' } },
          ],
        } as never)
      const running = new Map<Region, { gateway: OpenGateway; url: string; close(): Promise<void> }>()
      cleanUp.after(async () => {
        for (const { close } of running.values()) await close()
      })
      return {
        async start(region: Region, home: Region) {
          await running.get(region)?.close()
          const logger = recordingLogger()
          const gateway = await openGateway({
            config: configOf(region, home),
            databaseUrl: urls[region],
            databaseConnections: 8,
            ...{ ledgerStallMs: undefined, ledgerConfirmMs: undefined },
            limits: await openLimitStores(undefined, logger),
            ...{ adminToken: undefined, signInProvider: undefined, webhookAllowPrivate: false },
            regions: {
              databases: new Map(
                REGIONS.filter((to) => to !== region).map((to) => [to, farUrl(to)] as const),
              ),
              maxAwayMs: 3_600_000,
            },
            observability: undefined,
            logger,
          })
          const server = gateway.app.listen(0, '127.0.0.1')
          await once(server, 'listening')
          const { port } = server.address() as AddressInfo
          const close = async () => {
            running.delete(region)
            server.close()
            server.closeAllConnections()
            await gateway.close()
          }
          running.set(region, { gateway, url: `http://127.0.0.1:${port}`, close })
        },
        async reload(region: Region, home: Region) {
          await running.get(region)?.gateway.reload(configOf(region, home))
        },
        async call(region: Region): Promise<number> {
          const response = await fetch(`${running.get(region)?.url}/v1/chat/completions`, {
            method: 'POST',
            headers: { authorization: 'Bearer sk-acme', 'content-type': 'application/json' },
            body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'Hi' }] }),
          })
          await response.arrayBuffer()
          return response.status
        },
        others: (region: Region, what: 'cut' | 'mend') => far[region][what](),
        served: () => upstream.requests.length,
        /** What each region says that the account began with. */
        async opened() {
          const rows = await Promise.all(
            REGIONS.map(async (region) => {
              const deposits = dbs[region].selectFrom('deposits').select('amount')
              const found = await deposits.where('account', '=', 'acme').execute()
              return [region, found.reduce((sum, { amount }) => sum + amount, 0n)] as const
            }),
          )
          return Object.fromEntries(rows.filter(([, amount]) => amount > 0n))
        },
        /** Ends all gateways: the home is told what was spent elsewhere. */
        async close() {
          for (const region of ['us', 'asia', 'eu'] as const) await running.get(region)?.close()
        },
        async spentAtHome() {
          const wallets = dbs.eu
            ?.selectFrom('wallets')
            .select('spent')
            .where('id', '=', accountWallet('acme'))
          return (await wallets.executeTakeFirst())?.spent
        },
      }
    }
  })
