import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import type { LineOutline } from '../../../lib/middleware/route/index.ts'
import { refusalOf } from '../../middleware/read-request/refusal.ts'
import { jsonOf } from '../../support/answer-bodies.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { startGateway, type TestGateway } from '../../support/gateway.ts'
import { answerJson, type ScriptedUpstream, startUpstream } from '../../support/scripted-upstream.ts'

const SECRET = 'upstream-secret'
const ALL = 'sk-all'
const SOME = 'sk-some'

interface ListedModel {
  readonly id: string
  readonly object: string
  readonly kind: string
  readonly context_window: number | null
  readonly max_output_tokens: number | null
  readonly features: readonly string[] | null
}

interface ModelRouting {
  readonly object: string
  readonly model: string
  readonly candidates: readonly LineOutline[]
}

describe('the model list', () => {
  let upstream: ScriptedUpstream
  let gateway: TestGateway
  const cleanUp = cleaningUp()
  before(async () => {
    upstream = await startUpstream((res) => answerJson(res, 500, { error: { message: 'broken' } }))
    cleanUp.after(() => upstream.close())
    gateway = await startGateway({
      lines: [
        {
          url: upstream.url,
          apiKey: SECRET,
          headers: { 'x-team': SECRET },
          region: 'eu',
          models: { chat: SECRET, 'org/chat:1': SECRET },
          circuit: { minimumCalls: 1, resetMs: 60_000 },
        },
        { url: upstream.url, apiKey: SECRET, models: { chat: SECRET } },
      ],
      config: {
        keys: [
          { id: 'all', account: 'acme', secret: ALL },
          { id: 'some', account: 'acme', secret: SOME, allowModels: ['org/*', 'embed'] },
          { id: 'none', account: 'acme', secret: 'sk-none', allowModels: [] },
        ],
        models: [
          { id: 'chat', kind: 'chat', contextWindow: 1000, maxOutputTokens: 100, features: ['stream'] },
          { id: 'org/chat:1', kind: 'chat' },
          { id: 'embed', kind: 'embedding' },
          { id: 'odd%id?x#y', kind: 'chat' },
        ],
      },
    })
    cleanUp.after(() => gateway.close())
  })

  const get = (path: string, secret = ALL) =>
    fetch(`${gateway.url}/v1/models${path}`, { headers: { authorization: `Bearer ${secret}` } })
  const json = async <T>(path: string, secret?: string): Promise<T> => {
    const response = await get(path, secret)
    assert.equal(response.status, 200)
    assert.match(response.headers.get('x-request-id') ?? '', /^req_/)
    return jsonOf<T>(response)
  }
  const model = (path: string, secret?: string) => json<ListedModel>(path, secret)
  const routing = (path: string, secret?: string) => json<ModelRouting>(`${path}/routing`, secret)
  const idsOf = async (secret: string) =>
    (await json<{ data: ListedModel[] }>('', secret)).data.map(({ id }) => id)

  it('holds what the key may use, and nothing else', async () => {
    assert.deepEqual(await idsOf(ALL), ['chat', 'org/chat:1', 'embed', 'odd%id?x#y'])
    assert.deepEqual(await idsOf(SOME), ['org/chat:1', 'embed'])
    assert.deepEqual(await json('', 'sk-none'), {
      object: 'list',
      data: [],
      has_more: false,
      first_id: null,
      last_id: null,
    })
  })

  it('is for callers with a key only', async () => {
    const refusal = await refusalOf(await fetch(`${gateway.url}/v1/models`))
    assert.equal(refusal.code, 'missing_credential')
  })

  it('returns what is known of a model, and null where nothing is', async () => {
    const chat = await model('/chat')
    assert.deepEqual([chat.id, chat.object, chat.kind], ['chat', 'model', 'chat'])
    assert.deepEqual([chat.context_window, chat.max_output_tokens, chat.features], [1000, 100, ['stream']])
    const embed = await model('/embed')
    assert.deepEqual([embed.kind, embed.context_window, embed.features], ['embedding', null, null])
  })

  it('finds an id with slashes plain and encoded, and other odd ones encoded', async () => {
    for (const path of ['/org/chat:1', '/org%2Fchat:1', '/org%2fchat%3A1']) {
      assert.equal((await model(path, SOME)).id, 'org/chat:1')
      assert.equal((await routing(path, SOME)).model, 'org/chat:1')
    }
    assert.equal((await model(`/${encodeURIComponent('odd%id?x#y')}`)).id, 'odd%id?x#y')
  })

  it('does not distinguish a model that the key may not use from one that does not exist', async () => {
    for (const path of [
      '/chat',
      '/nope',
      '/chat/routing',
      '/nope/routing',
      '/org',
      '/routing',
      '/__proto__',
    ]) {
      const refusal = await refusalOf(await get(path, SOME))
      assert.deepEqual([refusal.status, refusal.code, refusal.param], [404, 'model_not_found', undefined])
    }
    assert.equal((await refusalOf(await get('/%zz'))).status, 400)
  })

  it('knows no other methods', async () => {
    const headers = { authorization: `Bearer ${ALL}` }
    for (const method of ['POST', 'PUT', 'DELETE']) {
      const refusal = await refusalOf(await fetch(`${gateway.url}/v1/models`, { method, headers }))
      assert.deepEqual([refusal.status, refusal.code], [404, 'not_found'])
    }
  })

  it('shows the candidate lines of a model with their circuits: no address, no secret, no upstream name', async () => {
    const closed = await routing('/chat')
    assert.deepEqual([closed.object, closed.model], ['routing', 'chat'])
    assert.deepEqual(
      closed.candidates.map(({ id, region, circuit }) => [id, region, circuit]),
      [
        ['line-0', 'eu', 'closed'],
        ['line-1', null, 'closed'],
      ],
    )
    const headers = { authorization: `Bearer ${ALL}` }
    const body = { model: 'chat', messages: [{ role: 'user', content: 'hi' }] }
    await gateway.post('/v1/chat/completions', body, { headers })
    const opened = await routing('/chat')
    assert.equal(opened.candidates[0]?.circuit, 'open')
    assert.deepEqual(
      Object.keys(opened.candidates[0] ?? {}).sort(),
      ['circuit', 'enabled', 'id', 'priority', 'protocol', 'provider', 'region', 'weight'],
      'nothing from which the load of others can be read',
    )
    const { host, port } = new URL(upstream.url)
    for (const hidden of [SECRET, host, port, 'http'])
      assert.ok(!JSON.stringify(opened).includes(hidden), hidden)
    assert.deepEqual((await routing('/embed')).candidates, [])
  })

  it('is read by the OpenAI SDK', async () => {
    const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: SOME, maxRetries: 0 })
    const ids: string[] = []
    for await (const model of client.models.list()) ids.push(model.id)
    assert.deepEqual(ids, ['org/chat:1', 'embed'])
    const model = await client.models.retrieve('org/chat:1')
    assert.deepEqual([model.id, model.object, typeof model.created], ['org/chat:1', 'model', 'number'])
    await assert.rejects(client.models.retrieve('chat'), OpenAI.NotFoundError)
  })

  it('is read by the Anthropic SDK', async () => {
    const client = new Anthropic({ baseURL: gateway.url, apiKey: SOME, maxRetries: 0 })
    const ids: string[] = []
    for await (const model of client.models.list()) ids.push(model.id)
    assert.deepEqual(ids, ['org/chat:1', 'embed'])
    const model = await client.models.retrieve('org/chat:1')
    assert.deepEqual([model.id, model.type, model.display_name], ['org/chat:1', 'model', 'org/chat:1'])
    assert.ok(!Number.isNaN(Date.parse(model.created_at)))
    await assert.rejects(client.models.retrieve('chat'), Anthropic.NotFoundError)
  })
})
