import assert from 'node:assert/strict'
import { test } from 'node:test'
import { chatBody } from '../../support/gateway.ts'
import { chatAnswer, startUpstream } from '../../support/scripted-upstream.ts'
import { KEY, startObserved } from './observed-gateway.ts'

const MADE_UP = 100

test('hundreds of made-up models, keys, paths, methods and headers make no label of their own', async (t) => {
  const upstream = await startUpstream((res) => chatAnswer(res))
  t.after(() => upstream.close())
  const gateway = await startObserved(t, { lines: [{ url: upstream.url }] })
  await gateway.post('/v1/chat/completions', chatBody())
  const before = await gateway.scrape()

  for (let i = 0; i < MADE_UP; i += 50) {
    await Promise.all(
      Array.from({ length: 50 }, (_, j) => i + j).map(async (n) => {
        const word = `made-up-${n}`
        await gateway.post('/v1/chat/completions', chatBody({ model: word }), { 'x-request-id': word })
        await fetch(`${gateway.url}/v1/${word}`, {
          method: 'PROPFIND',
          headers: { authorization: `Bearer ${KEY}`, traceparent: word },
        })
        await gateway.post('/v1/messages', chatBody(), { authorization: `Bearer ${word}` })
      }),
    )
  }

  const after = await gateway.scrape()
  assert.doesNotMatch(after.text, /made-up/)
  assert.doesNotMatch(after.text, /acme|sk-|127\.0\.0\.1|req_/, 'no account, key, address or request id')
  assert.deepEqual([...after.valuesOf('gen_ai_request_model')].toSorted(), ['chat', 'other'])
  const calls = after.of('model_gateway_calls_total')
  const unknown = { gen_ai_request_model: 'other', error_type: 'model_not_found' }
  assert.equal(after.sum('model_gateway_calls_total', unknown), MADE_UP)
  assert.equal(after.sum('model_gateway_calls_total'), 1 + 3 * MADE_UP)
  assert.equal(calls.length, 4, 'one for each way to end')
  const ofCalls = ({ samples }: typeof after) =>
    samples.filter(({ name }) => /^(gen_ai|model_gateway)_/.test(name))
  assert.ok(ofCalls(after).length - ofCalls(before).length < 10, 'hundreds of calls, a few series')
})
