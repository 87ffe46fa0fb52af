import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import type Anthropic from '@anthropic-ai/sdk'
import type { DemoModels } from '../../../examples/gateway/demo-models/server.ts'
import { startDemoModels } from '../../../examples/gateway/demo-models/server.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { anthropicFor, textOf, user, WEATHER, WEATHER_EXAMPLE } from './clients.ts'

let demo: DemoModels
let anthropic: Anthropic

const cleanUp = cleaningUp()
before(async () => {
  demo = await startDemoModels({ apiKey: 'sk-demo', paceMs: 0 })
  cleanUp.after(() => demo.close())
  anthropic = anthropicFor(demo.url)
})

const QUESTION = { model: 'demo-claude', max_tokens: 200, messages: user('How are you?') }
const anthropicTool = { name: 'get_weather', input_schema: WEATHER }

describe('messages', () => {
  it('answers, with the system prompt heeded', async () => {
    const answer = await anthropic.messages.create({
      model: 'demo-claude',
      max_tokens: 500,
      system: [{ type: 'text', text: 'Be kind.' }],
      messages: user('What is a gateway?'),
    })
    assert.match(
      textOf(answer.content),
      /^This is demo-claude, the demo model .*"What is a gateway\?".*"Be kind\."/,
    )
    assert.equal(answer.stop_reason, 'end_turn')
    assert.ok(answer.usage.output_tokens > 20 && answer.usage.input_tokens > 7)
  })

  it('streams the events of the real API in their order, ending with the usage of the plain answer', async () => {
    const plain = await anthropic.messages.create(QUESTION)
    const response = await anthropic.messages.create({ ...QUESTION, stream: true }).asResponse()
    const events = (await response.text()).split('\n\n').filter((frame) => frame !== '')
    const types = events.map((frame) => /^event: (\w+)\ndata: {"type":"\1"/.exec(frame)?.[1])
    assert.deepEqual(
      types.filter((type, at) => type !== types[at - 1]),
      [
        'message_start',
        'content_block_start',
        'ping',
        'content_block_delta',
        'content_block_stop',
        'message_delta',
        'message_stop',
      ],
    )
    const final = await anthropic.messages.stream(QUESTION).finalMessage()
    assert.equal(textOf(final.content), textOf(plain.content))
    assert.equal(final.stop_reason, 'end_turn')
    assert.equal(final.usage.output_tokens, plain.usage.output_tokens)
    assert.equal(final.usage.input_tokens, plain.usage.input_tokens)
  })

  it('stops at max_tokens, and cannot do without', async () => {
    const asked = { model: 'demo-claude', messages: user('Hi') }
    const answer = await anthropic.messages.create({ ...asked, max_tokens: 5 })
    assert.equal(answer.stop_reason, 'max_tokens')
    assert.equal(answer.usage.output_tokens, 5)
    // @ts-expect-error the type demands what this test leaves out
    await assert.rejects(anthropic.messages.create(asked), { status: 400, type: 'invalid_request_error' })
  })

  it('uses a tool that the user names, plain and in input_json deltas', async () => {
    const asked = {
      model: 'demo-claude',
      max_tokens: 500,
      messages: user('Use get_weather, please'),
      tools: [anthropicTool],
    }
    const plain = await anthropic.messages.create(asked)
    const streamed = await anthropic.messages.stream(asked).finalMessage()
    for (const answer of [plain, streamed]) {
      const [block] = answer.content
      assert.equal(answer.stop_reason, 'tool_use')
      assert.ok(block?.type === 'tool_use')
      assert.equal(block.name, 'get_weather')
      assert.deepEqual(block.input, WEATHER_EXAMPLE)
    }
  })

  it('answers in text once the tool result is there', async () => {
    const answer = await anthropic.messages.create({
      model: 'demo-claude',
      max_tokens: 500,
      tools: [anthropicTool],
      messages: [
        ...user('Use get_weather, please'),
        { role: 'assistant', content: [{ type: 'tool_use', id: 't1', name: 'get_weather', input: {} }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't1', content: '21 degrees' }] },
      ],
    })
    assert.equal(answer.stop_reason, 'end_turn')
    assert.match(textOf(answer.content), /"21 degrees"/)
  })

  it('counts a prompt as it bills it', async () => {
    const asked = { model: 'demo-claude', messages: user('How are you?') }
    const counted = await anthropic.messages.countTokens(asked)
    const answer = await anthropic.messages.create(QUESTION)
    assert.equal(counted.input_tokens, answer.usage.input_tokens)
  })
})
