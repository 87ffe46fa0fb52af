import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { formatAmount, NANOS_PER_UNIT } from '../../../lib/core/catalog/index.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { readExchange } from '../../support/exchange.ts'
import { responseBody, responseEvents } from '../../support/responses-upstream.ts'
import {
  answerJson,
  chatAnswer,
  chatEvents,
  messageAnswer,
  messageEvents,
  startUpstream,
  stream,
  type UpstreamScript,
} from '../../support/scripted-upstream.ts'
import { billedGateway } from './billed-gateway.ts'

type Counts = Readonly<Record<string, number>>

/** The usage that a line of each protocol reports, and how many of each unit that is. */
const REPORTS = {
  chat: {
    usage: {
      prompt_tokens: 1000,
      completion_tokens: 500,
      total_tokens: 1500,
      prompt_tokens_details: { cached_tokens: 100, cache_write_tokens: 200, audio_tokens: 300 },
      completion_tokens_details: { reasoning_tokens: 50, audio_tokens: 150 },
    },
    counts: {
      inputPerMillion: 400,
      cachedInputPerMillion: 100,
      cacheWritePerMillion: 200,
      audioInputPerMillion: 300,
      outputPerMillion: 350,
      audioOutputPerMillion: 150,
    } as Counts,
    parts: { audio_input_tokens: 300, audio_output_tokens: 150, reasoning_tokens: 50 },
  },
  messages: {
    usage: {
      input_tokens: 400,
      cache_read_input_tokens: 100,
      cache_creation_input_tokens: 500,
      cache_creation: { ephemeral_5m_input_tokens: 350, ephemeral_1h_input_tokens: 150 },
      output_tokens: 500,
      output_tokens_details: { thinking_tokens: 50 },
    },
    counts: {
      inputPerMillion: 400,
      cachedInputPerMillion: 100,
      cacheWritePerMillion: 350,
      cacheWrite1hPerMillion: 150,
      outputPerMillion: 500,
    } as Counts,
    parts: { cache_write_1h_tokens: 150, reasoning_tokens: 50 },
  },
  responses: {
    usage: {
      input_tokens: 1000,
      input_tokens_details: { cached_tokens: 100, cache_write_tokens: 200 },
      output_tokens: 500,
      output_tokens_details: { reasoning_tokens: 50 },
      total_tokens: 1500,
    },
    counts: {
      inputPerMillion: 700,
      cachedInputPerMillion: 100,
      cacheWritePerMillion: 200,
      outputPerMillion: 500,
    } as Counts,
    parts: { reasoning_tokens: 50 },
  },
}

const MEMBERS = [
  'inputPerMillion',
  'cachedInputPerMillion',
  'cacheWritePerMillion',
  'cacheWrite1hPerMillion',
  'audioInputPerMillion',
  'outputPerMillion',
  'audioOutputPerMillion',
  'perRequest',
]
const NOTHING = Object.fromEntries(MEMBERS.map((member) => [member, '0']))
/** One unit of the currency for each piece. */
const priceOf = (member: string) => (member === 'perRequest' ? '1' : '1000000')

const CALLERS = [
  ['/v1/chat/completions', { messages: [{ role: 'user', content: 'hi' }] }],
  ['/v1/messages', { messages: [{ role: 'user', content: 'hi' }], max_tokens: 1000 }],
  ['/v1/responses', { input: 'hi' }],
] as const

/** The lines that a caller can be served by: its own protocol's, and others by translation. */
const LINES = {
  chat: { protocol: 'openai', endpoints: ['chat/completions'] },
  messages: { protocol: 'anthropic' },
  responses: { protocol: 'openai', endpoints: ['responses'] },
} as const
type LineName = keyof typeof LINES

