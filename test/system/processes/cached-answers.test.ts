import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { cleaningUp } from '../../support/clean-up.ts'
import {
  chat,
  type GatewayProcess,
  lookUp,
  post,
  startGatewayProcess,
  temporaryFolder,
} from '../../support/gateway-process.ts'
import { startRedis, WITHOUT_REDIS } from '../../support/redis-server.ts'
import { chatAnswer, startUpstream } from '../../support/scripted-upstream.ts'

const ADMIN_TOKEN = 'admin-token-of-the-tests'

const cleanUp = cleaningUp()

test('two processes answer from one cache, and charge each answer once', {
  skip: WITHOUT_REDIS,
}, async () => {
  const redis = await startRedis()
  cleanUp.after(() => redis.close())
  const upstream = await startUpstream((res) => chatAnswer(res))
  cleanUp.after(() => upstream.close())
  const folder = await temporaryFolder()
  cleanUp.after(() => folder.remove())
  const config = join(folder.path, 'gateway.json')
  const key = (account: string, secret: string) => ({ id: `key_${account}`, account, secret })
  await writeFile(
    config,
    JSON.stringify({
      accounts: [
        { id: 'acme', balance: '10' },
        { id: 'globex', balance: '10' },
      ],
      keys: [key('acme', 'sk-demo'), key('globex', 'sk-globex')],
      models: [
        {
          ...{ id: 'chat-small', kind: 'chat', price: { perRequest: '1' } },
          cache: { ttlSeconds: 600, hitPrice: '0.5' },
        },
      ],
      lines: [
        {
          ...{ id: 'l', provider: 'p', protocol: 'openai', baseUrl: `${upstream.url}/v1` },
          models: { 'chat-small': 'u' },
        },
      ],
    }),
  )
  const start = async (): Promise<GatewayProcess> => {
    const started = await startGatewayProcess({
      GATEWAY_CONFIG: config,
      DATABASE_URL: `sqlite:${join(folder.path, 'gateway.db')}`,
      REDIS_URL: `redis://127.0.0.1:${redis.port}`,
      ADMIN_TOKEN,
    })
    cleanUp.after(() => started.stop())
    return started
  }
  const one = await start()
  const other = await start()
  const ask = async ({ url }: GatewayProcess, secret = 'sk-demo') => {
    const response = await post(url, chat(), { authorization: `Bearer ${secret}` })
    assert.equal(response.status, 200, await response.text())
    return { outcome: response.headers.get('x-gateway-cache'), id: response.headers.get('x-request-id') }
  }
  const first = await ask(one)
  const again = await ask(other)
  assert.deepEqual([first.outcome, again.outcome], ['miss', 'hit'])
  assert.equal((await lookUp(one.url, again.id)).cached_from, first.id)
  assert.deepEqual((await ask(other, 'sk-globex')).outcome, 'miss')
  assert.equal(upstream.requests.length, 2)

  const many = await Promise.all(Array.from({ length: 8 }, (_, i) => ask(i % 2 === 0 ? one : other)))
  assert.deepEqual(new Set(many.map(({ outcome }) => outcome)), new Set(['hit']))

  // A process that starts later has them, too.
  one.kill('SIGTERM')
  assert.equal((await one.exited).code, 0)
  const third = await start()
  assert.equal((await ask(third)).outcome, 'hit')
  assert.equal(upstream.requests.length, 2)
  const admin = async (path: string): Promise<Record<string, unknown>> => {
    const response = await fetch(other.url + path, { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } })
    return (await response.json()) as Record<string, unknown>
  }
  // One at the price of the model, ten from the cache.
  assert.equal((await admin('/admin/accounts/acme')).balance, '4')
  assert.equal((await admin('/admin/accounts/globex')).balance, '9')
  assert.deepEqual((await admin('/admin/ledger/check')).violations, [])
})
