import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { completions } from '../../../../lib/core/operations/chat/completions.ts'
import { chatCompletions, estimateTokens } from '../../../../lib/core/operations/index.ts'
import { chunk, readAll } from './read-chunks.ts'

const answer = (...messages: unknown[]) => ({
  id: 'chatcmpl-7',
  object: 'chat.completion',
  choices: messages.map((message, index) => ({ index, message, finish_reason: 'stop', logprobs: null })),
})
const substanceOf = (json: unknown) => chatCompletions.readAnswer(json).substance
const usageOf = (usage: unknown) => chatCompletions.readAnswer({ choices: [], usage }).usage

describe('a chat completion', () => {
  const call = { id: 'call_1', type: 'function', function: { name: 'weather', arguments: '{"city":"Oslo"}' } }
  const output: [what: string, message: object][] = [
    ['text', { role: 'assistant', content: 'Good morning.' }],
    ['one blank', { content: ' ' }],
    ['content parts', { content: [{ type: 'text', text: 'Hi' }] }],
    ['reasoning without text', { content: '', reasoning_content: 'First I look at the map.' }],
    ['reasoning under its other name', { content: null, reasoning: 'First I look at the map.' }],
    ['a tool call without text', { content: null, tool_calls: [call] }],
    ['a function call', { content: null, function_call: call.function }],
    ['audio', { content: null, audio: { id: 'audio_1', data: 'UklGRg==' } }],
    ['an image', { content: '', images: [{ type: 'image_url' }] }],
  ]
  for (const [what, message] of output)
    it(`with ${what} holds output`, () => assert.equal(substanceOf(answer(message)), 'output'))

  it('with only empty parts has no output', () => {
    const nothing = [
      {},
      null,
      { content: '' },
      { content: null, tool_calls: [], refusal: null },
      { content: [] },
    ]
    for (const message of nothing) assert.equal(substanceOf(answer(message)), 'empty')
    assert.equal(substanceOf({ choices: [] }), 'empty')
    assert.equal(substanceOf({ choices: [null, 1, 'x'] }), 'empty')
  })

  it('with output in one of several choices has output', () => {
    assert.equal(substanceOf(answer({ content: '' }, { content: 'Hi' })), 'output')
  })

  it('in which the model declines in its own words is a refusal', () => {
    assert.equal(substanceOf(answer({ content: null, refusal: 'I cannot help with that.' })), 'refusal')
  })

  it('stopped by moderation before any output is filtered, with some output it is an answer', () => {
    const stopped = (content: string) => ({
      choices: [{ message: { content }, finish_reason: 'content_filter' }],
    })
    assert.equal(substanceOf(stopped('')), 'filtered')
    assert.equal(substanceOf(stopped('Once upon')), 'output')
  })

  it('is invalid without choices', () => {
    for (const json of [null, 7, 'x', [], {}, { choices: {} }, { error: { message: 'no' } }]) {
      assert.throws(() => chatCompletions.readAnswer(json), SyntaxError)
    }
  })

  it('reports its usage: cached input under either name, a zero as a zero, an invalid count as not reported', () => {
    const full = { prompt_tokens: 339, completion_tokens: 0, prompt_tokens_details: { cached_tokens: 320 } }
    assert.deepEqual(usageOf(full), {
      inputTokens: 339,
      outputTokens: 0,
      cachedInputTokens: 320,
      cacheWriteTokens: undefined,
      audioInputTokens: undefined,
      audioOutputTokens: undefined,
      reasoningTokens: undefined,
      webSearches: undefined,
    })
    const spoken = {
      prompt_tokens: 90,
      completion_tokens: 61,
      prompt_tokens_details: { cached_tokens: 0, audio_tokens: 70 },
      completion_tokens_details: { reasoning_tokens: 0, audio_tokens: 47 },
    }
    const { audioInputTokens, audioOutputTokens, reasoningTokens } = usageOf(spoken)
    assert.deepEqual([audioInputTokens, audioOutputTokens, reasoningTokens], [70, 47, 0])
    assert.equal(usageOf({ prompt_tokens: 9, prompt_cache_hit_tokens: 5 }).cachedInputTokens, 5)
    assert.equal(usageOf({ prompt_tokens: 9, prompt_tokens_details: null }).cachedInputTokens, undefined)
    for (const usage of [undefined, null, 7, 'x']) assert.deepEqual(usageOf(usage), {})
    for (const tokens of ['9', -1, Number.NaN, Number.POSITIVE_INFINITY, null]) {
      assert.equal(usageOf({ prompt_tokens: tokens, completion_tokens: tokens }).outputTokens, undefined)
    }
  })

  it('estimates its output over text, reasoning and tool calls of all choices', () => {
    const one = answer({ content: 'one two three four' })
    const text = 'one two three four'
    for (const thinking of [text, [{ type: 'text', text }]])
      assert.equal(
        chatCompletions.readAnswer(answer({ content: [{ type: 'thinking', thinking }] })).estimateOutput(),
        chatCompletions.readAnswer(one).estimateOutput(),
      )
    assert.equal(chatCompletions.readAnswer(one).estimateOutput(), 4)
    const both = answer({ content: 'one two three four' }, { reasoning_content: 'one two three four' })
    assert.equal(chatCompletions.readAnswer(both).estimateOutput(), 8)
    assert.ok(chatCompletions.readAnswer(answer({ content: null, tool_calls: [call] })).estimateOutput() >= 4)
    assert.equal(
      chatCompletions.readAnswer(answer({ content: null, tool_calls: [null, {}, 7] })).estimateOutput(),
      0,
    )
  })
})

type Json = Record<string, unknown>

const read = (choices: unknown[], members: Json = {}, request: Json = {}) =>
  chatCompletions.readAnswer({ choices, ...members }, request)

