import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { chatBody, messageBody } from '../../support/gateway.ts'
import { suiteGateway } from '../../support/suite-gateway.ts'
import { refusalOf } from './refusal.ts'

const BODIES: Readonly<Record<string, object>> = {
  '/v1/chat/completions': chatBody(),
  '/v1/messages': messageBody(),
  '/v1/responses': { model: 'chat', input: 'hi' },
  '/v1/embeddings': { model: 'vectors', input: 'hi' },
}

describe('a request that names further models for the upstream to fall back to', async () => {
  const { upstream, gateway } = await suiteGateway((url) => ({
    lines: [{ url }],
    config: {
      models: [
        { id: 'chat', kind: 'chat' },
        { id: 'vectors', kind: 'embedding' },
      ],
    },
  }))

  for (const [path, body] of Object.entries(BODIES))
    for (const member of ['models', 'fallbacks'])
      it(`is refused, and not sent: ${member} of ${path}`, async () => {
        for (const value of [['dear-model'], 'dear-model', []]) {
          const response = await gateway.post(path, { ...body, [member]: value })
          assert.equal(response.status, 400)
          const { message, param } = await refusalOf(response)
          assert.match(message, /^The `(models|fallbacks)` parameter is not supported\. Leave it out/)
          if (path !== '/v1/messages') assert.equal(param, member)
        }
        assert.equal(upstream.requests.length, 0)
      })

  it('is served where it names none', async () => {
    for (const more of [{ models: null }, { fallbacks: null }, { fallbacks: 'default' }]) {
      const response = await gateway.post('/v1/chat/completions', chatBody(more))
      assert.equal(response.status, 200)
    }
  })
})
