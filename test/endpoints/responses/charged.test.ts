import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  assertCharged,
  assertUncharged,
  billedGateway,
  type Tokens,
} from '../../middleware/billing-guard/billed-gateway.ts'
import { readExchange } from '../../support/exchange.ts'
import {
  EVENTS_BEFORE_WORDS,
  messageItem,
  numbered,
  responseBody,
  responseEvents,
  USAGE,
} from '../../support/responses-upstream.ts'
import { answerJson, startUpstream, stream, type UpstreamScript } from '../../support/scripted-upstream.ts'

const WORDS = ['one ', 'two ', 'three']
const BEGINNING = responseEvents(WORDS).slice(0, EVENTS_BEFORE_WORDS + WORDS.length)
const whole =
  (
    extra: Record<string, unknown> = {},
    output: readonly object[] = [messageItem('one two three')],
  ): UpstreamScript =>
  (res, { json }) => {
    if (!json.stream) return answerJson(res, 200, responseBody(output, extra))
    const ending = numbered([{ type: 'response.completed', response: responseBody(output, extra) }])
    return stream(res, [...(output.length > 0 ? BEGINNING : BEGINNING.slice(0, 2)), ...ending])
  }
const reasoned = {
  usage: {
    ...USAGE,
    input_tokens_details: { cached_tokens: 3, cache_write_tokens: 1 },
    output_tokens: 40,
    output_tokens_details: { reasoning_tokens: 30 },
  },
}

const CASES: readonly {
  readonly how: string
  readonly script: UpstreamScript
  readonly tokens: Tokens
  readonly source: 'measured' | 'estimated'
  readonly streams: readonly boolean[]
  readonly parts?: object
}[] = [
  {
    how: 'what the upstream reports, cached input at its own price, reasoning as output',
    script: whole(reasoned),
    tokens: [7, 3, 1, 40],
    source: 'measured',
    streams: [false, true],
    parts: { reasoning_tokens: 30 },
  },
  {
    how: 'what was counted, where it reports nothing',
    script: whole({ usage: null }),
    tokens: [null, 0, 0, 3],
    source: 'estimated',
    streams: [false, true],
  },
  {
    how: 'what came, of a stream that breaks off',
    script: (res) => stream(res, BEGINNING),
    tokens: [null, 0, 0, 3],
    source: 'estimated',
    streams: [true],
  },
]

describe('a response is charged once', () => {
  for (const { how, script, tokens, source, streams, parts } of CASES) {
    for (const streamed of streams) {
      it(`${how} (${streamed ? 'streamed' : 'plain'})`, async (t) => {
        const upstream = await startUpstream(script)
        t.after(() => upstream.close())
        const gateway = await billedGateway(t, { lines: [{ url: upstream.url }] })
        const body = { model: 'chat', input: 'hi', stream: streamed }
        const { requestId, status } = await readExchange(await gateway.post('/v1/responses', body))
        assert.equal(status, 200)
        await assertCharged(gateway, await gateway.entry(requestId), tokens, source, parts)
      })
    }
  }

  it('by the output that had arrived when its caller left', async (t) => {
    const upstream = await startUpstream((res) => stream(res, BEGINNING, { end: false }))
    t.after(() => upstream.close())
    const gateway = await billedGateway(t, { lines: [{ url: upstream.url }] })
    const leaving = new AbortController()
    const response = await gateway.post(
      '/v1/responses',
      { model: 'chat', input: 'hi', stream: true },
      { signal: leaving.signal },
    )
    let text = ''
    await assert.rejects(async () => {
      for await (const chunk of response.body ?? []) {
        text += Buffer.from(chunk as Uint8Array).toString()
        if (text.includes('three')) leaving.abort()
      }
    })
    const entry = await gateway.entry(response.headers.get('x-request-id'))
    assert.equal(entry.outcome, 'interrupted')
    await assertCharged(gateway, entry, [null, 0, 0, 3], 'estimated')
  })

  for (const [how, script] of [
    ['without output', whole({}, [])],
    ['that failed', whole({ status: 'failed', error: { code: 'server_error', message: 'x' } })],
    [
      'stopped by moderation',
      whole({ status: 'incomplete', incomplete_details: { reason: 'content_filter' } }, []),
    ],
  ] as const) {
    it(`and one ${how} is not charged`, async (t) => {
      const upstream = await startUpstream(script)
      t.after(() => upstream.close())
      const gateway = await billedGateway(t, { lines: [{ url: upstream.url }] })
      const answer = await readExchange(await gateway.post('/v1/responses', { model: 'chat', input: 'hi' }))
      assert.ok(answer.status >= 400)
      await assertUncharged(gateway, await gateway.entry(answer.requestId))
    })
  }
})
