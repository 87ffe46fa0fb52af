import assert from 'node:assert/strict'
import { it } from 'node:test'
import { ANTHROPIC, exchange, gatewayFor } from '../../../support/exchange.ts'
import { messageAnswer, startUpstream } from '../../../support/scripted-upstream.ts'

it('max_tokens: 0, which fills the prompt cache, gets its answer without output', async (t) => {
  const upstream = await startUpstream((res) => {
    const usage = { input_tokens: 3, cache_creation_input_tokens: 4000, output_tokens: 0 }
    messageAnswer(res, '', { content: [], stop_reason: 'max_tokens', usage })
  })
  t.after(() => upstream.close())
  const lines = [1, 2].map(() => ({ url: upstream.url, protocol: 'anthropic' as const }))
  const gateway = await gatewayFor(t, { lines })
  const { status, json, requestId } = await exchange(gateway, ANTHROPIC, { max_tokens: 0 })
  assert.equal(status, 200)
  assert.deepEqual((json as { content: unknown }).content, [])
  assert.equal(upstream.requests.length, 1, 'no other line was tried')
  const { usage } = await gateway.entry(requestId)
  assert.equal(usage?.input_tokens, 4003)
  assert.equal(usage?.cache_write_tokens, 4000)
  assert.equal(usage?.output_tokens, 0)
  assert.equal(usage?.source, 'measured')
})
