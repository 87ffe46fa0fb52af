import assert from 'node:assert/strict'
import { before, beforeEach, describe, it } from 'node:test'
import type OpenAI from 'openai'
import { cleaningUp } from '../../support/clean-up.ts'
import { startGateway, type TestGateway } from '../../support/gateway.ts'
import {
  messageAnswer,
  messageEvent,
  messageEvents,
  type ScriptedUpstream,
  startUpstream,
  stream,
} from '../../support/scripted-upstream.ts'
import { openaiOf, rejection } from './clients.ts'

const WEATHER = {
  type: 'function' as const,
  name: 'weather',
  parameters: { type: 'object', properties: { city: { type: 'string' } } },
  strict: false,
}

describe('responses on an Anthropic-style line', () => {
  let upstream: ScriptedUpstream
  let gateway: TestGateway
  let client: ReturnType<typeof openaiOf>

  const cleanUp = cleaningUp()
  before(async () => {
    upstream = await startUpstream()
    cleanUp.after(() => upstream.close())
    gateway = await startGateway({ lines: [{ url: upstream.url, protocol: 'anthropic' }] })
    cleanUp.after(() => gateway.close())
    client = openaiOf(gateway.url)
  })
  beforeEach(() => {
    upstream.requests.length = 0
  })

  it('are given whole', async () => {
    upstream.script = (res) => messageAnswer(res, 'Hello')
    const response = await client.responses.create({ model: 'chat', input: 'hi', instructions: 'Be brief.' })
    assert.equal(response.output_text, 'Hello')
    assert.equal(response.usage?.total_tokens, 10)
    assert.equal(upstream.requests[0]?.path, '/v1/messages')
    assert.equal(upstream.requests[0]?.json.max_tokens, 4096)
  })

  it('are given piece by piece', async () => {
    upstream.script = (res) => stream(res, messageEvents(['Hel', 'lo']))
    const response = await client.responses.stream({ model: 'chat', input: 'hi' }).finalResponse()
    assert.equal(response.output_text, 'Hello')
    assert.equal(response.status, 'completed')
    assert.equal(response.usage?.output_tokens, 2)
  })

  it('run tools over several turns', async () => {
    const block = (index: number, start: object, delta: object) => [
      messageEvent('content_block_start', { index, content_block: start }),
      messageEvent('content_block_delta', { index, delta }),
      messageEvent('content_block_stop', { index }),
    ]
    const calling = (city: string) => [
      ...messageEvents([]).slice(0, 1),
      ...block(
        0,
        { type: 'tool_use', id: `call_${city}`, name: 'weather', input: {} },
        { type: 'input_json_delta', partial_json: `{"city":"${city}"}` },
      ),
      messageEvent('message_delta', { delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 5 } }),
      messageEvent('message_stop'),
    ]
    upstream.script = (res, _, turn) =>
      stream(res, turn === 0 ? calling('Rome') : turn === 1 ? calling('Bern') : messageEvents(['Wet.']))
    const input: OpenAI.Responses.ResponseInput = [{ role: 'user', content: 'Weather?' }]
    let text = ''
    for (let turn = 0; turn < 3; turn++) {
      const { output, output_text } = await client.responses
        .stream({ model: 'chat', input, tools: [WEATHER] })
        .finalResponse()
      text = output_text
      for (const item of output) {
        if (item.type !== 'function_call') continue
        const { call_id, name, arguments: args } = item
        input.push({ type: 'function_call', call_id, name, arguments: args })
        input.push({ type: 'function_call_output', call_id, output: `Rain in ${JSON.parse(args).city}` })
      }
    }
    assert.equal(text, 'Wet.')
    assert.deepEqual(
      upstream.requests[2]?.json.messages.map(({ content }) =>
        Array.isArray(content)
          ? content.map(({ type, id, tool_use_id: of }) => `${type} ${id ?? of ?? ''}`)
          : content,
      ),
      [
        ['text '],
        ['tool_use call_Rome'],
        ['tool_result call_Rome'],
        ['tool_use call_Bern'],
        ['tool_result call_Bern'],
      ],
    )
  })

  const REFUSED: [string, Partial<OpenAI.Responses.ResponseCreateParamsNonStreaming>][] = [
    ['store', { store: true }],
    ['tools[0]', { tools: [{ type: 'file_search', vector_store_ids: [] }] }],
  ]
  for (const [param, extra] of REFUSED) {
    it(`are refused where they ask for ${param}`, async () => {
      const error = await rejection(client.responses.create({ model: 'chat', input: 'hi', ...extra }))
      assert.equal((error as { code?: string }).code, 'unsupported_feature')
      assert.equal((error as { param?: string }).param, param)
      assert.equal(upstream.requests.length, 0)
    })
  }
})
