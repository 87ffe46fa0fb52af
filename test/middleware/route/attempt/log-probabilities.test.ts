import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { exchange, OPENAI, OPENAI_STREAM } from '../../../support/exchange.ts'
import { chatChunk, chatEvents, stream } from '../../../support/scripted-upstream.ts'
import { suiteGateway } from '../../../support/suite-gateway.ts'

const TOKENS = 3000
const one = (i: number) => ({ token: ` ${i}"]`, logprob: -i / 7, bytes: [32, 49] })
/** As for `top_logprobs: 20`: 60 members for each token. */
const LOGPROBS = {
  content: Array.from({ length: TOKENS }, (_, i) => ({
    ...one(i),
    top_logprobs: Array.from({ length: 20 }, (_, j) => one(j)),
  })),
}

describe('the log probabilities of a long answer', async () => {
  const { upstream, gateway } = await suiteGateway()

  it('reach their caller with it, byte for byte, and it is charged as reported', async () => {
    const usage = { prompt_tokens: 7, completion_tokens: TOKENS, total_tokens: 7 + TOKENS }
    const message = { role: 'assistant', content: 'word '.repeat(TOKENS) }
    const choices = [{ index: 0, message, logprobs: LOGPROBS, finish_reason: 'stop' }]
    const text = JSON.stringify({ id: 'c', object: 'chat.completion', choices, usage }, null, 1)
    upstream.script = (res) => void res.writeHead(200, { 'content-type': 'application/json' }).end(text)
    const got = await exchange(gateway, OPENAI)
    assert.equal(got.status, 200)
    assert.ok(got.text === text)
    const entry = await gateway.entry(got.requestId)
    assert.deepEqual([entry.usage?.output_tokens, entry.usage?.source], [TOKENS, 'measured'])
  })

  it('reach their caller in one event of a stream', async () => {
    const [role = '', , ...end] = chatEvents(['word'])
    const choice = { index: 0, delta: { content: 'words' }, logprobs: LOGPROBS, finish_reason: null }
    const large = chatChunk({}, null, { choices: [choice] })
    upstream.script = (res) => stream(res, [role, large, ...end])
    const got = await exchange(gateway, OPENAI_STREAM, { stream_options: { include_usage: true } })
    assert.equal(got.broken, false)
    assert.ok(got.text === [role, large, ...end].join(''))
    assert.equal((await gateway.entry(got.requestId)).outcome, 'completed')
  })
})
