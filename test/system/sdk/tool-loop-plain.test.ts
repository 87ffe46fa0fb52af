import assert from 'node:assert/strict'
import { before, beforeEach, describe, it } from 'node:test'
import type Anthropic from '@anthropic-ai/sdk'
import type OpenAI from 'openai'
import { cleaningUp } from '../../support/clean-up.ts'
import { startGateway, type TestGateway } from '../../support/gateway.ts'
import {
  answerJson,
  chatAnswer,
  messageAnswer,
  type ScriptedUpstream,
  startUpstream,
} from '../../support/scripted-upstream.ts'
import { anthropicOf, openaiOf, user } from './clients.ts'

/** The cities whose weather is asked for, two at a time. */
const CITIES = ['Rome', 'Bern']
const SCHEMA = { type: 'object' as const, properties: { city: { type: 'string' } } }
const weatherIn = (city: string) => `It rains in ${city}.`

let chatLine: ScriptedUpstream
let messageLine: ScriptedUpstream
let onChatLine: TestGateway
let onMessageLine: TestGateway

const cleanUp = cleaningUp()
before(async () => {
  chatLine = await startUpstream()
  cleanUp.after(() => chatLine.close())
  messageLine = await startUpstream()
  cleanUp.after(() => messageLine.close())
  onChatLine = await startGateway({ lines: [{ url: chatLine.url }] })
  cleanUp.after(() => onChatLine.close())
  onMessageLine = await startGateway({ lines: [{ url: messageLine.url, protocol: 'anthropic' }] })
  cleanUp.after(() => onMessageLine.close())
})
beforeEach(() => {
  for (const line of [chatLine, messageLine]) line.requests.length = 0
})

/** The items of a request's messages that hold a tool's result. */
const resultsIn = (messages: readonly { content?: unknown }[]) =>
  messages.flatMap((message) => {
    if ('tool_call_id' in message) return [message.content]
    const blocks = Array.isArray(message.content)
      ? (message.content as { type: string; content: unknown }[])
      : []
    return blocks.filter(({ type }) => type === 'tool_result').map(({ content }) => content)
  })

/** An OpenAI-style line that thinks, calls two tools at once in two turns, and then answers. */
function chatLoop(messages: readonly object[]): Record<string, unknown> {
  const turn = resultsIn(messages).length / 2
  if (turn === 2)
    return { choices: [{ message: { role: 'assistant', content: 'Wet.' }, finish_reason: 'stop' }] }
  const tool_calls = CITIES.map((city, i) => ({
    id: `call_${turn}_${i}`,
    type: 'function',
    function: { name: 'weather', arguments: JSON.stringify({ city }) },
  }))
  const message = { role: 'assistant', content: null, reasoning_content: `thought ${turn}`, tool_calls }
  return { choices: [{ message, finish_reason: 'tool_calls' }] }
}

/** The same of an Anthropic-style line. */
function messageLoop(messages: readonly object[]): Record<string, unknown> {
  const turn = resultsIn(messages).length / 2
  if (turn === 2) return { content: [{ type: 'text', text: 'Wet.' }] }
  const content = [
    { type: 'thinking', thinking: `thought ${turn}`, signature: `sig-${turn}` },
    ...CITIES.map((city, i) => ({
      type: 'tool_use',
      id: `toolu_${turn}_${i}`,
      name: 'weather',
      input: { city },
    })),
  ]
  return { content, stop_reason: 'tool_use' }
}

