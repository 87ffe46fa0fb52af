import assert from 'node:assert/strict'
import { before, beforeEach, describe, it } from 'node:test'
import { cleaningUp } from '../../support/clean-up.ts'
import { startGateway, type TestGateway } from '../../support/gateway.ts'
import {
  chatAnswer,
  messageAnswer,
  type ScriptedUpstream,
  startUpstream,
} from '../../support/scripted-upstream.ts'
import { anthropicOf, openaiOf, user } from './clients.ts'

const SCHEMA = { type: 'object' as const, properties: { city: { type: 'string' } } }

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

describe('the OpenAI SDK on an anthropic line', () => {
  it('parses an answer by its schema', async () => {
    messageLine.script = (res) => messageAnswer(res, '{"city":"Rome"}')
    const schema = { ...SCHEMA, required: ['city'], additionalProperties: false }
    const { choices } = await openaiOf(onMessageLine.url).chat.completions.parse({
      model: 'chat',
      messages: user('hi'),
      response_format: { type: 'json_schema', json_schema: { name: 'place', strict: true, schema } },
    })
    assert.deepEqual(choices[0]?.message.parsed, { city: 'Rome' })
    assert.deepEqual(messageLine.requests[0]?.json.output_config, { format: { type: 'json_schema', schema } })
  })

  it('counts cached tokens as its own accounting does, and the call is charged the same', async () => {
    const usage = {
      input_tokens: 5,
      cache_read_input_tokens: 70,
      cache_creation_input_tokens: 25,
      output_tokens: 9,
    }
    messageLine.script = (res) => messageAnswer(res, 'Hello', { usage })
    const { data, request_id } = await openaiOf(onMessageLine.url)
      .chat.completions.create({ model: 'chat', messages: user('hi') })
      .withResponse()
    assert.deepEqual(data.usage, {
      prompt_tokens: 100,
      completion_tokens: 9,
      total_tokens: 109,
      prompt_tokens_details: { cached_tokens: 70, cache_write_tokens: 25 },
    })
    const entry = await onMessageLine.entry(request_id ?? null)
    assert.deepEqual(entry.usage, {
      input_tokens: 100,
      cached_input_tokens: 70,
      cache_write_tokens: 25,
      output_tokens: 9,
      source: 'measured',
    })
  })
})

describe('the Anthropic SDK on an openai line', () => {
  it('counts cached tokens as its own accounting does, and the call is charged the same', async () => {
    const details = { cached_tokens: 70, cache_write_tokens: 25 }
    const usage = {
      prompt_tokens: 100,
      completion_tokens: 9,
      total_tokens: 109,
      prompt_tokens_details: details,
    }
    chatLine.script = (res) => chatAnswer(res, 'Hello', { usage })
    const { data, request_id } = await anthropicOf(onChatLine.url)
      .messages.create({ model: 'chat', max_tokens: 100, messages: user('hi') })
      .withResponse()
    assert.deepEqual(data.usage, {
      input_tokens: 5,
      cache_creation_input_tokens: 25,
      cache_read_input_tokens: 70,
      output_tokens: 9,
    })
    const entry = await onChatLine.entry(request_id ?? null)
    assert.equal(entry.usage?.input_tokens, 100)
    assert.equal(entry.usage?.cached_input_tokens, 70)
  })
})
