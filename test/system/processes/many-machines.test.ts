import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { readEntry } from '../../../lib/stores/sql/calls/written-entry.ts'
import { farServer } from '../../support/far-server.ts'
import { type GatewayProcess, startGatewayProcess, temporaryFolder } from '../../support/gateway-process.ts'
import { startPostgresPair } from '../../support/postgres-pair.ts'
import { WITHOUT_POSTGRES } from '../../support/postgres-server.ts'
import { startRedisCluster } from '../../support/redis-cluster.ts'
import { WITHOUT_REDIS } from '../../support/redis-server.ts'
import { chatAnswer, startUpstream } from '../../support/scripted-upstream.ts'
import { until, untilAsync } from '../../support/until.ts'
import { FleetCallers } from './fleet-callers.ts'

const PROCESSES = 6
const RPM = 40
/** The time beyond a failover in which a gateway must notice it, in milliseconds: some seconds, and what a busy machine adds. */
const MARGIN_MS = 25_000
/** The same where a master of Redis is replaced. */
const REDIS_MARGIN_MS = 10_000
const ADMIN_TOKEN = 'admin-of-the-machines'

const configOf = (origin: string) => ({
  accounts: [{ id: 'paid', balance: '1000' }, { id: 'limited' }, { id: 'later' }],
  keys: [
    { id: 'k1', account: 'paid', secret: 'sk-paid' },
    { id: 'k2', account: 'limited', secret: 'sk-limited', limits: { rpm: RPM } },
    { id: 'k3', account: 'later', secret: 'sk-later', limits: { rpm: RPM } },
  ],
  models: [{ id: 'm', kind: 'chat', price: { perRequest: '0.001' } }],
  lines: [{ id: 'l', provider: 'p', protocol: 'openai', baseUrl: `${origin}/v1`, models: { m: 'u' } }],
})

