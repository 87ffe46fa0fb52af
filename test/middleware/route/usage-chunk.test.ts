import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { cleaningUp } from '../../support/clean-up.ts'
import { exchange, OPENAI_STREAM, occurrences } from '../../support/exchange.ts'
import { startGateway } from '../../support/gateway.ts'
import { chatChunk, chatEvents, startUpstream, stream } from '../../support/scripted-upstream.ts'

describe('the usage chunk of an OpenAI-style stream', async () => {
  const cleanUp = cleaningUp()
  const upstream = await startUpstream((res) => stream(res, chatEvents(['Hel', 'lo'])))
  cleanUp.after(() => upstream.close())
  const gateway = await startGateway({ lines: [{ url: upstream.url }] })
  cleanUp.after(() => gateway.close())

  const CALLERS = [
    { who: 'said nothing of it', extra: {}, sent: { include_usage: true }, shown: 0 },
    {
      who: 'declined it',
      extra: { stream_options: { include_usage: false } },
      sent: { include_usage: true },
      shown: 0,
    },
    {
      who: 'set another option',
      extra: { stream_options: { include_obfuscation: false } },
      sent: { include_obfuscation: false, include_usage: true },
      shown: 0,
    },
    { who: 'sent null', extra: { stream_options: null }, sent: { include_usage: true }, shown: 0 },
    {
      who: 'asked for it',
      extra: { stream_options: { include_usage: true } },
      sent: { include_usage: true },
      shown: 1,
    },
  ]
  for (const { who, extra, sent, shown } of CALLERS) {
    it(`${shown ? 'goes to' : 'is withheld from'} a caller who ${who}, and is metered`, async () => {
      const got = await exchange(gateway, OPENAI_STREAM, extra)
      assert.deepEqual(upstream.requests.at(-1)?.json.stream_options, sent)
      assert.equal(occurrences(got.text, '"usage"'), shown)
      assert.match(got.text, /Hel[\s\S]*lo[\s\S]*"stop"[\s\S]*\[DONE\]\n\n$/)
      const { usage } = await gateway.entry(got.requestId)
      assert.deepEqual(usage, {
        input_tokens: 7,
        cached_input_tokens: 0,
        cache_write_tokens: 0,
        output_tokens: 2,
        source: 'measured',
      })
    })
  }

  it('is withheld in the middle of a stream too', async () => {
    const [, ...rest] = chatEvents(['Hel', 'lo'])
    const usage = `data: ${JSON.stringify({ choices: [], usage: { prompt_tokens: 5, completion_tokens: 1 } })}\n\n`
    upstream.script = (res) => stream(res, [...rest.slice(0, 1), usage, ...rest.slice(1)])
    const got = await exchange(gateway, OPENAI_STREAM)
    assert.equal(occurrences(got.text, '"usage"'), 0)
    assert.match(got.text, /Hel[\s\S]*lo/)
  })

  it('is part of an event with output where the upstream sends it so, and passes', async () => {
    const usage = { usage: { prompt_tokens: 5, completion_tokens: 2 } }
    upstream.script = (res) =>
      stream(res, [
        chatChunk({ content: 'Hello' }, null, usage),
        chatChunk({}, 'stop', usage),
        'data: [DONE]\n\n',
      ])
    const got = await exchange(gateway, OPENAI_STREAM)
    assert.match(got.text, /Hello/)
    const entry = await gateway.entry(got.requestId)
    assert.deepEqual([entry.usage?.input_tokens, entry.usage?.output_tokens], [5, 2])
  })

  it('is not asked for when the answer is not streamed', async () => {
    await exchange(gateway)
    assert.equal(upstream.requests.at(-1)?.json.stream_options, undefined)
  })
})