const script: UpstreamScript = (res, { path, json: { stream: streams } }) => {
  const words = ['Hel', 'lo']
  if (path.endsWith('/chat/completions')) {
    const { usage } = REPORTS.chat
    if (!streams) return chatAnswer(res, 'Hello', { usage })
    const report = `data: ${JSON.stringify({ choices: [], usage })}\n\n`
    return stream(
      res,
      chatEvents(words).map((event) => (event.includes('"usage"') ? report : event)),
    )
  }
  if (path.endsWith('/messages')) {
    const { usage } = REPORTS.messages
    if (!streams) return messageAnswer(res, 'Hello', { usage })
    const { output_tokens, output_tokens_details, ...input } = usage
    const events = messageEvents(words).map((event) =>
      event
        .replace(
          '"usage":{"input_tokens":7,"output_tokens":1}',
          `"usage":${JSON.stringify({ ...input, output_tokens: 1 })}`,
        )
        .replace(
          '"usage":{"output_tokens":2}',
          `"usage":${JSON.stringify({ output_tokens, output_tokens_details })}`,
        ),
    )
    return stream(res, events)
  }
  const { usage } = REPORTS.responses
  if (streams) return stream(res, responseEvents(words, { usage }))
  answerJson(
    res,
    200,
    responseBody(
      [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Hello' }] }],
      { usage },
    ),
  )
}

describe('each price has its own part of the usage', async () => {
  const cleanUp = cleaningUp()
  const upstream = await startUpstream(script)
  cleanUp.after(() => upstream.close())

  const rows = CALLERS.flatMap(([path, body]) =>
    (Object.keys(LINES) as LineName[]).flatMap((line) =>
      [false, true].map((streams) => ({ path, body, line, streams })),
    ),
  ).filter(({ path, line }) => line !== 'responses' || path === '/v1/responses')

  for (const { path, body, line, streams } of rows) {
    it(`of ${streams ? 'a stream' : 'an answer'} (${path} on a line for ${line})`, async (t) => {
      const { counts, parts } = REPORTS[line]
      for (const member of MEMBERS) {
        const price = { ...NOTHING, [member]: priceOf(member) }
        const cost = { ...NOTHING, [member]: member === 'perRequest' ? '0.5' : '500000' }
        const gateway = await billedGateway(t, {
          lines: [{ url: upstream.url, ...LINES[line], price, cost }],
          balance: '1000000',
        })
        const got = await readExchange(await gateway.post(path, { model: 'chat', stream: streams, ...body }))
        assert.equal(got.status, 200, got.text)
        const { usage, billing } = await gateway.entry(got.requestId)
        assert.equal(usage?.input_tokens, 1000)
        assert.equal(usage.output_tokens, 500)
        assert.deepEqual({ ...usage, ...parts }, usage)
        const count = member === 'perRequest' ? 1 : (counts[member] ?? 0)
        assert.deepEqual(
          [member, billing?.charged, billing?.cost],
          [member, String(count), String(count / 2)],
        )
        assert.equal(billing?.items.length, count > 0 ? 1 : 0, member)
        assert.deepEqual(await gateway.books(), { spent: String(count), charges: count > 0 ? 1 : 0 })
      }
    })
  }

  const TIERS = [
    { aboveInputTokens: 900, outputPerMillion: '3000000' },
    { aboveInputTokens: 500, outputPerMillion: '2000000' },
    { aboveInputTokens: 1000, outputPerMillion: '4000000' },
  ]
  for (const { path, body, line, streams } of rows) {
    it(`by the highest tier that ${streams ? 'a stream' : 'an answer'} is above (${path} on a line for ${line})`, async (t) => {
      const price = { ...NOTHING, inputPerMillion: '1000000', outputPerMillion: '1000000', tiers: TIERS }
      const gateway = await billedGateway(t, {
        lines: [{ url: upstream.url, ...LINES[line], price }],
        balance: '1000000',
      })
      const got = await readExchange(await gateway.post(path, { model: 'chat', stream: streams, ...body }))
      const { billing } = await gateway.entry(got.requestId)
      const { inputPerMillion: input = 0, outputPerMillion: output = 0 } = REPORTS[line].counts
      assert.equal(billing?.charged, String(input + 3 * output))
      assert.equal(billing?.cost, undefined, 'nobody knows what it cost')
    })
  }

  it('and prices that are not given follow the one that they are a part of', async (t) => {
    const gateway = await billedGateway(t, {
      lines: [{ url: upstream.url, price: { inputPerMillion: '2', outputPerMillion: '3' } }],
      model: { price: {} },
    })
    const [path, body] = CALLERS[0]
    const got = await readExchange(await gateway.post(path, { model: 'chat', ...body }))
    const { billing } = await gateway.entry(got.requestId)
    const nanos = (1000n * 2n + 500n * 3n) * (NANOS_PER_UNIT / 1_000_000n)
    assert.equal(billing?.charged, formatAmount(nanos))
  })
})
