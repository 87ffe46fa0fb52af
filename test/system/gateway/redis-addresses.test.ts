import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type GatewayProcess,
  post,
  runToExit,
  startGatewayProcess,
  temporaryFolder,
} from '../../support/gateway-process.ts'
import { type RedisServer, startRedis, WITHOUT_REDIS } from '../../support/redis-server.ts'
import { chatAnswer, startUpstream } from '../../support/scripted-upstream.ts'
import { untilAsync } from '../../support/until.ts'
import { watchedRedis } from './watched-redis.ts'

const RPM = 4
const KEYS = 40
const CLUSTER = {
  settings: [
    '--cluster-enabled',
    'yes',
    '--cluster-announce-ip',
    '127.0.0.1',
    '--cluster-node-timeout',
    '2000',
  ],
}

/** Two gateways on one Redis; `ask` sends calls to both in turn and returns their statuses. */
async function twoGateways(t: TestContext, redisUrl: string) {
  const upstream = await startUpstream((res) => chatAnswer(res, 'Hello'))
  t.after(() => upstream.close())
  const folder = await temporaryFolder()
  t.after(() => folder.remove())
  const config = join(folder.path, 'config.json')
  const line = {
    id: 'l',
    provider: 'p',
    protocol: 'openai',
    baseUrl: `${upstream.url}/v1`,
    models: { m: 'u' },
  }
  const key = { account: 'acme', limits: { rpm: RPM } }
  await writeFile(
    config,
    JSON.stringify({
      accounts: [{ id: 'acme' }],
      keys: Array.from({ length: KEYS }, (_, i) => ({ ...key, id: `k${i}`, secret: `sk-${i}` })),
      models: [{ id: 'm', kind: 'chat' }],
      lines: [line],
    }),
  )
  const DATABASE_URL = `sqlite:${join(folder.path, 'gateway.db')}`
  const gateways: GatewayProcess[] = []
  for (let i = 0; i < 2; i++) {
    const gateway = await startGatewayProcess({ GATEWAY_CONFIG: config, REDIS_URL: redisUrl, DATABASE_URL })
    t.after(() => gateway.stop())
    gateways.push(gateway)
  }
  const body = { model: 'm', messages: [{ role: 'user', content: 'hi' }] }
  /** Sends calls of one key to both gateways in turn, at once; returns how many passed. */
  const passing = async (key: number, count: number): Promise<number> => {
    const headers = { authorization: `Bearer sk-${key}` }
    const sent = Array.from({ length: count }, (_, i) => post(gateways[i % 2]?.url ?? '', body, headers))
    return (await Promise.all(sent)).filter(({ status }) => status === 200).length
  }
  let used = 0
  return {
    gateways,
    passing,
    /** Waits until both count together: each alone lets the whole limit of a key pass. */
    countTogether: () =>
      untilAsync(async () => {
        const isOne = (await passing(++used, 4 * RPM)) === RPM
        // There are only so many keys to try with.
        if (!isOne) await sleep(100)
        return isOne
      }, 'one count'),
  }
}

/** A cluster of two nodes, whose first has all slots. */
async function startCluster(t: TestContext): Promise<[RedisServer, RedisServer]> {
  const nodes = [await startRedis(CLUSTER), await startRedis(CLUSTER)] as const
  for (const node of nodes) t.after(() => node.close())
  const [first, second] = nodes
  await first.client().call('CLUSTER', 'ADDSLOTSRANGE', '0', '16383')
  await first.client().call('CLUSTER', 'MEET', '127.0.0.1', `${second.port}`)
  for (const node of nodes)
    await untilAsync(async () => {
      const info = `${await node.client().call('CLUSTER', 'INFO')}`
      return info.includes('cluster_state:ok') && info.includes('cluster_known_nodes:2')
    })
  return [first, second]
}

describe('REDIS_URL names', { skip: WITHOUT_REDIS }, () => {
  it('a cluster: its limits hold over all gateways, and after the slot has moved to another node', async (t) => {
    const [first, second] = await startCluster(t)
    const address = `redis+cluster://127.0.0.1:${first.port},127.0.0.1:${second.port}`
    const { gateways, passing, countTogether } = await twoGateways(t, address)
    assert.equal(await passing(0, 4 * RPM), RPM)

    const [from, to] = [first.client(), second.client()]
    const slot = `${await from.call('CLUSTER', 'KEYSLOT', 'gateway:limits:rpm:key:k0')}`
    await to.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', `${await from.call('CLUSTER', 'MYID')}`)
    await from.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', `${await to.call('CLUSTER', 'MYID')}`)
    assert.equal(await passing(KEYS - 1, 2), 2)
    const keys = (await from.call('CLUSTER', 'GETKEYSINSLOT', slot, '1000')) as string[]
    assert.ok(keys.length > 0)
    await from.call('MIGRATE', '127.0.0.1', `${second.port}`, '', '0', '5000', 'KEYS', ...keys)
    assert.equal(await passing(KEYS - 2, 2), 2)
    const owner = `${await to.call('CLUSTER', 'MYID')}`
    await to.call('CLUSTER', 'SETSLOT', slot, 'NODE', owner)
    await from.call('CLUSTER', 'SETSLOT', slot, 'NODE', owner)

    await countTogether()
    assert.equal(await passing(0, 4), 0)
    for (const { url } of gateways) assert.equal((await fetch(`${url}/readyz`)).status, 200)
  })

  it('sentinels: limits go on behind the promoted replica when the master dies', async (t) => {
    const { master, replica, url } = await watchedRedis(t)
    const { gateways, passing, countTogether } = await twoGateways(t, url)
    assert.equal(await passing(0, 4 * RPM), RPM)
    await master.kill()
    await untilAsync(
      async () => `${await replica.client().call('ROLE')}`.startsWith('master'),
      'the promotion',
    )
    await countTogether()
    for (const { url } of gateways) assert.equal((await fetch(`${url}/readyz`)).status, 200)
  })
})

it('a REDIS_URL that names no server is a fault of the environment', async () => {
  const urls = [
    '127.0.0.1:6379',
    'redis+cluster://',
    'redis+cluster://a:1,,b:2',
    'redis+sentinel://a:1',
    'redis+what://a:1',
    'redis+cluster://:%zz@a:1',
  ]
  for (const REDIS_URL of urls) {
    const exit = await runToExit({ REDIS_URL })
    assert.equal(exit.code, 1, REDIS_URL)
    assert.match(exit.stderr, /^REDIS_URL: /, REDIS_URL)
  }
})

it('a Redis that is dead at the start is logged once, with its address and the reason, and calls are served', async (t) => {
  const kinds = { redis: '', 'redis+cluster': '', 'redis+sentinel': '/limits' }
  for (const [kind, name] of Object.entries(kinds)) {
    const REDIS_URL = `${kind}://user:hidden@127.0.0.1:1${name}`
    const gateway = await startGatewayProcess({ REDIS_URL })
    t.after(() => gateway.stop())
    const told = gateway.logged.filter(({ msg }) => msg === 'store is away')
    assert.deepEqual(
      told.map(({ store, address }) => [store, address]),
      [['redis', `${kind}://127.0.0.1:1${name}`]],
    )
    assert.match(`${told[0]?.reason}`, /ECONNREFUSED|closed|unreachable|refresh/i)
    assert.doesNotMatch(gateway.stdout + gateway.stderr, /hidden/)
    const body = { model: 'chat-small', messages: [{ role: 'user', content: 'hi' }] }
    assert.equal((await post(gateway.url, body)).status, 200)
    await gateway.stop()
  }
})
