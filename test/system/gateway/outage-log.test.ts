import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, describe, it, type TestContext } from 'node:test'
import { Client } from 'pg'
import {
  chat,
  type GatewayProcess,
  type LogLine,
  post,
  startGatewayProcess,
  temporaryFolder,
} from '../../support/gateway-process.ts'
import { type PostgresServer, startPostgres, WITHOUT_POSTGRES } from '../../support/postgres-server.ts'
import { startRedis, WITHOUT_REDIS } from '../../support/redis-server.ts'
import { chatAnswer, startUpstream } from '../../support/scripted-upstream.ts'
import { until } from '../../support/until.ts'

const AS_CALLER = { authorization: 'Bearer sk-of-the-log' }
const AS_OPERATOR = { authorization: 'Bearer admin-of-the-tests' }

async function gatewayOn(t: TestContext, env: Record<string, string>): Promise<GatewayProcess> {
  const upstream = await startUpstream((res) => chatAnswer(res))
  t.after(() => upstream.close())
  const folder = await temporaryFolder()
  t.after(() => folder.remove())
  const config = join(folder.path, 'config.json')
  const price = { inputPerMillion: '1', outputPerMillion: '1' }
  const line = {
    id: 'l',
    provider: 'p',
    protocol: 'openai',
    baseUrl: `${upstream.url}/v1`,
    models: { m: 'u' },
  }
  await writeFile(
    config,
    JSON.stringify({
      accounts: [{ id: 'acme', balance: '100' }],
      keys: [{ id: 'k', account: 'acme', secret: 'sk-of-the-log', limits: { rpm: 100_000 } }],
      models: [{ id: 'm', kind: 'chat', maxOutputTokens: 10, price }],
      lines: [line],
    }),
  )
  const gateway = await startGatewayProcess({
    GATEWAY_CONFIG: config,
    ADMIN_TOKEN: 'admin-of-the-tests',
    ...env,
  })
  t.after(() => gateway.stop())
  return gateway
}

/** Uses everything that is kept in the stores, again and again. */
function useAll({ url }: GatewayProcess) {
  let isOver = false
  let run = 0
  const uses = [
    () => post(url, chat('m'), AS_CALLER),
    () => post(url, chat('m'), { ...AS_CALLER, 'idempotency-key': `k${run++}` }),
    ...['/v1/calls?limit=1', '/v1/videos', '/v1/responses/resp_1', '/v1/tickets'].map(
      (path) => () => fetch(url + path, { headers: AS_CALLER }),
    ),
    ...['/accounts', '/usage?from=2026-01-01&to=2026-01-02', '/lines'].map(
      (path) => () => fetch(`${url}/admin${path}`, { headers: AS_OPERATOR }),
    ),
    () => fetch(`${url}/readyz`),
  ]
  /** The uses whose last answer was as on any other day, and those that have failed. */
  const served = new Set<() => unknown>()
  const failed = new Set<() => unknown>()
  const running = uses.map(async (use) => {
    while (!isOver) {
      const response = await use()
      await response.arrayBuffer()
      if (response.status < 500) served.add(use)
      else {
        served.delete(use)
        failed.add(use)
      }
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  })
  return {
    /** Whether the last answer to each use was none of a failure. */
    allServed: () => served.size === uses.length,
    failed: () => failed.size,
    async end() {
      isOver = true
      await Promise.allSettled(running)
    },
  }
}

/** The lines since the start that are not of single calls, as `message of store`. */
const linesOf = ({ logged }: GatewayProcess, from: number): readonly LogLine[] =>
  logged.slice(from).filter(({ msg }) => msg !== 'call')
const named = (lines: readonly LogLine[]): readonly string[] =>
  lines.map(({ msg, store }) => `${msg}: ${store}`)

describe('in the log of a gateway that is used in every way', {
  skip: WITHOUT_POSTGRES || WITHOUT_REDIS,
}, () => {
  let postgres: PostgresServer | undefined
  after(() => postgres?.close())

  const kinds: readonly (readonly [
    string,
    (server: PostgresServer) => unknown,
    (server: PostgresServer) => unknown,
  ])[] = [
    ['is gone', (server) => server.kill(), (server) => server.start()],
    ['hangs', (server) => server.freeze(), (server) => server.thaw()],
  ]
  for (const [fault, begin, end] of kinds)
    it(`a Postgres that ${fault} is one line, with the effect on callers, and one when it is back`, async (t) => {
      postgres ??= await startPostgres()
      const gateway = await gatewayOn(t, { DATABASE_URL: await postgres.createDatabase() })
      const load = useAll(gateway)
      await until(load.allServed, 'all uses')
      const from = gateway.logged.length
      await begin(postgres)
      const lines = () => linesOf(gateway, from)
      await until(() => lines().length > 0 && !load.allServed(), 'the outage')
      await until(() => load.failed() >= 6, 'the failures of most uses')
      await end(postgres)
      await until(
        () => lines().some(({ msg }) => msg === 'store is back') && load.allServed(),
        'the end of the outage',
      )
      await load.end()
      assert.deepEqual(named(lines()), ['store is away: database', 'store is back: database'])
      const [away, back] = lines()
      assert.equal(away?.level, 50)
      for (const effect of ['billing_unavailable', 'internal_error', 'come later'])
        assert.match(`${away?.effect}`, new RegExp(effect))
      assert.ok(Number(back?.forMs) > 0)
    })

  it('a table that another connection has locked is the outage of its user alone', async (t) => {
    postgres ??= await startPostgres()
    const url = await postgres.createDatabase()
    const gateway = await gatewayOn(t, { DATABASE_URL: url })
    const load = useAll(gateway)
    await until(load.allServed, 'all uses')
    const from = gateway.logged.length
    const other = new Client(url)
    await other.connect()
    t.after(() => other.end())
    await other.query('begin; lock table wallets in access exclusive mode')
    const stores = () => named(linesOf(gateway, from))
    await until(() => stores().includes('store is away: ledger'), 'the line')
    await other.query('rollback')
    await until(() => stores().includes('store is back: ledger'), 'the second line')
    await load.end()
    assert.deepEqual(
      stores().filter((line) => /database/.test(line)),
      [],
    )
  })

  it('a Redis that is gone is one line, with the effect on callers, and one when it is back, without any call', async (t) => {
    const redis = await startRedis()
    t.after(() => redis.close())
    const gateway = await gatewayOn(t, { REDIS_URL: `redis://127.0.0.1:${redis.port}` })
    const from = gateway.logged.length
    await redis.kill()
    await until(() => linesOf(gateway, from).length > 0, 'the outage')
    const load = useAll(gateway)
    await until(load.allServed, 'calls are served')
    await redis.restart()
    await until(
      () => linesOf(gateway, from).some(({ msg }) => msg === 'store is back'),
      'the end of the outage',
    )
    await load.end()
    const lines = linesOf(gateway, from)
    assert.deepEqual(named(lines), ['store is away: redis', 'store is back: redis'])
    assert.match(`${lines[0]?.effect}`, /^calls are served; each process counts limits/)
    assert.match(`${lines[0]?.reason}`, /ECONNREFUSED/)
  })
})
