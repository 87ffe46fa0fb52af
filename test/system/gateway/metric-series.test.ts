import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { Scrape } from '../../middleware/telemetry/scrape.ts'
import {
  chat,
  type Environment,
  startGatewayProcess,
  temporaryFolder,
} from '../../support/gateway-process.ts'
import { answerJson, chatAnswer, chatEvents, startUpstream, stream } from '../../support/scripted-upstream.ts'
import { untilAsync } from '../../support/until.ts'

const COUNT = 10
const ACCOUNTS = 40
const of = <T>(count: number, make: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i))

/** Ten models, each on all of ten lines, for forty accounts; every other line fails now and then, in several ways. */
async function start(t: TestContext, env: Environment, members: object = {}) {
  const folder = await temporaryFolder()
  t.after(() => folder.remove())
  let asked = 0
  const upstream = await startUpstream((res, { json }) => {
    asked++
    if (asked % 5 === 0) return answerJson(res, [500, 429, 503, 400, 401][(asked / 5) % 5] as number, {})
    return json.stream ? stream(res, chatEvents(['a', 'b'])) : chatAnswer(res)
  })
  t.after(() => upstream.close())
  const models = of(COUNT, (i) => `model-${i}`)
  const config = {
    accounts: of(ACCOUNTS, (i) => ({ id: `account-${i}`, balance: '10', limits: { rpm: 30 } })),
    keys: of(ACCOUNTS, (i) => ({ id: `key-${i}`, account: `account-${i}`, secret: `sk-of-the-tests-${i}` })),
    models: models.map((id) => ({ id, kind: 'chat', price: { perRequest: '0.01' } })),
    lines: of(COUNT, (i) => ({
      id: `line-${i}`,
      provider: `provider-${i}`,
      protocol: 'openai',
      baseUrl: `${upstream.url}/v1`,
      models: Object.fromEntries(models.map((model) => [model, model])),
    })),
    routing: { strategy: 'weighted' },
    ...members,
  }
  const path = join(folder.path, 'gateway.json')
  await writeFile(path, JSON.stringify(config))
  const gateway = await startGatewayProcess({
    GATEWAY_CONFIG: path,
    ADMIN_TOKEN: 'admin-of-the-tests',
    DATABASE_URL: `sqlite:${join(folder.path, 'gateway.db')}`,
    ...env,
  })
  t.after(() => gateway.stop())
  const send = async (secret: string, body: object, path = '/v1/chat/completions', headers = {}) => {
    const answer = await fetch(gateway.url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    })
    await answer.arrayBuffer()
  }
  const scrape = async () => new Scrape(await (await fetch(`${gateway.url}/metrics`)).text())
  return { gateway, send, scrape }
}

for (const [name, env] of [
  ['one process', {}],
  ['two workers', { WORKERS: '2' }],
] as const) {
  describe(`the series of ${name} with ten models and ten lines`, () => {
    it('are under a thousand, for any callers and requests', async (t) => {
      const { send, scrape } = await start(t, env)
      const round = async (r: number) => {
        for (let account = 0; account < ACCOUNTS; account++) {
          const secret = `sk-of-the-tests-${account}`
          const evil = `evil-${r}-${account}`
          await Promise.all([
            ...of(4, (i) => {
              const model = `model-${(account + i) % COUNT}`
              return send(secret, chat(model, 'Hi', { stream: i % 2 === 1, user: evil }), undefined, {
                'idempotency-key': `${evil}-${i}`,
                'x-gateway-tags': `team=${evil}`,
                'x-request-id': evil,
              })
            }),
            send(secret, chat(evil)),
            send(`sk-${evil}`, chat('model-1')),
            send(secret, { model: 'model-1', input: evil }, '/v1/responses'),
            send(secret, { model: 'model-1', [evil]: 1 }, '/v1/messages'),
            send(secret, {}, `/v1/${evil}`),
          ])
        }
      }
      await round(0)
      if ('WORKERS' in env)
        await untilAsync(
          async () => (await scrape()).sum('model_gateway_worker_answered') === 2,
          'both workers',
        )
      await round(1)
      let last = await scrape()
      await untilAsync(async () => {
        last = await scrape()
        return last.sum('model_gateway_calls_open') === 0
      }, 'the end of all calls')
      const text = last.samples.map((sample) => JSON.stringify(sample)).join()
      assert.doesNotMatch(text, /evil|sk-|account-\d|key-\d|req_/)
      assert.equal(last.of('gen_ai_server_request_duration_count').length >= COUNT, true)
      assert.equal(
        new Set(last.of('model_gateway_attempts_total').map(({ labels }) => labels.model_gateway_line)).size,
        COUNT,
      )
      assert.ok(last.samples.length < 1000, `${last.samples.length} series`)
      t.diagnostic(`${last.samples.length} series`)
      for (const metric of ['process_cpu_time_total', 'process_memory_usage', 'nodejs_eventloop_delay_p99'])
        assert.ok(last.sum(metric) > 0, metric)
    })
  })
}

describe('the series by account, user and tag of two workers', () => {
  const MAX = 20
  const labels = ['account', 'user', 'tag:team']
  const ATTRIBUTED = 'model_gateway_attributed_calls_total'

  it('are as many as the config allows, whatever users and tags there are, and count every call', async (t) => {
    const metrics = { labels, maxLabelValues: MAX }
    const { send, scrape } = await start(t, { WORKERS: '2' }, { metrics })
    let sent = 0
    const hostile = async (r: number) => {
      for (let account = 0; account < ACCOUNTS; account++) {
        const evil = `${r}-${account}-"\\{}${'\u00e9'.repeat(100)}`
        const teams = { 'x-gateway-tags': `team=evil-${r}-${account}, other=evil` }
        await Promise.all(
          of(4, (i) => {
            sent++
            const body = chat('model-1', 'Hi', { user: `${i}${evil}`, metadata: { team: `no${evil}` } })
            return send(`sk-of-the-tests-${account}`, body, undefined, teams)
          }),
        )
      }
    }
    await hostile(0)
    await hostile(1)
    let last = await scrape()
    await untilAsync(async () => {
      last = await scrape()
      return last.sum(ATTRIBUTED) === sent && last.sum('model_gateway_worker_answered') === 2
    }, 'all calls in both workers')
    for (const label of ['account', 'user', 'tag_team']) {
      const values = last.valuesOf(`model_gateway_${label}`)
      assert.ok(values.has('other'), label)
      assert.ok(values.size > 1 && values.size <= 2 * MAX + 1, `${values.size} values of ${label}`)
    }
    const series = last.samples.filter(({ name }) => name.startsWith('model_gateway_attributed_'))
    // Calls, charges and two types of tokens, each with sets where user and tag are "other", by account.
    assert.ok(series.length <= 2 * 4 * (11 * MAX + 1), `${series.length} series`)
    assert.ok(!last.text.includes('other="evil'), 'a tag that the config does not name')
    t.diagnostic(`${series.length} series`)
  })
})
