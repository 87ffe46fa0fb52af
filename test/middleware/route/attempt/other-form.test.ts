import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { cleaningUp } from '../../../support/clean-up.ts'
import {
  ANTHROPIC,
  ANTHROPIC_STREAM,
  answer,
  exchange,
  gatewayFor,
  type Mode,
  modeName,
  OPENAI,
  OPENAI_STREAM,
  saidTo,
} from '../../../support/exchange.ts'
import { messageItem, responseBody, responseEvents } from '../../../support/responses-upstream.ts'
import {
  answerJson,
  chatAnswer,
  chatChunk,
  startUpstream,
  stream,
} from '../../../support/scripted-upstream.ts'

/** The form that the caller asks for, and the form that the upstream sends instead. */
const PAIRS: readonly (readonly [asked: Mode, sent: Mode])[] = [
  [OPENAI, OPENAI_STREAM],
  [OPENAI_STREAM, OPENAI],
  [ANTHROPIC, ANTHROPIC_STREAM],
  [ANTHROPIC_STREAM, ANTHROPIC],
  // Translated lines.
  [OPENAI, ANTHROPIC_STREAM],
  [OPENAI_STREAM, ANTHROPIC],
  [ANTHROPIC, OPENAI_STREAM],
  [ANTHROPIC_STREAM, OPENAI],
]

const call = { id: 'call_1', type: 'function', function: { name: 'f', arguments: '{"a":1}' } }

describe('an answer in the form that was not asked for', async () => {
  const cleanUp = cleaningUp()
  const upstream = await startUpstream()
  cleanUp.after(() => upstream.close())

  for (const [asked, sent] of PAIRS) {
    it(`is turned into it: asked ${modeName(asked)}, sent ${modeName(sent)}`, async (t) => {
      upstream.script = (res) => answer(res, sent, 'Bonjour')
      const gateway = await gatewayFor(t, { lines: [{ url: upstream.url, protocol: sent.protocol }] })
      const got = await exchange(gateway, asked)
      assert.equal(got.status, 200, got.text)
      assert.equal(saidTo(asked, got), 'Bonjour')
      assert.equal(got.broken, false)
      const type = asked.stream ? /^text\/event-stream/ : /^application\/json/
      assert.match(got.headers.get('content-type') ?? '', type)
      const { outcome, usage, routing } = await gateway.entry(got.requestId)
      assert.equal(outcome, 'completed')
      assert.equal(usage?.source, 'measured')
      assert.equal(routing?.attempts.length, 1)
    })
  }

  it('keeps the calls of tools', async (t) => {
    const whole = {
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: null, tool_calls: [call] },
          finish_reason: 'tool_calls',
        },
      ],
    }
    upstream.script = (res) => chatAnswer(res, '', whole)
    const gateway = await gatewayFor(t, { lines: [{ url: upstream.url }] })
    assert.match((await exchange(gateway, OPENAI_STREAM)).text, /call_1.*\\"a\\":1/)
    upstream.script = (res) =>
      stream(res, [
        chatChunk({ role: 'assistant', content: null }),
        chatChunk({ tool_calls: [{ index: 0, ...call, function: { name: 'f', arguments: '{"a"' } }] }),
        chatChunk({ tool_calls: [{ index: 0, function: { arguments: ':1}' } }] }),
        chatChunk({}, 'tool_calls'),
        'data: [DONE]\n\n',
      ])
    const { choices } = JSON.parse((await exchange(gateway, OPENAI)).text)
    assert.deepEqual(choices[0].message.tool_calls, [call])
    assert.equal(choices[0].finish_reason, 'tool_calls')
  })

  it('declines behind what it has said', async (t) => {
    const message = { role: 'assistant', content: 'The title is X. ', refusal: 'I cannot quote more.' }
    const whole = { choices: [{ index: 0, message, finish_reason: 'stop' }] }
    upstream.script = (res) => answerJson(res, 200, whole)
    const gateway = await gatewayFor(t, { lines: [{ url: upstream.url, endpoints: ['chat/completions'] }] })
    const got = await exchange(gateway, ANTHROPIC_STREAM)
    assert.equal(saidTo(ANTHROPIC_STREAM, got), 'The title is X. I cannot quote more.')
    const response = await gateway.post('/v1/responses', { model: 'chat', input: 'hi', stream: true })
    const text = await response.text()
    assert.match(text, /"content_index":0,"part":\{"type":"output_text"/)
    assert.match(text, /"content_index":1,"part":\{"type":"refusal"/)
  })

  it('is judged as any other: errors, no output, and a stream that ends too early', async (t) => {
    const gateway = await gatewayFor(t, { lines: [{ url: upstream.url }] })
    const codeOf = async (mode: Mode): Promise<string | undefined> => {
      gateway.lines.liftRests('line-0')
      return (await exchange(gateway, mode)).errorCode
    }
    upstream.script = (res) => answerJson(res, 200, { error: { code: 'context_length_exceeded' } })
    assert.equal(await codeOf(OPENAI_STREAM), 'context_too_long')
    upstream.script = (res) => chatAnswer(res, '')
    assert.equal(await codeOf(OPENAI_STREAM), 'empty_completion')
    upstream.script = (res) => stream(res, [`data: ${JSON.stringify({ error: { code: 429 } })}\n\n`])
    assert.equal(await codeOf(OPENAI), 'upstream_rate_limited')
    upstream.script = (res) => stream(res, [chatChunk({ content: 'Hel' })])
    assert.equal(await codeOf(OPENAI), 'upstream_error')
  })

  it('of /v1/responses, both ways', async (t) => {
    const gateway = await gatewayFor(t, { lines: [{ url: upstream.url }] })
    const ask = async (streamed: boolean): Promise<string> => {
      const response = await gateway.post('/v1/responses', { model: 'chat', input: 'hi', stream: streamed })
      assert.equal(response.status, 200)
      return response.text()
    }
    upstream.script = (res) => stream(res, responseEvents(['Bon', 'jour']))
    assert.equal(JSON.parse(await ask(false)).output[0].content[0].text, 'Bonjour')
    upstream.script = (res) => answerJson(res, 200, responseBody([messageItem('Bonjour')]))
    const text = await ask(true)
    assert.match(text, /response\.output_text\.delta[^\n]*\n[^\n]*"delta":"Bonjour"/)
    assert.match(text, /event: response\.completed/)
  })
})