it('several gateways keep limits, money and keys while machines restart, die and fail over', {
  skip: WITHOUT_REDIS || WITHOUT_POSTGRES,
  timeout: 400_000,
}, async (t) => {
  let completed = 0
  const upstream = await startUpstream(async (res) => {
    await sleep(20 + 60 * Math.random())
    if (res.destroyed) return
    res.once('finish', () => completed++)
    chatAnswer(res, 'Hello')
  })
  t.after(() => upstream.close())
  const folder = await temporaryFolder()
  t.after(() => folder.remove())
  const config = join(folder.path, 'config.json')
  await writeFile(config, JSON.stringify(configOf(upstream.url)))
  const closing = async <Server extends { close(): Promise<void> }>(starting: Promise<Server>) => {
    const server = await starting
    t.after(() => server.close())
    return server
  }
  const [redis, postgres] = await Promise.all([closing(startRedisCluster()), closing(startPostgresPair())])
  const name = await farServer(postgres.primary.port, 0)
  t.after(() => name.close())
  const start = async (database = postgres.url): Promise<GatewayProcess> => {
    const gateway = await startGatewayProcess({
      GATEWAY_CONFIG: config,
      DATABASE_URL: database,
      DATABASE_CONNECTIONS: '12',
      REDIS_URL: redis.url,
      LOG_LEVEL: 'warn',
      ADMIN_TOKEN,
    })
    t.after(() => gateway.stop())
    return gateway
  }
  // Most know both servers; the last knows a name that moves from one to the other.
  const named = `postgres://postgres@127.0.0.1:${name.port}/${postgres.databaseName}`
  const known = Array.from({ length: PROCESSES }, (_, i) => (i < PROCESSES - 1 ? postgres.url : named))
  let fleet = await Promise.all(known.map((database) => start(database)))
  const callers = new FleetCallers(() => fleet.map((gateway) => gateway.url))
  t.after(() => callers.end())
  /** Waits until each gateway has served calls that pay since now. */
  const servedByAll = async (when: string, withinMs = 60_000): Promise<void> => {
    const from = performance.now()
    const areServing = (): boolean => {
      const served = callers.servedSince('sk-paid', from)
      return fleet.every(({ url }) => (served.get(url) ?? 0) > 1)
    }
    await until(areServing, `all serve ${when}`, withinMs)
  }
  callers.add('sk-paid', 20, 400)
  callers.add('sk-limited', 4, 100)
  await servedByAll('at their start')

  // Two restart, one after the other, and two die.
  for (const leaving of fleet.slice(0, 2)) {
    const next = await start()
    fleet = [...fleet.filter((gateway) => gateway !== leaving), next]
    leaving.kill('SIGTERM')
    const exit = await leaving.exited
    assert.equal(exit.code, 0, exit.stdout)
  }
  const killed = fleet.slice(0, 2)
  for (const gateway of killed) gateway.kill('SIGKILL')
  fleet = [...fleet.slice(2), ...(await Promise.all([start(), start()]))]
  await redis.moveSlot('gateway:limits:rpm:key:k2')
  await servedByAll('after the slot has moved')
  const admitted = callers.of('sk-limited', 200)
  assert.ok(callers.of('sk-limited', 429).length > 0, 'the limit was reached')
  const windows = 1 + Math.floor(((admitted.at(-1)?.at ?? 0) - (admitted[0]?.at ?? 0)) / 60_000)
  assert.ok(admitted.length <= windows * RPM, `${admitted.length} admitted in ${windows} windows of ${RPM}`)

  const redisDied = performance.now()
  callers.add('sk-later', 16, 50)
  await redis.kill(await redis.masterOf('gateway:limits:rpm:key:k2'))
  await untilAsync(async () => (await redis.masters()).length === 3, 'a replica takes the place')
  await servedByAll('after that')
  const redisGap = callers.longestGap('sk-paid', redisDied)
  assert.ok(
    redisGap < REDIS_MARGIN_MS,
    `nothing was served for ${redisGap} ms while a master of Redis was replaced`,
  )

  const died = performance.now()
  await postgres.killPrimary()
  await sleep(2000)
  await postgres.promote()
  name.leadTo(postgres.standby.port)
  const promoted = performance.now()
  // All of them, and not only the luckiest.
  await servedByAll('after the failover', MARGIN_MS)
  const gap = callers.longestGap('sk-paid', died)
  const perProcess = await Promise.all(
    fleet.map(({ url: at }) => fetch(`${at}/readyz`).then((r) => r.status)),
  )
  await callers.end()
  t.diagnostic(
    `failover ${Math.round(promoted - died)} ms, nothing served for ${Math.round(gap)} ms; Redis ${Math.round(redisGap)} ms`,
  )
  assert.ok(gap <= promoted - died + MARGIN_MS, `nothing was served for ${gap} ms`)
  assert.deepEqual(new Set(perProcess), new Set([200]))
  assert.ok(callers.of('sk-later', 200).length <= (2 + PROCESSES) * RPM)

  const admin = { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } }
  const check = await fetch(`${fleet[0]?.url}/admin/ledger/check`, admin)
  const books = (await check.json()) as { violations: unknown[] }
  assert.deepEqual(books.violations, [])
  for (const gateway of fleet) gateway.kill('SIGTERM')
  for (const gateway of fleet) {
    const { code, stderr } = await gateway.exited
    assert.equal(code, 0, stderr)
  }

  // A call whose charge was confirmed too late was refused, and its charge is taken back.
  const charges = await postgres.query(
    'select request_id from charges where request_id not in (select request_id from voids)',
  )
  const charged = new Set(charges.map(({ request_id }) => `${request_id}`))
  const seen = ['sk-paid', 'sk-limited', 'sk-later'].flatMap((key) => callers.of(key, 200))
  assert.deepEqual(
    seen.filter(({ requestId }) => !charged.has(`${requestId}`)),
    [],
    'answered, and not charged',
  )
  const entries = (await postgres.query('select entry from calls')).map(({ entry }) => readEntry(`${entry}`))
  const byKey = new Map<string, number>()
  for (const { id, idempotency_key: key } of entries)
    if (charged.has(id)) byKey.set(`${key}`, (byKey.get(`${key}`) ?? 0) + 1)
  assert.deepEqual(
    [...byKey].filter(([, times]) => times > 1),
    [],
    'charged twice',
  )
  assert.ok(charged.size <= completed, `${charged.size} charges for ${completed} answers of the line`)
  // The calls that were on their way in a killed process are not charged, and their callers did not see them end.
  const broken = callers.answers.filter(({ status }) => status === null).length
  assert.ok(completed - charged.size <= broken, `${completed - charged.size} uncharged, ${broken} broken`)
})
