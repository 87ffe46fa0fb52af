import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import OpenAI, { AzureOpenAI } from 'openai'
import { envelopeOf } from '../support/answer-bodies.ts'
import { type AssembledGateway, assembledGateway } from '../support/assembled-gateway.ts'
import { cleaningUp } from '../support/clean-up.ts'
import { chatBody, KEY } from '../support/gateway.ts'
import {
  answerJson,
  chatAnswer,
  chatEvents,
  type ScriptedUpstream,
  startUpstream,
  stream,
} from '../support/scripted-upstream.ts'

const VERSION = '2024-10-21'

let upstream: ScriptedUpstream
let served: AssembledGateway
const cleanUp = cleaningUp()
before(async () => {
  upstream = await startUpstream((res, { path, json }) => {
    if (path === '/v1/embeddings')
      return answerJson(res, 200, {
        object: 'list',
        data: [{ object: 'embedding', index: 0, embedding: [1] }],
        usage: { prompt_tokens: 3, total_tokens: 3 },
      })
    if (path.startsWith('/v1/audio')) return answerJson(res, 200, { path })
    if (json.stream) return stream(res, chatEvents(['Hel', 'lo']))
    return chatAnswer(res)
  })
  cleanUp.after(() => upstream.close())
  served = await assembledGateway(cleanUp, {
    models: [
      { id: 'chat', kind: 'chat' },
      { id: 'org/model:1', kind: 'chat' },
      { id: 'vectors', kind: 'embedding' },
    ],
    lines: [
      {
        id: 'line',
        provider: 'p',
        protocol: 'openai',
        baseUrl: `${upstream.url}/v1`,
        endpoints: ['chat/completions', 'embeddings'],
        models: { chat: 'up', 'org/model:1': 'up-1', vectors: 'up-v' },
      },
    ],
    keys: [
      { id: 'key_acme', account: 'acme', secret: KEY },
      { id: 'off', account: 'acme', secret: 'sk-off', enabled: false },
      { id: 'one', account: 'acme', secret: 'sk-one', allowModels: ['vectors'] },
    ],
    passThrough: [{ path: '/v1/audio/*rest', lines: ['line'] }],
  })
})

const azure = (deployment?: string) =>
  new AzureOpenAI({
    endpoint: served.url,
    apiKey: KEY,
    apiVersion: VERSION,
    maxRetries: 0,
    ...(deployment !== undefined && { deployment }),
  })
const asked = { messages: [{ role: 'user' as const, content: 'hi' }] }
const lastSent = () => upstream.requests.at(-1)

describe("Azure's client", () => {
  it('names the model in the path: plain, streamed, embeddings', async () => {
    const client = azure()
    const plain = await client.chat.completions.create({ ...asked, model: 'chat' })
    assert.equal(plain.choices[0]?.message.content, 'Hello')
    assert.deepEqual([lastSent()?.path, lastSent()?.json.model], ['/v1/chat/completions', 'up'])
    assert.equal(lastSent()?.headers['api-key'], undefined)
    const streamed = await client.chat.completions.stream({ ...asked, model: 'chat' }).finalChatCompletion()
    assert.equal(streamed.choices[0]?.message.content, 'Hello')
    const vectors = await client.embeddings.create({ model: 'vectors', input: 'x', encoding_format: 'float' })
    assert.deepEqual(vectors.data[0]?.embedding, [1])
  })

  it('gets the model of its deployment, whatever the body says', async () => {
    await azure('org/model:1').chat.completions.create({ ...asked, model: 'nobody' })
    assert.equal(lastSent()?.json.model, 'up-1')
    const bare = await served.send('/openai/deployments/chat/chat/completions', asked)
    assert.equal(bare.status, 200)
    assert.equal(lastSent()?.json.model, 'up')
    const { model, usage, path } = await served.entryOf(bare)
    assert.deepEqual(
      [model, usage?.source, path],
      ['chat', 'measured', '/openai/deployments/chat/chat/completions'],
    )
  })

  it('uses the other paths of the API, with and without its version', async () => {
    const listed = (await azure().models.list()).data.map(({ id }) => id)
    assert.deepEqual(listed, ['chat', 'org/model:1', 'vectors'])
    const v1 = new OpenAI({
      baseURL: `${served.url}/openai/v1`,
      apiKey: KEY,
      defaultQuery: { 'api-version': 'preview' },
    })
    assert.equal((await v1.models.retrieve('chat')).id, 'chat')
    const answer = await v1.chat.completions.create({ ...asked, model: 'chat' })
    assert.equal(answer.choices[0]?.message.content, 'Hello')
    const responded = await azure().responses.create({ model: 'chat', input: 'hi' })
    assert.equal(responded.output_text, 'Hello')
  })

  it('passes paths on without its version, which means nothing to the line', async () => {
    for (const path of ['/openai/v1/audio/voices', '/openai/deployments/tts/audio/voices']) {
      const answer = await served.send(`${path}?a=1&api-version=${VERSION}&b=%20`)
      assert.deepEqual(await answer.json(), { path: '/v1/audio/voices?a=1&b=%20' })
    }
  })
})

