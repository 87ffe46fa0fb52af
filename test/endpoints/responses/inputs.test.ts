import assert from 'node:assert/strict'
import { beforeEach, describe, it } from 'node:test'
import { cleaningUp } from '../../support/clean-up.ts'
import { gatewayFor, readExchange } from '../../support/exchange.ts'
import { responseBody } from '../../support/responses-upstream.ts'
import { answerJson, startUpstream } from '../../support/scripted-upstream.ts'

const COUNT = '/v1/responses/input_tokens'
const COMPACT = '/v1/responses/compact'
const compaction = { id: 'cmp_1', type: 'compaction', encrypted_content: 'c2VhbGVk' }

describe('a question about the input of a response', async () => {
  const cleanUp = cleaningUp()
  const upstream = await startUpstream((res, { path }) =>
    path.endsWith('/input_tokens')
      ? answerJson(res, 200, { object: 'response.input_tokens', input_tokens: 4711 })
      : answerJson(res, 200, responseBody([compaction])),
  )
  cleanUp.after(() => upstream.close())
  beforeEach(() => {
    upstream.requests.length = 0
  })
  const body = { model: 'chat', input: [{ role: 'user', content: 'hi' }] }

  it('is answered by the line that has it', async (t) => {
    const gateway = await gatewayFor(t, { lines: [{ url: upstream.url }] })
    const count = await readExchange(await gateway.post(COUNT, body))
    assert.deepEqual(count.json, { object: 'response.input_tokens', input_tokens: 4711 })
    assert.equal(count.headers.get('x-gateway-estimated'), null)
    const compacted = await readExchange(await gateway.post(COMPACT, body))
    assert.equal(compacted.status, 200, compacted.text)
    assert.deepEqual((compacted.json as { output: unknown }).output, [compaction])
    assert.deepEqual(
      upstream.requests.map(({ path }) => path),
      [COUNT, COMPACT],
    )
    const [counted, written] = [
      await gateway.entry(count.requestId),
      await gateway.entry(compacted.requestId),
    ]
    assert.equal(counted.usage, null)
    assert.equal(written.usage?.source, 'measured')
    assert.ok((written.usage?.output_tokens ?? 0) > 0)
  })

  const WITHOUT = [
    { url: upstream.url, protocol: 'anthropic' as const },
    { url: upstream.url, endpoints: ['chat/completions', 'responses'] },
  ]
  for (const line of WITHOUT) {
    it(`is estimated or refused on lines without it: ${line.protocol ?? 'openai'}`, async (t) => {
      const gateway = await gatewayFor(t, { lines: [line] })
      const count = await readExchange(await gateway.post(COUNT, body))
      assert.equal(count.status, 200, count.text)
      const { request } = await gateway.entry(count.requestId)
      assert.deepEqual(count.json, {
        object: 'response.input_tokens',
        input_tokens: request?.estimated_input_tokens,
      })
      assert.equal(count.headers.get('x-gateway-estimated'), 'true')
      const compacted = await readExchange(await gateway.post(COMPACT, body))
      assert.deepEqual([compacted.status, compacted.errorCode], [503, 'no_candidate'])
      const { routing } = await gateway.entry(compacted.requestId)
      assert.match(routing?.eliminated[0]?.detail ?? '', /has no responses\/compact|line uses anthropic/)
      assert.equal(upstream.requests.length, 0)
    })
  }

  it('does not stream', async (t) => {
    const gateway = await gatewayFor(t, { lines: [{ url: upstream.url }] })
    for (const path of [COUNT, COMPACT]) {
      const refused = await readExchange(await gateway.post(path, { ...body, stream: true }))
      assert.deepEqual([refused.status, refused.errorCode], [400, 'unsupported_feature'])
    }
    assert.equal(upstream.requests.length, 0)
  })
})
