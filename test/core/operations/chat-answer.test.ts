import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { chatCompletions } from '../../../lib/core/operations/index.ts'

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

  it('with nothing of that is empty', () => {
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

  it('with output in one of several choices holds output', () => {
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

  it('is no answer without choices', () => {
    for (const json of [null, 7, 'x', [], {}, { choices: {} }, { error: { message: 'no' } }]) {
      assert.throws(() => chatCompletions.readAnswer(json), SyntaxError)
    }
  })

  it('reports its usage: cached input under either name, a zero as a zero, nonsense as not reported', () => {
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