describe("the keys of Azure's and Google's clients", () => {
  const path = `/openai/deployments/chat/chat/completions?api-version=${VERSION}`
  const ask = (at: string, headers: Record<string, string>) =>
    fetch(served.url + at, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(chatBody()),
    })
  const rows: [headers: Record<string, string>, status: number, code?: string][] = [
    [{ 'api-key': KEY }, 200],
    [{ 'x-goog-api-key': KEY }, 200],
    [{ authorization: `Bearer ${KEY}`, 'api-key': KEY, 'x-goog-api-key': KEY }, 200],
    [{}, 401, 'missing_credential'],
    [{ 'api-key': 'sk-nobody' }, 401, 'invalid_credential'],
    [{ 'api-key': KEY, 'x-goog-api-key': 'sk-2' }, 401, 'invalid_credential'],
    [{ 'api-key': KEY, authorization: 'Bearer sk-2' }, 401, 'invalid_credential'],
    [{ 'api-key': KEY, 'x-api-key': 'sk-2' }, 401, 'invalid_credential'],
    [{ 'api-key': 'sk-off' }, 403, 'key_disabled'],
    [{ 'x-goog-api-key': 'sk-one' }, 403, 'model_not_allowed'],
  ]
  for (const [headers, status, code] of rows)
    it(`are checked as every key is: ${JSON.stringify(headers)}`, async () => {
      for (const at of [path, '/v1/chat/completions', '/openai/v1/chat/completions']) {
        const before = upstream.requests.length
        const answer = await ask(at, headers)
        assert.equal(answer.status, status, at)
        if (code === undefined) await answer.json()
        else assert.equal((await envelopeOf(answer)).error.code, code)
        assert.equal(upstream.requests.length - before, status === 200 ? 1 : 0)
      }
    })

  it('are asked for before anything is said of the path', async () => {
    const unknown = [
      '/openai/',
      '/openai/deployments/chat',
      '/openai/openai/v1/models',
      '/openai/x',
      '/openai/v1',
    ]
    for (const at of unknown) {
      const refused = await ask(at, {})
      assert.ok(refused.status === 401 || refused.status === 404, `${at}: ${refused.status}`)
      assert.ok((await envelopeOf(refused)).request_id)
      const found = await ask(at, { 'api-key': KEY })
      assert.equal((await envelopeOf(found)).error.code, 'not_found', at)
    }
    const broken = await ask('/openai/deployments/%E0%A4%A/chat/completions', { 'api-key': KEY })
    assert.ok(broken.status === 400 || broken.status === 404)
    const none = await ask('/openai/deployments/none/chat/completions', { 'api-key': KEY })
    assert.deepEqual([none.status, (await envelopeOf(none)).error.code], [404, 'model_not_found'])
  })
})