describe('the choices of a chat', () => {
  const refused = { message: { refusal: 'No.' } }
  const said = { message: { content: 'Hi' } }
  const filtered = { message: { content: '' }, finish_reason: 'content_filter' }
  const cut = { message: {}, finish_reason: 'length' }
  const empty = { message: {}, finish_reason: 'stop' }
  const rows: [choices: unknown[], substance: string][] = [
    [[refused, said], 'refusal'],
    [[said, refused], 'refusal'],
    [[refused, filtered], 'refusal'],
    [[said, filtered], 'output'],
    [[filtered, said], 'output'],
    [[said, empty], 'output'],
    [[filtered, empty], 'filtered'],
    [[empty, filtered], 'filtered'],
    [[empty, cut], 'no_output'],
    [[null, cut, 'x'], 'no_output'],
    [[filtered, cut], 'filtered'],
    [[empty, { ...empty, stop_reason: '</end>' }], 'no_output'],
    [[{ ...empty, stop_reason: 128_009 }], 'no_output'],
    [[{ ...empty, stop_reason: null }], 'empty'],
    [[{ message: { reasoning_details: [{ type: 'reasoning.encrypted' }] } }], 'output'],
    [[{ message: { reasoning_details: [], tool_calls: {}, images: 'x', function_call: null } }], 'empty'],
    [[{ message: { audio: 'x' } }], 'empty'],
    [[{ message: { content: [{ type: 'text', text: '' }] } }], 'empty'],
    [[{ message: { content: [{ type: 'text', text: '' }, 'x'] } }], 'output'],
    [[{ message: { content: [{ type: 'image_url' }] } }], 'output'],
  ]
  for (const [choices, substance] of rows)
    it(`are ${substance}: ${JSON.stringify(choices)}`, () => assert.equal(read(choices).substance, substance))

  it('are explained by the request or by the usage', () => {
    assert.equal(read([empty], {}, { stop: 'x' }).substance, 'no_output')
    const usage = { completion_tokens: 5, completion_tokens_details: { reasoning_tokens: 5 } }
    assert.equal(read([empty], { usage }).substance, 'no_output')
    assert.equal(read([{ ...empty, usage }]).substance, 'no_output')
    assert.equal(read([], { usage }).substance, 'empty')
    assert.equal(
      completions.readAnswer({ choices: [{ text: '', finish_reason: 'stop' }] }, { stop: 'x' }).substance,
      'no_output',
    )
  })

  it('have an error if one broke off, the first that is reported', () => {
    const broken = (error?: unknown) => ({ ...said, finish_reason: 'error', error })
    assert.deepEqual(read([broken({ code: 'a' }), broken({ code: 'b' })]).error, { code: 'a' })
    for (const reason of ['error', 'network_error', 'insufficient_system_resource', 'abort', 'interrupted'])
      assert.deepEqual(read([said, { ...said, finish_reason: reason }]).error, {
        message: `the answer stopped for the reason ${reason}`,
      })
    assert.equal(read([{ ...said, error: { code: 'a' } }]).error, undefined)
  })

  it('are counted by all their text', () => {
    const fn = { name: 'weather', arguments: '{"city":"Oslo"}' }
    const rows: [output: Json, text: string][] = [
      [{ content: 'Hello there', refusal: 'no' }, 'Hello thereno'],
      [{ content: 'a', reasoning_content: 'b', reasoning: 'c' }, 'ab'],
      [{ content: 'a', reasoning_content: null, reasoning: 'long words' }, 'along words'],
      [{ content: [{ text: 'one' }, { text: 7 }, null, 'x', { text: ' two' }] }, 'one two'],
      [{ tool_calls: [{ function: fn }, { function: null }, null] }, `${fn.name}${fn.arguments}`],
      [{ function_call: fn }, `${fn.name}${fn.arguments}`],
      [{ content: 7, tool_calls: 'x', function_call: 'y' }, ''],
    ]
    for (const [message, text] of rows) {
      assert.equal(read([{ message }]).estimateOutput(), estimateTokens(text), JSON.stringify(message))
      if (text !== '') {
        const { reader } = readAll([chunk({ delta: message })])
        assert.ok(Math.abs(reader.estimatedOutput - estimateTokens(text)) <= 2, JSON.stringify(message))
      }
    }
    assert.equal(read([null, 'x', { message: null }]).estimateOutput(), 0)
  })

  it('contain the searches and the tier of service of their call', () => {
    const usage = { prompt_tokens: 1, completion_tokens: 2, server_tool_use: { web_search_requests: 3 } }
    assert.equal(read([said], { usage }).usage.webSearches, 3)
    assert.equal(read([said], { usage: { ...usage, server_tool_use: null } }).usage.webSearches, undefined)
    const tier = (service_tier: unknown) => {
      const { reader } = readAll([chunk({ delta: {} }, { usage, service_tier })])
      const told = reader.usage.serviceTier
      assert.equal(told || undefined, read([said], { service_tier, usage }).usage.serviceTier)
      assert.equal(told, read([said], { service_tier }).usage.serviceTier)
      return told
    }
    const names = ['flex', 'priority', 'x'.repeat(32)]
    assert.deepEqual(names.map(tier), names)
    assert.deepEqual(['FLEX', 'Priority'].map(tier), ['flex', 'priority'])
    for (const usual of ['default', 'standard', 'on_demand', 'ON_DEMAND']) assert.ok(!tier(usual), usual)
    for (const none of ['auto', '', null, 7, 'a b', 'a-b', 'x'.repeat(33)])
      assert.equal(tier(none), undefined, String(none))
    assert.equal('serviceTier' in read([said], { usage }).usage, false)
  })
})
