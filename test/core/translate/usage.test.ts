import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  chatReasoningTokens,
  chatUsage,
  messagesReasoningTokens,
  messagesUsage,
} from '../../../lib/core/translate/usage.ts'

describe('the usage of an answer, as a chat reports it', () => {
  it('adds input and output up, and says what of it was cached, written to a cache and thought', () => {
    const usage = { inputTokens: 100, cachedInputTokens: 60, cacheWriteTokens: 10, outputTokens: 9 }
    assert.deepEqual(chatUsage({ ...usage, reasoningTokens: 4 }), {
      prompt_tokens: 100,
      completion_tokens: 9,
      total_tokens: 109,
      prompt_tokens_details: { cached_tokens: 60, cache_write_tokens: 10 },
      completion_tokens_details: { reasoning_tokens: 4 },
    })
  })

  it('has no member for a count that is not known', () => {
    assert.deepEqual(chatUsage({ inputTokens: 5 }), { prompt_tokens: 5, total_tokens: 5 })
    assert.deepEqual(chatUsage({ outputTokens: 7 }), { completion_tokens: 7, total_tokens: 7 })
    assert.deepEqual(chatUsage({ inputTokens: 5, cacheWriteTokens: 2 })?.prompt_tokens_details, {
      cache_write_tokens: 2,
    })
  })

  it('is left out where the line counted neither input nor output', () => {
    assert.equal(chatUsage({}), undefined)
    assert.equal(chatUsage({ cachedInputTokens: 4, reasoningTokens: 2 }), undefined)
  })

  it('keeps a count of zero', () => {
    const counts = { inputTokens: 0, outputTokens: 0, cachedInputTokens: 0, cacheWriteTokens: 0 }
    assert.deepEqual(chatUsage({ ...counts, reasoningTokens: 0 }), {
      prompt_tokens: 0,
      completion_tokens: 0,
      total_tokens: 0,
      prompt_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
      completion_tokens_details: { reasoning_tokens: 0 },
    })
  })
})

describe('the usage of an answer, as a message reports it', () => {
  const told = (fresh: number, written: number | null, read: number | null, output: number) => ({
    input_tokens: fresh,
    cache_creation_input_tokens: written,
    cache_read_input_tokens: read,
    output_tokens: output,
  })

  it('has the input without what was read from and written to a cache', () => {
    const usage = { inputTokens: 100, cachedInputTokens: 60, cacheWriteTokens: 10, outputTokens: 9 }
    assert.deepEqual(messagesUsage(usage), told(30, 10, 60, 9))
    assert.deepEqual(messagesUsage({ ...usage, reasoningTokens: 0 }), {
      ...told(30, 10, 60, 9),
      output_tokens_details: { thinking_tokens: 0 },
    })
  })

  it('has null for what is not known of a cache', () => {
    assert.deepEqual(messagesUsage({}), told(0, null, null, 0))
    assert.deepEqual(messagesUsage({ outputTokens: 7 }), told(0, null, null, 7))
    assert.deepEqual(messagesUsage({ inputTokens: 7, cacheWriteTokens: 0 }), told(7, 0, null, 0))
  })

  it('has the searches that the line ran, if it ran any', () => {
    assert.deepEqual(messagesUsage({ webSearches: 2 }), {
      ...told(0, null, null, 0),
      server_tool_use: { web_search_requests: 2 },
    })
    assert.deepEqual(messagesUsage({ webSearches: 0 }), told(0, null, null, 0))
  })

  it('never has a part that is more than the whole input', () => {
    assert.deepEqual(messagesUsage({ inputTokens: 50, cachedInputTokens: 90 }), told(0, null, 50, 0))
    assert.deepEqual(
      messagesUsage({ inputTokens: 50, cachedInputTokens: 30, cacheWriteTokens: 30 }),
      told(0, 20, 30, 0),
    )
  })
})

describe('the count of what was thought', () => {
  const ofChat = (reasoning_tokens: unknown) =>
    chatReasoningTokens({ completion_tokens_details: { reasoning_tokens } })
  const ofMessages = (thinking_tokens: unknown) =>
    messagesReasoningTokens({ output_tokens_details: { thinking_tokens } })

  it('is a whole number from zero', () => {
    for (const count of [0, 1, 640]) assert.deepEqual([ofChat(count), ofMessages(count)], [count, count])
  })

  it('is unknown where the line says anything else, or nothing', () => {
    for (const odd of [-1, 1.5, '4', null, true, [4], Number.NaN])
      assert.deepEqual([ofChat(odd), ofMessages(odd)], [undefined, undefined], String(odd))
    for (const usage of [undefined, null, 7, 'usage', {}, { completion_tokens_details: null }])
      assert.deepEqual([chatReasoningTokens(usage), messagesReasoningTokens(usage)], [undefined, undefined])
  })
})
