import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { chatCompletions } from '../../../../lib/core/operations/index.ts'
import { translationOf } from '../../../../lib/core/translate/index.ts'
import type { Body } from '../support/requests.ts'

const direction = translationOf(chatCompletions, { protocol: 'anthropic' })
const usage = { inputTokens: 10, cachedInputTokens: 4, cacheWriteTokens: 3, outputTokens: 5 }

/** The answer that a chat caller gets from an Anthropic-style line's answer. */
function told(answer: Body) {
  const context = { request: { model: 'chat' }, created: 1_700_000_000, estimatedInputTokens: 9 }
  const json = {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'claude',
    stop_reason: 'end_turn',
    ...answer,
  }
  const made = direction?.answer(json, usage, context)
  assert.ok(made)
  const [choice] = made.body.choices as [{ message: Body; finish_reason: string }]
  return { ...made, choice, message: choice.message }
}

const text = { type: 'text', text: 'Hello' }

describe('an Anthropic-style answer, to a chat caller,', () => {
  it('is a chat completion', () => {
    assert.deepEqual(told({ content: [text] }).body, {
      id: 'msg_1',
      object: 'chat.completion',
      created: 1_700_000_000,
      model: 'claude',
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: 'Hello', refusal: null },
          logprobs: null,
          finish_reason: 'stop',
        },
      ],
      usage: {
        prompt_tokens: 10,
        completion_tokens: 5,
        total_tokens: 15,
        prompt_tokens_details: { cached_tokens: 4, cache_write_tokens: 3 },
      },
      // OpenRouter's SDK demands it.
      system_fingerprint: null,
    })
  })

  it('reports the reasoning within the output', () => {
    const { body } = told({ content: [text], usage: { output_tokens_details: { thinking_tokens: 2 } } })
    assert.deepEqual((body.usage as Body).completion_tokens_details, { reasoning_tokens: 2 })
  })

  it('joins its texts, and has none where it only calls', () => {
    assert.equal(told({ content: [text, { type: 'text', text: ' there' }] }).message.content, 'Hello there')
    const use = { type: 'tool_use', id: 'toolu_1', name: 'f', input: {} }
    assert.equal(told({ content: [use] }).message.content, null)
  })

  it('calls several tools, one without arguments', () => {
    const content = [
      text,
      { type: 'tool_use', id: 'toolu_1', name: 'f', input: { a: [1, { b: 'ü' }] } },
      { type: 'tool_use', id: 'toolu_2', name: 'g', input: {} },
    ]
    const { message, choice } = told({ content, stop_reason: 'tool_use' })
    assert.deepEqual(message.tool_calls, [
      { id: 'toolu_1', type: 'function', function: { name: 'f', arguments: '{"a":[1,{"b":"ü"}]}' } },
      { id: 'toolu_2', type: 'function', function: { name: 'g', arguments: '{}' } },
    ])
    assert.equal(choice.finish_reason, 'tool_calls')
  })

  it('keeps thinking with what the line wants to see again', () => {
    const content = [
      { type: 'thinking', thinking: 'So', signature: 'sig-1' },
      { type: 'redacted_thinking', data: 'secret' },
      { type: 'thinking', thinking: 'and so', signature: 'sig-2' },
      text,
    ]
    const { message } = told({ content })
    assert.equal(message.reasoning_content, 'Soand so')
    assert.deepEqual(message.reasoning_details, [
      { type: 'reasoning.text', format: 'anthropic-claude-v1', index: 0, length: 2, signature: 'sig-1' },
      { type: 'reasoning.encrypted', format: 'anthropic-claude-v1', index: 1, length: 0, data: 'secret' },
      { type: 'reasoning.text', format: 'anthropic-claude-v1', index: 2, length: 6, signature: 'sig-2' },
    ])
    const back = direction?.request(
      { model: 'chat', messages: [{ role: 'user', content: 'hi' }, message] },
      { upstreamModel: 'm', defaultMaxTokens: 100 },
    )
    const [, turn] = (back?.messages ?? []) as { content: unknown }[]
    assert.deepEqual(turn?.content, content)
  })

  const REASONS = [
    ['end_turn', 'stop'],
    ['stop_sequence', 'stop'],
    ['pause_turn', 'length'],
    ['max_tokens', 'length'],
    ['model_context_window_exceeded', 'length'],
    ['something_new', 'length'],
    ['guardrail_intervened', 'content_filter'],
    // It calls no tool.
    ['tool_use', 'stop'],
  ]
  for (const [stop_reason, finish] of REASONS) {
    it(`that ends with ${stop_reason} ends with ${finish}`, () => {
      assert.equal(told({ content: [text], stop_reason }).choice.finish_reason, finish)
    })
  }

  it('that declines says so in words', () => {
    const { message, choice } = told({ content: [], stop_reason: 'refusal' })
    assert.deepEqual([message.content, choice.finish_reason], [null, 'stop'])
    assert.match(String(message.refusal), /declined/)
    const stop_details = { type: 'refusal', category: 'bio', explanation: 'Not this.' }
    assert.equal(told({ content: [], stop_reason: 'refusal', stop_details }).message.refusal, 'Not this.')
  })

  it('cites pages on the web, and leaves other citations out', () => {
    const page = { url: 'https://example.com/a', title: 'A', encrypted_index: 'x', cited_text: 'lo' }
    const citations = [
      { type: 'web_search_result_location', ...page },
      { type: 'search_result_location', source: 'https://example.com/b', title: null },
      { type: 'char_location', cited_text: 'lo', document_index: 0 },
    ]
    const { message, skipped } = told({ content: [text, { ...text, citations }] })
    assert.deepEqual(message.annotations, [
      {
        type: 'url_citation',
        url_citation: { start_index: 5, end_index: 10, url: 'https://example.com/a', title: 'A' },
      },
      {
        type: 'url_citation',
        url_citation: {
          start_index: 5,
          end_index: 10,
          url: 'https://example.com/b',
          title: 'https://example.com/b',
        },
      },
    ])
    assert.equal(skipped, 1)
  })

  it('leaves out blocks that a chat has no word for', () => {
    const content = [{ type: 'server_tool_use', id: 's', name: 'web_search', input: {} }, null, 'x', text]
    const { message, skipped } = told({ content })
    assert.equal(message.content, 'Hello')
    assert.equal(skipped, 3)
  })
})
