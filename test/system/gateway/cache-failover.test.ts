import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assembledGateway } from '../../support/assembled-gateway.ts'
import { WITHOUT_REDIS } from '../../support/redis-server.ts'
import { chatAnswer, startUpstream } from '../../support/scripted-upstream.ts'
import { untilAsync } from '../../support/until.ts'
import { watchedRedis } from './watched-redis.ts'

test('a cache follows the sentinels to the next master', { skip: WITHOUT_REDIS }, async (t) => {
  const { master, url } = await watchedRedis(t)
  const upstream = await startUpstream((res) => chatAnswer(res))
  t.after(() => upstream.close())
  const { send } = await assembledGateway(
    t,
    {
      models: [{ id: 'chat', kind: 'chat', cache: { ttlSeconds: 60 } }],
      lines: [
        { id: 'l', provider: 'p', protocol: 'openai', baseUrl: `${upstream.url}/v1`, models: { chat: 'u' } },
      ],
    },
    { redisUrl: url },
  )
  const ask = async (content: string): Promise<string | null> => {
    const body = { model: 'chat', messages: [{ role: 'user', content }] }
    const response = await send('/v1/chat/completions', body)
    assert.equal(response.status, 200, await response.text())
    return response.headers.get('x-gateway-cache')
  }
  await untilAsync(async () => (await ask('before')) === 'hit', 'the cache is used')
  await master.kill()
  await untilAsync(async () => (await ask('behind')) === 'hit', 'the cache of the next master is used')
})
