import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
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

/** Answers as the line of a protocol that runs and reports so many searches. */
function searching(searches: number): UpstreamScript {
  const server_tool_use = { web_search_requests: searches }
  return (res, { path, json: { stream: streams } }) => {
    if (path.endsWith('/chat/completions')) {
      const usage = { prompt_tokens: 9, completion_tokens: 2, ...(searches > 1 && { server_tool_use }) }
      if (!streams) return chatAnswer(res, 'Hello', { usage })
      const report = `data: ${JSON.stringify({ choices: [], usage })}\n\n`
      return stream(
        res,
        chatEvents(['Hel', 'lo']).map((event) => (event.includes('"usage"') ? report : event)),
      )
    }
    if (path.endsWith('/messages')) {
      const usage = { input_tokens: 9, output_tokens: 2, server_tool_use }
      if (!streams) return messageAnswer(res, 'Hello', { usage })
      return stream(
        res,
        messageEvents(['Hel', 'lo']).map((event) =>
          event.replace('"usage":{"output_tokens":2}', `"usage":${JSON.stringify(usage)}`),
        ),
      )
    }
    const items = Array.from({ length: searches }, (_, i) => ({
      id: `ws_${i}`,
      type: 'web_search_call',
      status: 'completed',
      action: { type: 'search', query: 'news' },
    }))
    const opened = { ...items[0], id: 'ws_opened', action: { type: 'open_page', url: 'https://example.org' } }
    const usage = { input_tokens: 9, output_tokens: 2, total_tokens: 11 }
    const text = { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Hello' }] }
    const body = responseBody([...items, opened, text], { usage })
    if (!streams) return answerJson(res, 200, body)
    const done = items.map((item, output_index) => {
      const event = { type: 'response.output_item.done', output_index, item }
      return `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`
    })
    const [created = '', ...others] = responseEvents(['Hel', 'lo'], { usage })
    stream(res, [created, ...done, ...others])
  }
}

const MESSAGES = [{ role: 'user', content: 'the news' }]
const TOOL = { type: 'web_search_20250305', name: 'web_search', max_uses: 4 }
const ROWS = [
  ['/v1/chat/completions', { messages: MESSAGES, web_search_options: {} }, 'openai', 'gpt-search'],
  ['/v1/chat/completions', { messages: MESSAGES, web_search_options: {} }, 'anthropic', 'claude'],
  ['/v1/messages', { messages: MESSAGES, max_tokens: 99, tools: [TOOL] }, 'anthropic', 'claude'],
  ['/v1/messages', { messages: MESSAGES, max_tokens: 99, tools: [TOOL] }, 'openai', 'gpt-search'],
  ['/v1/responses', { input: 'the news', tools: [{ type: 'web_search' }] }, 'openai', 'gpt'],
  ['/v1/responses', { input: 'the news', tools: [{ type: 'web_search' }] }, 'anthropic', 'claude'],
] as const

async function charged(t: TestContext, row: (typeof ROWS)[number], searches: number, body: object = {}) {
  const [path, request, protocol, upstreamModel] = row
  const upstream = await startUpstream(searching(searches))
  t.after(() => upstream.close())
  const endpoints = path === '/v1/responses' ? ['responses'] : ['chat/completions']
  const gateway = await billedGateway(t, {
    lines: [
      {
        url: upstream.url,
        protocol,
        ...(protocol === 'openai' && { endpoints }),
        models: { chat: upstreamModel },
        price: { perWebSearch: '0.01' },
        cost: { perWebSearch: '0.004' },
      },
    ],
    model: { price: {} },
    balance: '1',
  })
  const got = await readExchange(await gateway.post(path, { model: 'chat', ...request, ...body }))
  return { gateway, got, upstream }
}

describe('a web search that the provider runs', () => {
  for (const row of ROWS) {
    for (const stream of [false, true]) {
      it(`is charged, each (${row[0]} on a line of ${row[2]}, ${stream ? 'streamed' : 'whole'})`, async (t) => {
        for (const searches of [1, 3]) {
          const { gateway, got } = await charged(t, row, searches, { stream })
          assert.equal(got.status, 200, got.text)
          const { usage, billing } = await gateway.entry(got.requestId)
          assert.equal(usage?.web_searches, searches)
          assert.deepEqual(billing?.items, [{ unit: 'web_search', quantity: searches, price: '0.01' }])
          assert.deepEqual(
            [billing?.charged, billing?.cost],
            searches === 1 ? ['0.01', '0.004'] : ['0.03', '0.012'],
          )
          assert.deepEqual(await gateway.books(), { spent: `0.0${searches}`, charges: 1 })
        }
      })
    }
  }

  it('is charged at most as often as was held for, and the report is kept', async (t) => {
    const [, , row] = ROWS
    const { gateway, got } = await charged(t, row, 9)
    const { usage, billing } = await gateway.entry(got.requestId)
    assert.deepEqual([usage?.web_searches, usage?.source, usage?.reported?.web_searches], [4, 'bounded', 9])
    assert.deepEqual([billing?.reserved, billing?.charged], ['0.04', '0.04'])
  })

  it('needs money for all that the request may come to', async (t) => {
    const [, , row] = ROWS
    const { gateway, got, upstream } = await charged(t, row, 1, { tools: [{ ...TOOL, max_uses: 101 }] })
    assert.deepEqual(got.status, 402)
    assert.equal(upstream.requests.length, 0)
    assert.deepEqual(await gateway.books(), { spent: '0', charges: 0 })
  })

  it('is not charged where none was run', async (t) => {
    const [, , row] = ROWS
    const { gateway, got } = await charged(t, row, 0)
    const { usage, billing } = await gateway.entry(got.requestId)
    assert.deepEqual([usage?.web_searches, usage?.source], [undefined, 'measured'])
    assert.deepEqual([billing?.charged, billing?.items], ['0', []])
  })
})
