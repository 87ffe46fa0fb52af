import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { before, beforeEach, describe, it } from 'node:test'
import type OpenAI from 'openai'
import { cleaningUp } from '../../support/clean-up.ts'
import { startGateway, type TestGateway } from '../../support/gateway.ts'
import {
  chatAnswer,
  chatChunk,
  messageAnswer,
  messageEvent,
  messageEvents,
  type ReceivedRequest,
  type ScriptedUpstream,
  startUpstream,
  stream,
} from '../../support/scripted-upstream.ts'
import { openaiOf, rejection } from './clients.ts'

const CITIES = ['Rome', 'Bern']
const TOOLS = [
  {
    type: 'function' as const,
    name: 'weather',
    parameters: { type: 'object', properties: { city: { type: 'string' } } },
    strict: false,
  },
]
const argumentsFor = (city: string) => JSON.stringify({ city })
const idOf = (turn: number, i: number) => `call_${turn}_${i}`

/** A chat-only line that thinks and calls two tools in each of two turns, and then answers. */
async function chatTurn(res: ServerResponse, turn: number, streamed: boolean): Promise<void> {
  const calls = CITIES.map((city, index) => ({
    index,
    id: idOf(turn, index),
    type: 'function',
    function: { name: 'weather', arguments: argumentsFor(city) },
  }))
  const delta = turn === 2 ? { content: 'Wet.' } : { reasoning_content: `thought ${turn}`, tool_calls: calls }
  const finish = turn === 2 ? 'stop' : 'tool_calls'
  if (streamed) return stream(res, [chatChunk(delta), chatChunk({}, finish), 'data: [DONE]\n\n'])
  chatAnswer(res, '', {
    choices: [{ index: 0, message: { role: 'assistant', content: null, ...delta }, finish_reason: finish }],
  })
}

/** The same of an Anthropic-style line. */
async function messageTurn(res: ServerResponse, turn: number, streamed: boolean): Promise<void> {
  if (turn === 2) return streamed ? stream(res, messageEvents(['Wet.'])) : messageAnswer(res, 'Wet.')
  const thinking = { type: 'thinking', thinking: `thought ${turn}`, signature: `sig-${turn}` }
  const uses = CITIES.map((city, i) => ({
    type: 'tool_use',
    id: idOf(turn, i),
    name: 'weather',
    input: { city },
  }))
  if (!streamed) return messageAnswer(res, '', { content: [thinking, ...uses], stop_reason: 'tool_use' })
  const block = (index: number, start: object, ...deltas: object[]) => [
    messageEvent('content_block_start', { index, content_block: start }),
    ...deltas.map((delta) => messageEvent('content_block_delta', { index, delta })),
    messageEvent('content_block_stop', { index }),
  ]
  await stream(res, [
    ...messageEvents([]).slice(0, 1),
    ...block(
      0,
      { ...thinking, thinking: '', signature: '' },
      { type: 'thinking_delta', thinking: thinking.thinking },
      { type: 'signature_delta', signature: thinking.signature },
    ),
    ...uses.flatMap((use, i) =>
      block(
        i + 1,
        { ...use, input: {} },
        { type: 'input_json_delta', partial_json: JSON.stringify(use.input) },
      ),
    ),
    messageEvent('message_delta', { delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 5 } }),
    messageEvent('message_stop'),
  ])
}

/** Returns the turns before that the line received. */
function earlier({ json }: ReceivedRequest): object[] {
  return json.messages.slice(1) as object[]
}

const said = {
  chat: [0, 1].flatMap((turn) => [
    {
      role: 'assistant',
      content: null,
      reasoning_content: `thought ${turn}`,
      tool_calls: CITIES.map((city, i) => ({
        id: idOf(turn, i),
        type: 'function',
        function: { name: 'weather', arguments: argumentsFor(city) },
      })),
    },
    ...CITIES.map((city, i) => ({ role: 'tool', tool_call_id: idOf(turn, i), content: `Rain in ${city}` })),
  ]),
  messages: [0, 1].flatMap((turn) => [
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: `thought ${turn}`, signature: `sig-${turn}` },
        ...CITIES.map((city, i) => ({
          type: 'tool_use',
          id: idOf(turn, i),
          name: 'weather',
          input: { city },
        })),
      ],
    },
    {
      role: 'user',
      content: CITIES.map((city, i) => ({
        type: 'tool_result',
        tool_use_id: idOf(turn, i),
        content: `Rain in ${city}`,
      })),
    },
  ]),
}

