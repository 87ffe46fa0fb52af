import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { estimateTokens } from '../../../lib/core/operations/index.ts'
import { ENDPOINTS } from '../../support/endpoints.ts'
import { suiteGateway } from '../../support/suite-gateway.ts'
import { refusalOf } from './refusal.ts'

const EMBEDDINGS = '/v1/embeddings'
const COMPLETIONS = '/v1/completions'
const IMAGES = '/v1/images/generations'
const RERANK = '/v1/rerank'
const COUNT = '/v1/messages/count_tokens'
const MODELS = {
  [EMBEDDINGS]: 'embedding',
  [COMPLETIONS]: 'chat',
  [IMAGES]: 'image',
  [RERANK]: 'rerank',
  [COUNT]: 'chat',
} as const
type Path = keyof typeof MODELS

const WORDS = 'some words of English text'
const TOKENS = estimateTokens(WORDS)
const long = (tokens: number) => ' the'.repeat(tokens)

describe('a body', async () => {
  const kinds = ['chat', 'embedding', 'image', 'rerank'] as const
  const { upstream, gateway } = await suiteGateway((url) => ({
    lines: [
      { url, models: Object.fromEntries(kinds.map((kind) => [kind, 'upstream'])) },
      { url, protocol: 'anthropic', models: { chat: 'upstream' } },
    ],
    config: { models: kinds.map((kind) => ({ id: kind, kind, contextWindow: 100 })) },
  }))
  upstream.script = (res, request, index) =>
    ENDPOINTS.find(({ path }) => path === request.path)?.answer(res, request, index)
  const post = (path: Path, body: object) => gateway.post(path, { model: MODELS[path], ...body })

  const faults: [path: Path, param: string, body: Record<string, unknown>][] = [
    [EMBEDDINGS, 'input', {}],
    [EMBEDDINGS, 'input', { input: null }],
    [EMBEDDINGS, 'input', { input: { text: 'a' } }],
    [EMBEDDINGS, 'input', { input: [] }],
    [EMBEDDINGS, 'input[1]', { input: ['a', 1] }],
    [EMBEDDINGS, 'input[2]', { input: [1, 2, 2.5] }],
    [EMBEDDINGS, 'input[1]', { input: [1, -1] }],
    [EMBEDDINGS, 'input[0]', { input: [null] }],
    [EMBEDDINGS, 'input[1]', { input: [[1], []] }],
    [EMBEDDINGS, 'input[1][1]', { input: [[1], [2, '3']] }],
    [EMBEDDINGS, 'provider.sort', { input: 'a', provider: { sort: 'beauty' } }],
    [COMPLETIONS, 'prompt', {}],
    [COMPLETIONS, 'prompt', { prompt: 7 }],
    [COMPLETIONS, 'prompt[1]', { prompt: ['a', ['b']] }],
    [COMPLETIONS, 'n', { prompt: 'a', n: 0 }],
    [COMPLETIONS, 'best_of', { prompt: 'a', best_of: 1000 }],
    [COMPLETIONS, 'max_tokens', { prompt: 'a', max_tokens: -1 }],
    [COMPLETIONS, 'stream_options', { prompt: 'a', stream_options: 'usage' }],
    [IMAGES, 'prompt', {}],
    [IMAGES, 'prompt', { prompt: '' }],
    [IMAGES, 'n', { prompt: 'a', n: 1.5 }],
    [IMAGES, 'n', { prompt: 'a', n: 129 }],
    [RERANK, 'query', { documents: ['a'] }],
    [RERANK, 'documents', { query: 'q' }],
    [RERANK, 'documents', { query: 'q', documents: [] }],
    [RERANK, 'documents[1]', { query: 'q', documents: ['a', 1] }],
    [RERANK, 'documents[0]', { query: 'q', documents: [['a']] }],
    [RERANK, 'top_n', { query: 'q', documents: ['a'], top_n: 0 }],
  ]
  for (const [path, param, body] of faults) {
    it(`${path}: ${JSON.stringify(body)} is refused, naming ${param}`, async () => {
      const refusal = await refusalOf(await post(path, body))
      assert.deepEqual([refusal.status, refusal.code, refusal.param], [400, 'invalid_request', param])
      assert.ok(refusal.message.startsWith(`${param}: `), refusal.message)
    })
  }

  it(`${COUNT}: needs messages and no max_tokens`, async () => {
    const refusal = await refusalOf(await post(COUNT, {}))
    assert.deepEqual([refusal.status, refusal.type], [400, 'invalid_request_error'])
    assert.match(refusal.message, /^messages: /)
  })

  for (const { path, kind, request } of ENDPOINTS) {
    if (!(path in MODELS) || path === COMPLETIONS || path === IMAGES) continue
    it(`${path}: a stream is unsupported_feature`, async () => {
      const before = upstream.requests.length
      const body = { ...(JSON.parse(request(kind).body) as object), stream: true }
      const refusal = await refusalOf(await gateway.post(path, body))
      assert.equal(refusal.status, 400)
      assert.match(refusal.message, /does not stream/)
      if (path !== COUNT) assert.deepEqual([refusal.code, refusal.param], ['unsupported_feature', 'stream'])
      assert.equal(upstream.requests.length, before)
    })
  }

  const counted: [path: Path, tokens: number, body: Record<string, unknown>][] = [
    [EMBEDDINGS, TOKENS, { input: WORDS }],
    [EMBEDDINGS, 2 * TOKENS, { input: [WORDS, WORDS] }],
    [EMBEDDINGS, 4, { input: [15339, 1917, 0, 1] }],
    [
      EMBEDDINGS,
      5,
      {
        input: [
          [1, 2],
          [3, 4, 5],
        ],
      },
    ],
    [COMPLETIONS, 3 + TOKENS, { prompt: WORDS }],
    [COMPLETIONS, 3 + 2 * TOKENS, { prompt: [WORDS, WORDS] }],
    [COMPLETIONS, 3 + 4 * TOKENS, { prompt: [WORDS, WORDS], suffix: WORDS }],
    [COMPLETIONS, 3 + 2, { prompt: [1, 2] }],
    [IMAGES, TOKENS, { prompt: WORDS }],
    [RERANK, 4 * TOKENS, { query: WORDS, documents: [WORDS, WORDS] }],
    [RERANK, 2 * TOKENS, { query: WORDS, documents: [{ text: WORDS, id: 7 }] }],
    [COUNT, 3 + 4 + TOKENS, { messages: [{ role: 'user', content: WORDS }] }],
  ]
  for (const [path, tokens, body] of counted) {
    it(`${path}: ${JSON.stringify(body).slice(0, 80)} counts ${tokens} tokens`, async () => {
      const response = await post(path, body)
      const entry = await gateway.entry(response.headers.get('x-request-id'))
      assert.equal(entry.request?.estimated_input_tokens, tokens)
    })
  }

  const tooLong: [path: Path, body: Record<string, unknown>][] = [
    [EMBEDDINGS, { input: ['short', long(200)] }],
    [COMPLETIONS, { prompt: long(200) }],
    [COMPLETIONS, { prompt: 'short', max_tokens: 200 }],
    [IMAGES, { prompt: long(200) }],
    [RERANK, { query: long(60), documents: ['short', long(60)] }],
  ]
  for (const [path, body] of tooLong) {
    it(`${path}: what does not fit at a time is context_too_long (${Object.keys(body)})`, async () => {
      assert.equal((await refusalOf(await post(path, body))).code, 'context_too_long')
    })
  }

  const fitting: [path: Path, body: Record<string, unknown>][] = [
    [EMBEDDINGS, { input: Array.from({ length: 50 }, () => long(50)) }],
    [COMPLETIONS, { prompt: [long(60), long(60)], max_tokens: 10 }],
    [RERANK, { query: 'which?', documents: Array.from({ length: 50 }, () => long(50)) }],
    [COUNT, { messages: [{ role: 'user', content: long(500) }] }],
  ]
  for (const [path, body] of fitting) {
    it(`${path}: what fits into the window one by one is sent`, async () => {
      const response = await post(path, body)
      assert.equal(response.status, 200, await response.text())
    })
  }
})
