import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { before, describe, it } from 'node:test'
import type Anthropic from '@anthropic-ai/sdk'
import type OpenAI from 'openai'
import { cleaningUp } from '../../support/clean-up.ts'
import { startGateway, type TestGateway } from '../../support/gateway.ts'
import {
  type ChatRequestBody,
  chatChunk,
  messageEvent,
  messageEvents,
  type ScriptedUpstream,
  startUpstream,
  stream,
} from '../../support/scripted-upstream.ts'
import { anthropicOf, openaiOf, SDKS, type SdkName } from './clients.ts'

const CITIES = ['Rome', 'Bern']
const SCHEMA = { type: 'object' as const, properties: { city: { type: 'string' } } }
const weatherIn = (city: string) => `It rains in ${city}.`

/** Returns the answer of a line that knows the weather of so many cities: the next call, two at once, then the end. */
const SAYS: Record<SdkName, (told: number) => string[]> = {
  openai: (told) => [
    chatChunk({ role: 'assistant', content: '' }),
    ...(told < 2
      ? [chatChunk({ content: `Turn ${told}.` }), ...CITIES.flatMap((city, i) => chatCall(told, i, city))]
      : [chatChunk({ content: 'Wet.' })]),
    chatChunk({}, told < 2 ? 'tool_calls' : 'stop'),
    'data: [DONE]\n\n',
  ],
  anthropic: (told) => {
    const [start, ...rest] = messageEvents([])
    return [
      start as string,
      ...textBlock(0, told < 2 ? `Turn ${told}.` : 'Wet.'),
      ...(told < 2 ? CITIES.flatMap((city, i) => toolBlock(told, i, city)) : []),
      messageEvent('message_delta', {
        delta: { stop_reason: told < 2 ? 'tool_use' : 'end_turn' },
        usage: { output_tokens: 5 },
      }),
      rest.at(-1) as string,
    ]
  },
}

const callId = (turn: number, i: number) => `call_${turn}_${i}`

function chatCall(turn: number, i: number, city: string): string[] {
  const delta = (call: object) => chatChunk({ tool_calls: [{ index: i, ...call }] })
  return [
    delta({ id: callId(turn, i), type: 'function', function: { name: 'weather', arguments: '' } }),
    delta({ function: { arguments: '{"city":' } }),
    delta({ function: { arguments: `"${city}"}` } }),
  ]
}

const block = (index: number, start: object, ...deltas: object[]): string[] => [
  messageEvent('content_block_start', { index, content_block: start }),
  ...deltas.map((delta) => messageEvent('content_block_delta', { index, delta })),
  messageEvent('content_block_stop', { index }),
]
const textBlock = (index: number, text: string) =>
  block(index, { type: 'text', text: '' }, { type: 'text_delta', text })
const toolBlock = (turn: number, i: number, city: string) =>
  block(
    i + 1,
    { type: 'tool_use', id: callId(turn, i), name: 'weather', input: {} },
    ...['', '{"city":', `"${city}"}`].map((piece) => ({ type: 'input_json_delta', partial_json: piece })),
  )

/** The content of the third request to a line: all calls with their arguments, each followed by its result. */
const HEARD = [0, 1].flatMap((turn) => [
  ...CITIES.map((city, i) => `call ${callId(turn, i)} ${city}`),
  ...CITIES.map((city, i) => `result ${callId(turn, i)} ${weatherIn(city)}`),
])

type Parts = readonly Record<string, never>[]

/** Calls and results of a request, in their order. */
const HEARS: Record<SdkName, (body: ChatRequestBody) => string[]> = {
  openai: ({ messages }) =>
    (messages as unknown as Record<string, never>[]).flatMap((message) => [
      ...((message.tool_calls ?? []) as { id: string; function: { arguments: string } }[]).map(
        (call) => `call ${call.id} ${JSON.parse(call.function.arguments).city}`,
      ),
      ...(message.role === 'tool' ? [`result ${message.tool_call_id} ${textOf(message.content)}`] : []),
    ]),
  anthropic: ({ messages }) =>
    messages.flatMap(({ content }) =>
      (Array.isArray(content) ? (content as Parts) : []).flatMap((part: Record<string, unknown>) => {
        if (part.type === 'tool_use') return [`call ${part.id} ${(part.input as { city: string }).city}`]
        return part.type === 'tool_result' ? [`result ${part.tool_use_id} ${textOf(part.content)}`] : []
      }),
    ),
}

const textOf = (content: unknown): string =>
  Array.isArray(content) ? content.map(({ text }) => text).join('') : String(content)

describe('a loop of three turns with tools, streamed', () => {
  const upstreams = new Map<SdkName, ScriptedUpstream>()
  const gateways = new Map<SdkName, TestGateway>()
  const cleanUp = cleaningUp()
  before(async () => {
    for (const protocol of SDKS) {
      const upstream = await startUpstream((res: ServerResponse, { json }) =>
        stream(res, SAYS[protocol](HEARS[protocol](json).length / 4)),
      )
      cleanUp.after(() => upstream.close())
      upstreams.set(protocol, upstream)
      const gateway = await startGateway({ lines: [{ url: upstream.url, protocol }] })
      cleanUp.after(() => gateway.close())
      gateways.set(protocol, gateway)
    }
  })

  for (const sdk of SDKS) {
    for (const line of SDKS) {
      it(`runs through the ${sdk} SDK on a line that speaks ${line}`, async () => {
        const { url } = gateways.get(line) as TestGateway
        const upstream = upstreams.get(line) as ScriptedUpstream
        upstream.requests.length = 0
        const said = sdk === 'openai' ? await openAiLoop(url) : await anthropicLoop(url)
        assert.deepEqual(said, ['Turn 0.', 'Turn 1.', 'Wet.'])
        assert.equal(upstream.requests.length, 3)
        assert.deepEqual(upstream.requests[2] && HEARS[line](upstream.requests[2].json), HEARD)
      })
    }
  }
})

async function openAiLoop(url: string): Promise<unknown[]> {
  const client = openaiOf(url)
  const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: 'Weather?' }]
  const tools = [{ type: 'function' as const, function: { name: 'weather', parameters: SCHEMA } }]
  const said: unknown[] = []
  for (;;) {
    const answer = await client.chat.completions
      .stream({ model: 'chat', messages, tools })
      .finalChatCompletion()
    const message = answer.choices[0]?.message
    assert.ok(message)
    said.push(message.content)
    messages.push(message)
    if (answer.choices[0]?.finish_reason !== 'tool_calls') return said
    for (const call of message.tool_calls ?? []) {
      assert.ok(call.type === 'function')
      const { city } = JSON.parse(call.function.arguments)
      messages.push({ role: 'tool', tool_call_id: call.id, content: weatherIn(city) })
    }
  }
}

async function anthropicLoop(url: string): Promise<unknown[]> {
  const client = anthropicOf(url)
  const messages: Anthropic.MessageParam[] = [{ role: 'user', content: 'Weather?' }]
  const tools = [{ name: 'weather', input_schema: SCHEMA }]
  const said: unknown[] = []
  for (;;) {
    const { content, stop_reason: stop } = await client.messages
      .stream({ model: 'chat', max_tokens: 100, messages, tools })
      .finalMessage()
    said.push(content[0]?.type === 'text' && content[0].text)
    messages.push({ role: 'assistant', content })
    if (stop !== 'tool_use') return said
    const calls = content.filter((one) => one.type === 'tool_use')
    messages.push({
      role: 'user',
      content: calls.map(({ id, input }) => ({
        type: 'tool_result',
        tool_use_id: id,
        content: weatherIn((input as { city: string }).city),
      })),
    })
  }
}
