import assert from 'node:assert/strict'
import { beforeEach, describe, it } from 'node:test'
import { cleaningUp } from '../../../support/clean-up.ts'
import { gatewayFor, readExchange } from '../../../support/exchange.ts'
import { messageBody, type TestGateway } from '../../../support/gateway.ts'
import { answerJson, startUpstream } from '../../../support/scripted-upstream.ts'

const PATH = '/v1/messages/count_tokens'

describe('a count of tokens', async () => {
  const cleanUp = cleaningUp()
  const upstream = await startUpstream((res) => answerJson(res, 200, { input_tokens: 4711 }))
  cleanUp.after(() => upstream.close())
  beforeEach(() => {
    upstream.requests.length = 0
  })
  const count = async (gateway: TestGateway, extra: object = {}) => {
    const got = await readExchange(await gateway.post(PATH, { ...messageBody(), ...extra }))
    return { got, entry: await gateway.entry(got.requestId) }
  }

  const LINES = {
    'an OpenAI-style line': [{ url: upstream.url }],
    'an Anthropic-style line without it': [
      { url: upstream.url, protocol: 'anthropic' as const, endpoints: ['messages'] },
    ],
    'both, switched off or not': [
      { url: upstream.url },
      { url: upstream.url, protocol: 'anthropic' as const, enabled: false },
    ],
  }
  for (const [name, lines] of Object.entries(LINES)) {
    it(`is the gateway's estimate, and says so: ${name}`, async (t) => {
      const gateway = await gatewayFor(t, { lines })
      const { got, entry } = await count(gateway, { system: 'Be brief.', max_tokens: undefined })
      assert.equal(got.status, 200, got.text)
      assert.deepEqual(got.json, { input_tokens: entry.request?.estimated_input_tokens })
      assert.ok((entry.request?.estimated_input_tokens ?? 0) > 5)
      assert.equal(got.headers.get('x-gateway-estimated'), 'true')
      assert.match(got.headers.get('content-type') ?? '', /^application\/json/)
      assert.deepEqual([entry.outcome, entry.status, entry.error_code], ['completed', 200, null])
      assert.deepEqual([entry.usage, entry.routing?.attempts], [null, []])
      assert.equal(entry.routing?.eliminated.length, lines.length)
      assert.equal(upstream.requests.length, 0)
    })
  }

  it('is the line’s where one has it, and says nothing', async (t) => {
    const gateway = await gatewayFor(t, {
      lines: [{ url: upstream.url }, { url: upstream.url, protocol: 'anthropic' }],
    })
    const { got } = await count(gateway)
    assert.deepEqual(got.json, { input_tokens: 4711 })
    assert.equal(got.headers.get('x-gateway-estimated'), null)
  })

  it('is refused where the caller allows no line, and where the line that has it refuses', async (t) => {
    const gateway = await gatewayFor(t, {
      lines: [{ url: upstream.url }, { url: upstream.url, protocol: 'anthropic' }],
    })
    const none = await count(gateway, { provider: { only: ['nobody'] } })
    assert.deepEqual([none.got.status, none.entry.error_code], [503, 'no_candidate'])
    upstream.script = (res) => answerJson(res, 429, { type: 'error', error: { type: 'rate_limit_error' } })
    for (const code of ['upstream_rate_limited', 'upstream_rate_limited']) {
      const { got, entry } = await count(gateway)
      assert.equal(entry.error_code, code)
      assert.equal(got.headers.get('x-gateway-estimated'), null)
    }
  })
})
