import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { cleaningUp } from '../../../support/clean-up.ts'
import { dataOf, exchange, gatewayFor, OPENAI_STREAM, occurrences } from '../../../support/exchange.ts'
import { startGateway } from '../../../support/gateway.ts'
import { chatChunk, chatEvents, startUpstream, stream } from '../../../support/scripted-upstream.ts'

const nullLength = (where: string): number =>
  (where === 'with spaces' ? ', "usage": null' : ',"usage":null').length

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

  /** As OpenAI, as Python servers, and as one whose members stand in another order print it. */
  const NULLS: Readonly<Record<string, (chunk: object) => string>> = {
    'at the end': (chunk) => JSON.stringify({ ...chunk, usage: null }),
    'with spaces': (chunk) => JSON.stringify({ ...chunk, usage: null, x: 1 }, null, 1).replace(/\n */g, ' '),
    'at the beginning': (chunk) => JSON.stringify({ usage: null, ...chunk }),
  }
  for (const [where, print] of Object.entries(NULLS)) {
    it(`leaves no null in the chunks for who did not ask: ${where}`, async () => {
      const quoted = ',"usage":null, "usage": null'
      const chunk = (delta: object, finish_reason: string | null) =>
        print({ id: 'c', choices: [{ index: 0, delta, finish_reason }] })
      const data = [
        chunk({ role: 'assistant', content: '' }, null),
        ...['Hel', quoted, 'lo', 'lo'].map((content) => chunk({ content }, null)),
        chunk({ content: quoted }, 'stop'),
      ]
      const usage = JSON.stringify({ choices: [], usage: { prompt_tokens: 5, completion_tokens: 2 } })
      const events = [...data, usage, '[DONE]'].map((text) => `data: ${text}\n\n`)
      upstream.script = (res) => stream(res, events)
      const asked = await exchange(gateway, OPENAI_STREAM, { stream_options: { include_usage: true } })
      assert.equal(asked.text, events.join(''))
      const got = await exchange(gateway, OPENAI_STREAM)
      assert.deepEqual(
        dataOf(got.text),
        data.map((text) => {
          const { usage: _, ...rest } = JSON.parse(text)
          return rest
        }),
      )
      // Nothing else of the bytes changes.
      assert.equal(
        got.text.length,
        events.join('').length - nullLength(where) * data.length - `data: ${usage}\n\n`.length,
      )
    })
  }

  it('is not asked for on a line that is given no stream options, even if the caller asks', async (t) => {
    const bare = await gatewayFor(t, { lines: [{ url: upstream.url, body: { stream_options: null } }] })
    upstream.script = (res) =>
      stream(res, [chatChunk({ content: 'Hello' }), chatChunk({}, 'stop'), 'data: [DONE]\n\n'])
    for (const extra of [{}, { stream_options: { include_usage: true, include_obfuscation: false } }]) {
      const got = await exchange(bare, OPENAI_STREAM, extra)
      assert.equal(got.status, 200)
      assert.equal('stream_options' in (upstream.requests.at(-1)?.json ?? {}), false)
      const { usage } = await bare.entry(got.requestId)
      assert.equal(usage?.source, 'estimated')
      assert.ok((usage?.output_tokens ?? 0) > 0)
    }
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
