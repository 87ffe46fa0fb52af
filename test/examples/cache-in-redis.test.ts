import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import KeyvRedis from '@keyv/redis'
import { cache } from '../../lib/index.ts'
import { serveApp } from '../support/app-server.ts'
import { type AssembledGateway, assembledGateway } from '../support/assembled-gateway.ts'
import { type RedisCluster, startRedisCluster } from '../support/redis-cluster.ts'
import { type RedisServer, startRedis, WITHOUT_REDIS } from '../support/redis-server.ts'
import { chatAnswer, type ScriptedUpstream, startUpstream } from '../support/scripted-upstream.ts'
import { until, untilAsync } from '../support/until.ts'

const outcomeOf = (response: Response) => response.headers.get('x-gateway-cache')

/** A gateway with a cache in Redis. */
function cachingGateway(
  t: { after(run: () => unknown): void },
  upstream: ScriptedUpstream,
  redisUrl: string,
): Promise<AssembledGateway> {
  return assembledGateway(
    t,
    {
      models: [{ id: 'chat', kind: 'chat', cache: { ttlSeconds: 60 } }],
      lines: [
        { id: 'l', provider: 'p', protocol: 'openai', baseUrl: `${upstream.url}/v1`, models: { chat: 'u' } },
      ],
    },
    { redisUrl },
  )
}

const asks =
  ({ send }: AssembledGateway) =>
  async (content: string): Promise<string | null> => {
    const response = await send('/v1/chat/completions', {
      model: 'chat',
      messages: [{ role: 'user', content }],
    })
    assert.equal(response.status, 200, await response.text())
    return outcomeOf(response)
  }

describe('a cache in Redis', { skip: WITHOUT_REDIS }, () => {
  let redis: RedisServer
  before(async () => {
    redis = await startRedis()
  })
  after(() => redis?.close())

  it('is shared by gateways, and outlives them', async (t) => {
    const upstream = await startUpstream((res) => chatAnswer(res))
    t.after(() => upstream.close())
    const url = `redis://127.0.0.1:${redis.port}`
    const one = await cachingGateway(t, upstream, url)
    const other = await cachingGateway(t, upstream, url)
    assert.equal(await asks(one)('shared'), 'miss')
    assert.equal(await asks(one)('shared'), 'hit')
    assert.equal(await asks(other)('shared'), 'hit')
    assert.equal(upstream.requests.length, 1)
    const keys = await redis.client().keys('gateway:cache*')
    assert.equal(keys.length, 1)
    const ttl = await redis.client().pttl(keys[0] as string)
    assert.ok(ttl > 50_000 && ttl <= 60_000, `${ttl} ms`)
  })

  it('keeps answers for parts of a millisecond, too', async (t) => {
    const adapter = new KeyvRedis(`redis://127.0.0.1:${redis.port}`)
    t.after(() => adapter.disconnect())
    const cached = cache({ ttl: 60_000 / 7, store: adapter, by: () => 'ann' })
    const server = await serveApp((app) => app.get('/', cached, (_req, res) => void res.json({})))
    t.after(() => server.close())
    for (const outcome of ['miss', 'hit']) assert.equal(outcomeOf(await fetch(server.url)), outcome)
  })

  for (const [how, away, back] of [
    ['gone', () => redis.kill(), () => redis.restart()],
    ['frozen', async () => redis.pause(), async () => redis.resume()],
  ] as const)
    it(`that is ${how} costs no answer and little time, and is used again once it is back`, async (t) => {
      const upstream = await startUpstream((res) => chatAnswer(res))
      t.after(() => upstream.close())
      const gateway = await cachingGateway(t, upstream, `redis://127.0.0.1:${redis.port}`)
      const ask = asks(gateway)
      await ask(how)
      assert.equal(await ask(how), 'hit')
      await away()
      t.after(back)
      const begun = performance.now()
      for (let i = 0; i < 10; i++) assert.equal(await ask(how), 'miss')
      assert.ok(performance.now() - begun < 5000, 'ten requests take less than five seconds')
      const lines = () =>
        gateway.logged.map(({ message }) => message).filter((message) => message.startsWith('store is'))
      await until(() => lines().length > 0, 'the outage is logged')
      assert.deepEqual(lines(), ['store is away'])
      await back()
      await untilAsync(async () => (await ask(`${how} again`)) === 'hit', 'the cache is used again')
      await until(() => lines().length > 1, 'the end of the outage is logged')
      assert.deepEqual(lines(), ['store is away', 'store is back'])
    })
})

describe('a cache in a cluster of Redis', { skip: WITHOUT_REDIS }, () => {
  let cluster: RedisCluster
  before(async () => {
    cluster = await startRedisCluster()
  })
  after(() => cluster?.close())

  it('keeps answers on all its nodes', async (t) => {
    const upstream = await startUpstream((res) => chatAnswer(res))
    t.after(() => upstream.close())
    const ask = asks(await cachingGateway(t, upstream, cluster.url))
    await untilAsync(async () => (await ask('first')) === 'hit', 'the cluster is there')
    for (let i = 0; i < 20; i++) {
      assert.equal(await ask(`question ${i}`), 'miss')
      assert.equal(await ask(`question ${i}`), 'hit')
    }
  })
})
