import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { ModelKind } from '../../../lib/core/catalog/index.ts'
import { OPERATIONS } from '../../../lib/core/operations/index.ts'
import { ENDPOINTS } from '../../support/endpoints.ts'
import { suiteGateway } from '../../support/suite-gateway.ts'
import { refusalOf } from './refusal.ts'

const SERVED_AT: Readonly<Record<ModelKind, string>> = {
  chat: 'POST /v1/chat/completions',
  embedding: 'POST /v1/embeddings',
  image: 'POST /v1/images/generations',
  rerank: 'POST /v1/rerank',
  video: 'POST /v1/videos',
}
const KINDS = Object.keys(SERVED_AT) as ModelKind[]

/** A body that is right for the endpoint that serves a kind. */
const OWN_BODY: Readonly<Record<ModelKind, object>> = {
  chat: { messages: [{ role: 'user', content: 'hi' }], stream: true },
  embedding: { input: ['some', 'words'] },
  image: { prompt: 'a cat', n: 2 },
  rerank: { query: 'which?', documents: ['this', 'that'] },
  video: { prompt: 'a cat that runs', seconds: '4' },
}

describe('a model of another kind', async () => {
  const { upstream, gateway } = await suiteGateway((url) => ({
    lines: [{ url, models: Object.fromEntries(KINDS.map((kind) => [`${kind}-1`, 'upstream'])) }],
    config: { models: KINDS.map((kind) => ({ id: `${kind}-1`, kind })) },
  }))

  it('is tried at every endpoint', () => {
    const tried = new Set(ENDPOINTS.map(({ path }) => path))
    assert.deepEqual(
      OPERATIONS.filter(({ path }) => !tried.has(path)),
      [],
    )
  })

  for (const { path, kind: served, protocol, request } of ENDPOINTS) {
    for (const kind of KINDS) {
      if (kind === served) continue
      const bodies = {
        'the body of the endpoint': JSON.parse(request(`${kind}-1`).body) as object,
        'the body of its own': { model: `${kind}-1`, ...OWN_BODY[kind] },
        'no further member': { model: `${kind}-1` },
      }
      for (const [which, body] of Object.entries(bodies)) {
        it(`${kind} at ${path} with ${which}: the hint ${SERVED_AT[kind]}`, async () => {
          const refusal = await refusalOf(await gateway.post(path, body))
          assert.equal(refusal.status, 400)
          assert.ok(refusal.message.includes(SERVED_AT[kind]), refusal.message)
          if (protocol === 'openai')
            assert.deepEqual([refusal.code, refusal.param], ['invalid_request', 'model'])
          else assert.equal(refusal.type, 'invalid_request_error')
          assert.equal(upstream.requests.length, 0)
        })
      }
    }
  }

  it('is noted in the call log', async () => {
    const response = await gateway.post('/v1/rerank', { model: 'image-1', prompt: 'a cat' })
    const entry = await gateway.entry(response.headers.get('x-request-id'))
    assert.deepEqual([entry.model, entry.error_code, entry.usage], ['image-1', 'invalid_request', null])
  })
})
