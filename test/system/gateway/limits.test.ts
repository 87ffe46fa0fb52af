import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { before, describe, it } from 'node:test'
import { envelopeOf } from '../../support/answer-bodies.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import {
  type GatewayProcess,
  lookUp,
  post,
  startGatewayProcess,
  temporaryFolder,
} from '../../support/gateway-process.ts'
import { type RedisServer, startRedis, WITHOUT_REDIS } from '../../support/redis-server.ts'
import { chatAnswer, type ScriptedUpstream, startUpstream } from '../../support/scripted-upstream.ts'

const KEY = 'sk-shared-1'
const RPM = 6

describe('two gateways on one Redis and one database', { skip: WITHOUT_REDIS }, () => {
  let redis: RedisServer
  let upstream: ScriptedUpstream
  let folder: Awaited<ReturnType<typeof temporaryFolder>>
  const gateways: GatewayProcess[] = []
  const cleanUp = cleaningUp()
  before(async () => {
    redis = await startRedis()
    cleanUp.after(() => redis.close())
    upstream = await startUpstream((res) => chatAnswer(res, 'Hello'))
    cleanUp.after(() => upstream.close())
    folder = await temporaryFolder()
    cleanUp.after(() => folder.remove())
    const config = join(folder.path, 'config.json')
    await writeFile(
      config,
      JSON.stringify({
        accounts: [{ id: 'acme' }],
        keys: [
          { id: 'limited', account: 'acme', secret: KEY, limits: { rpm: RPM } },
          { id: 'free', account: 'acme', secret: 'sk-free' },
        ],
        models: [{ id: 'm', kind: 'chat' }],
        lines: [
          { id: 'l', provider: 'p', protocol: 'openai', baseUrl: `${upstream.url}/v1`, models: { m: 'u' } },
        ],
      }),
    )
    const env = {
      GATEWAY_CONFIG: config,
      REDIS_URL: `redis://127.0.0.1:${redis.port}`,
      DATABASE_URL: `sqlite:${join(folder.path, 'gateway.db')}`,
    }
    for (let i = 0; i < 2; i++) {
      const gateway = await startGatewayProcess(env)
      cleanUp.after(() => gateway.stop())
      gateways.push(gateway)
    }
  })

  const body = { model: 'm', messages: [{ role: 'user', content: 'hi' }] }
  const ask = (i: number, headers: Record<string, string>) =>
    post((gateways[i % 2] as GatewayProcess).url, body, headers)

  it('let through together what the limit allows, and refuse the rest with the limit in the call log', async () => {
    const headers = { authorization: `Bearer ${KEY}` }
    const answers = await Promise.all(Array.from({ length: 20 }, (_, i) => ask(i, headers)))
    const refused = answers.filter(({ status }) => status === 429)
    assert.equal(answers.filter(({ status }) => status === 200).length, RPM)
    assert.equal(refused.length, 20 - RPM)
    assert.equal(upstream.requests.length, RPM)
    for (const answer of refused) {
      assert.equal((await envelopeOf(answer)).error.code, 'rate_limited')
      assert.ok(Number(answer.headers.get('retry-after')) >= 1)
    }
    const [first] = refused
    const from = gateways.find(({ url }) => first?.url.startsWith(url)) as GatewayProcess
    const entry = await lookUp(from.url, first?.headers.get('x-request-id') ?? null, KEY)
    assert.deepEqual(
      [entry.limit?.kind, entry.limit?.level, entry.limit?.subject, entry.limit?.limit],
      ['rpm', 'key', 'limited', RPM],
    )
  })

  it('run a request with one Idempotency-Key once, whichever of them is asked', async () => {
    const before = upstream.requests.length
    const headers = { authorization: 'Bearer sk-free', 'idempotency-key': 'order-1' }
    const answers = await Promise.all(Array.from({ length: 30 }, (_, i) => ask(i, headers)))
    assert.equal(answers.filter(({ status }) => status === 200).length, 1)
    assert.equal(answers.filter(({ status }) => status === 409).length, 29)
    assert.equal(upstream.requests.length, before + 1)

    const first = answers.find(({ status }) => status === 200) as Response
    const replay = await ask(1, headers)
    const { error } = await envelopeOf(replay)
    assert.equal(error.code, 'idempotency_key_replayed')
    const original = first.headers.get('x-request-id')
    assert.equal(error.details?.original_request_id, original)
    const entry = await lookUp((gateways[0] as GatewayProcess).url, original, 'sk-free')
    assert.equal(entry.response_body, await first.text())
  })
})
