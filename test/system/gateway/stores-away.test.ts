import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { envelopeOf, jsonOf } from '../../support/answer-bodies.ts'
import {
  type GatewayProcess,
  post,
  startGatewayProcess,
  temporaryFolder,
} from '../../support/gateway-process.ts'
import { startRedis, WITHOUT_REDIS } from '../../support/redis-server.ts'
import { chatAnswer, startUpstream } from '../../support/scripted-upstream.ts'

const KEY = 'sk-limited'
const AS_ACME = { authorization: `Bearer ${KEY}` }
const CHAT = { model: 'm', messages: [{ role: 'user', content: 'hi' }] }

async function gatewayFor(t: TestContext, settings: object, env: Record<string, string> = {}) {
  const upstream = await startUpstream((res) => chatAnswer(res))
  const folder = await temporaryFolder()
  let gateway: GatewayProcess | undefined
  t.after(async () => {
    await gateway?.stop()
    await upstream.close()
    await folder.remove()
  })
  const config = join(folder.path, 'config.json')
  const file = join(folder.path, 'gateway.db')
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
      accounts: [{ id: 'acme' }],
      keys: [{ id: 'limited', account: 'acme', secret: KEY, limits: { rpm: 1000 } }],
      models: [{ id: 'm', kind: 'chat' }],
      lines: [line],
      ...settings,
    }),
  )
  gateway = await startGatewayProcess({
    GATEWAY_CONFIG: config,
    DATABASE_URL: `sqlite:${file}`,
    ...env,
  })
  return { gateway, upstream, file }
}

/** Asks /readyz until it answers with that status, and nothing but /readyz. */
async function readiness({ url }: GatewayProcess, status: number): Promise<unknown> {
  const deadline = performance.now() + 20_000
  for (;;) {
    const answer = await fetch(`${url}/readyz`)
    const body = await jsonOf<unknown>(answer)
    if (answer.status === status) return body
    assert.ok(performance.now() < deadline, `/readyz answers ${answer.status}`)
    await sleep(50)
  }
}

describe('a gateway whose Redis is away', { skip: WITHOUT_REDIS, concurrency: true }, () => {
  it('that is to refuse meanwhile is not ready, and is ready again without being sent a request', async (t) => {
    const redis = await startRedis()
    t.after(() => redis.close())
    const { gateway, upstream } = await gatewayFor(
      t,
      { onStoreError: 'refuse' },
      { REDIS_URL: `redis://127.0.0.1:${redis.port}` },
    )
    await readiness(gateway, 200)
    assert.equal((await post(gateway.url, CHAT, AS_ACME)).status, 200)
    await redis.kill()
    assert.deepEqual(await readiness(gateway, 503), { status: 'unavailable', reason: 'store' })
    assert.equal((await envelopeOf(await post(gateway.url, CHAT, AS_ACME))).error.code, 'internal_error')
    assert.equal(upstream.requests.length, 1)
    await redis.restart()
    await readiness(gateway, 200)
    assert.equal((await post(gateway.url, CHAT, AS_ACME)).status, 200)
  })

  it('that counts by itself meanwhile stays ready', async (t) => {
    const redis = await startRedis()
    t.after(() => redis.close())
    const { gateway } = await gatewayFor(t, {}, { REDIS_URL: `redis://127.0.0.1:${redis.port}` })
    assert.equal((await post(gateway.url, CHAT, AS_ACME)).status, 200)
    await redis.kill()
    assert.equal((await post(gateway.url, CHAT, AS_ACME)).status, 200)
    assert.equal((await fetch(`${gateway.url}/readyz`)).status, 200)
  })
})

it('a gateway whose database another process keeps locked knows its keys, and runs nothing that has to be noted', async (t) => {
  const { gateway, upstream, file } = await gatewayFor(t, {})
  const other = new DatabaseSync(file, { timeout: 5000 })
  t.after(() => other.close())
  other.exec('begin immediate')
  const keyed = await post(gateway.url, CHAT, { ...AS_ACME, 'idempotency-key': 'k' })
  assert.equal((await envelopeOf(keyed)).error.code, 'internal_error')
  assert.equal(upstream.requests.length, 0)
  // Looked up now, for the first time, behind the claim that waits for the lock.
  const unknown = await post(gateway.url, CHAT, { authorization: 'Bearer sk-unknown' })
  assert.equal((await envelopeOf(unknown)).error.code, 'invalid_credential')
  assert.equal((await post(gateway.url, CHAT, AS_ACME)).status, 200)
  other.exec('rollback')
})