describe('a loop of three turns with tools, plain', () => {
  beforeEach(() => {
    chatLine.script = (res, { json }) => chatAnswer(res, '', chatLoop(json.messages))
    messageLine.script = (res, { json }) => messageAnswer(res, '', messageLoop(json.messages))
  })

  it('runs through the OpenAI SDK on an anthropic line, which gets its thinking back', async () => {
    assert.equal(await openAiLoop(onMessageLine.url), 'Wet.')
    const { messages } = messageLine.requests[2]?.json ?? { messages: [] }
    assert.deepEqual(messages.slice(1), [
      { role: 'assistant', content: messageLoop([]).content },
      { role: 'user', content: CITIES.map((city, i) => result(`toolu_0_${i}`, city)) },
      { role: 'assistant', content: messageLoop(messages.slice(0, 3)).content },
      { role: 'user', content: CITIES.map((city, i) => result(`toolu_1_${i}`, city)) },
    ])
  })

  it('runs through the Anthropic SDK on an openai line, which gets its reasoning back', async () => {
    assert.equal(await anthropicLoop(onChatLine.url), 'Wet.')
    const { messages } = chatLine.requests[2]?.json ?? { messages: [] }
    const said = (turn: number) =>
      (chatLoop(messages.slice(0, 1 + 3 * turn)).choices as [{ message: object }])[0].message
    assert.deepEqual(messages.slice(1), [
      said(0),
      ...CITIES.map((city, i) => ({ role: 'tool', tool_call_id: `call_0_${i}`, content: weatherIn(city) })),
      said(1),
      ...CITIES.map((city, i) => ({ role: 'tool', tool_call_id: `call_1_${i}`, content: weatherIn(city) })),
    ])
  })

  it('runs through the OpenAI SDK on an openai line', async () => {
    assert.equal(await openAiLoop(onChatLine.url), 'Wet.')
    assert.equal(chatLine.requests.length, 3)
  })

  it('runs through the Anthropic SDK on an anthropic line', async () => {
    assert.equal(await anthropicLoop(onMessageLine.url), 'Wet.')
    assert.equal(messageLine.requests.length, 3)
  })

  for (const sdk of ['openai', 'anthropic'] as const) {
    it(`goes on at another line when the first fails halfway, without the thinking of that (${sdk} SDK)`, async (t) => {
      const lines = [{ url: chatLine.url }, { url: messageLine.url, protocol: 'anthropic' as const }]
      const gateway = await startGateway({ lines: sdk === 'anthropic' ? lines : lines.toReversed() })
      t.after(() => gateway.close())
      const [first, second] = sdk === 'anthropic' ? [chatLine, messageLine] : [messageLine, chatLine]
      const { script } = first
      first.script = (res, request, index) =>
        index === 0 ? script(res, request, index) : answerJson(res, 503, { error: { message: 'busy' } })
      const loop = sdk === 'anthropic' ? anthropicLoop : openAiLoop
      assert.equal(await loop(gateway.url), 'Wet.')
      assert.equal(second.requests.length, 2)
      const sent = second.requests[0]?.raw.toString() ?? ''
      // The second line would not take the thoughts of the first.
      assert.doesNotMatch(sent, /thought 0|unsigned|sig-0|reasoning/)
      assert.match(sent, /It rains in Bern/)
    })
  }
})

const result = (tool_use_id: string, city: string) => ({
  type: 'tool_result',
  tool_use_id,
  content: weatherIn(city),
})

async function openAiLoop(url: string): Promise<unknown> {
  const tools = [{ type: 'function' as const, function: { name: 'weather', parameters: SCHEMA } }]
  const messages: OpenAI.ChatCompletionMessageParam[] = user('Weather?')
  for (;;) {
    const { choices } = await openaiOf(url).chat.completions.create({ model: 'chat', messages, tools })
    const [choice] = choices
    assert.ok(choice)
    messages.push(choice.message)
    if (choice.finish_reason !== 'tool_calls') return choice.message.content
    for (const call of choice.message.tool_calls ?? []) {
      assert.ok(call.type === 'function')
      const content = weatherIn(JSON.parse(call.function.arguments).city)
      messages.push({ role: 'tool', tool_call_id: call.id, content })
    }
  }
}

async function anthropicLoop(url: string): Promise<unknown> {
  const tools = [{ name: 'weather', input_schema: SCHEMA }]
  const messages: Anthropic.MessageParam[] = user('Weather?')
  for (;;) {
    const { content, stop_reason } = await anthropicOf(url).messages.create({
      model: 'chat',
      max_tokens: 100,
      messages,
      tools,
    })
    messages.push({ role: 'assistant', content })
    if (stop_reason !== 'tool_use') return content[0]?.type === 'text' && content[0].text
    const results = content.flatMap((block): Anthropic.ToolResultBlockParam[] => {
      if (block.type !== 'tool_use') return []
      const content = weatherIn((block.input as { city: string }).city)
      return [{ type: 'tool_result', tool_use_id: block.id, content }]
    })
    messages.push({ role: 'user', content: results })
  }
}