const LINES = [
  { name: 'chat', line: { endpoints: ['chat/completions'] }, answer: chatTurn, path: '/v1/chat/completions' },
  { name: 'messages', line: { protocol: 'anthropic' }, answer: messageTurn, path: '/v1/messages' },
] as const

for (const { name, line, answer, path } of LINES) {
  describe(`responses on a line that only speaks ${name}`, () => {
    let upstream: ScriptedUpstream
    let gateway: TestGateway
    let client: ReturnType<typeof openaiOf>

    const cleanUp = cleaningUp()
    before(async () => {
      upstream = await startUpstream((res, { json }, index) => answer(res, index, json.stream === true))
      cleanUp.after(() => upstream.close())
      gateway = await startGateway({ lines: [{ url: upstream.url, ...line }] })
      cleanUp.after(() => gateway.close())
      client = openaiOf(gateway.url)
    })
    beforeEach(() => {
      upstream.requests.length = 0
    })

    for (const streamed of [false, true]) {
      it(`run tools over three turns, ${streamed ? 'streamed' : 'plain'}, and hand back what was thought`, async () => {
        const input: OpenAI.Responses.ResponseInput = [{ role: 'user', content: 'Weather?' }]
        const body = {
          model: 'chat',
          input,
          tools: TOOLS,
          max_output_tokens: 3000,
          reasoning: { effort: 'low' as const },
          include: ['reasoning.encrypted_content' as const],
        }
        let text = ''
        for (let turn = 0; turn < 3; turn++) {
          const response = streamed
            ? await client.responses.stream(body).finalResponse()
            : await client.responses.create(body)
          assert.equal(response.status, 'completed')
          assert.equal((response as { store?: unknown }).store, false)
          text = response.output_text
          input.push(...(response.output as OpenAI.Responses.ResponseInput))
          for (const item of response.output) {
            if (item.type !== 'function_call') continue
            const output = `Rain in ${JSON.parse(item.arguments).city}`
            input.push({ type: 'function_call_output', call_id: item.call_id, output })
          }
        }
        assert.equal(text, 'Wet.')
        assert.deepEqual(
          upstream.requests.map((request) => request.path),
          [path, path, path],
        )
        assert.deepEqual(earlier(upstream.requests[2] as ReceivedRequest), said[name])
      })
    }

    const REFUSED: [string, Partial<OpenAI.Responses.ResponseCreateParamsNonStreaming>][] = [
      ['store', { store: true }],
      ['background', { background: true, store: false }],
      ['tools[0]', { tools: [{ type: 'file_search', vector_store_ids: [] }] }],
    ]
    const NOT_KEPT: typeof REFUSED = [
      ['conversation', { conversation: 'conv_1' }],
      ['prompt', { prompt: { id: 'pmpt_1' } }],
    ]
    for (const [param, extra] of [...REFUSED, ...NOT_KEPT]) {
      it(`are refused where they ask for ${param}`, async () => {
        const error = await rejection(client.responses.create({ model: 'chat', input: 'hi', ...extra }))
        const { code, param: named } = error as { code?: string; param?: string }
        const isKnown = REFUSED.some(([name]) => name === param)
        assert.deepEqual([code, named], isKnown ? ['unsupported_feature', param] : ['not_found', undefined])
        assert.equal(upstream.requests.length, 0)
      })
    }

    it('are refused where they name an item only, with the way out', async () => {
      const input = [{ type: 'item_reference' as const, id: 'msg_1' }]
      const error = await rejection(client.responses.create({ model: 'chat', input }))
      const { code, param, status } = error as { code?: string; param?: string; status?: number }
      assert.deepEqual([status, code, param], [400, 'invalid_request', 'input[0]'])
      assert.match(String(error), /set "store" to false/)
      assert.equal(upstream.requests.length, 0)
    })

    it('are not found afterwards, nor gone on from', async () => {
      upstream.script = (res) => answer(res, 2, false)
      const { id } = await client.responses.create({ model: 'chat', input: 'hi' })
      const attempts = [
        client.responses.retrieve(id),
        client.responses.delete(id),
        client.responses.inputItems.list(id),
        client.responses.create({ model: 'chat', input: 'and?', previous_response_id: id }),
      ]
      for (const attempt of attempts)
        assert.equal(((await rejection(attempt)) as { code?: string }).code, 'not_found')
      assert.equal(upstream.requests.length, 1)
    })
  })
}
