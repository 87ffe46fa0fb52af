import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { chatCompletions, messages, responses } from '../../../lib/core/operations/index.ts'
import { translationOf } from '../../../lib/core/translate/index.ts'
import { derivedId, sealedToolId, toolName } from '../../../lib/core/translate/tool-ids.ts'
import type { Body } from './support/requests.ts'

describe('an answer that breaks its protocol', () => {
  const context = { request: { model: 'chat' }, created: 5, estimatedInputTokens: 9 }

  /** The answer that a chat caller gets for these blocks of an Anthropic-style line. */
  function ofBlocks(content: unknown, more: Body = {}) {
    const json = { id: 'msg_1', model: 'claude', content, stop_reason: 'end_turn', ...more }
    const made = translationOf(chatCompletions, { protocol: 'anthropic' })?.answer(json, {}, context)
    assert.ok(made)
    const [{ message }] = made.body.choices as [{ message: Body }]
    return { ...made, message }
  }

  /** The answer that a caller of messages gets from an OpenAI-style line's answer. */
  function ofChat(json: Body) {
    const made = translationOf(messages, { protocol: 'openai' })?.answer(json, {}, context)
    assert.ok(made)
    return { ...made, content: made.body.content }
  }

  const choice = (message: unknown, finish_reason: unknown = 'stop') => ({
    id: 'c',
    choices: [{ message, finish_reason }],
  })
  const text = { type: 'text', text: 'Hello' }

  describe('an Anthropic-style answer that is not as it should be', () => {
    it('has its incomplete blocks counted', () => {
      const { message, skipped } = ofBlocks([
        { type: 'text' },
        { type: 'thinking', signature: 's' },
        { type: 'redacted_thinking' },
        { type: 'mystery', text: 'no', thinking: 'no', data: 'no' },
        ['text'],
        7,
        text,
      ])
      assert.deepEqual(message, { role: 'assistant', content: 'Hello', refusal: null })
      assert.equal(skipped, 6)
    })

    it('has no text if it has no blocks', () => {
      for (const content of [undefined, null, 'Hello', {}]) {
        const { message, skipped, body } = ofBlocks(content)
        assert.deepEqual([message.content, skipped, body.usage], [null, 0, undefined])
      }
    })

    it('calls with an id and an object, with or without its own', () => {
      const { message } = ofBlocks([
        { type: 'tool_use', id: '', name: 'f', input: 'x' },
        { type: 'tool_use', name: 'g', input: [1] },
        { type: 'tool_use', id: 'toolu_3', name: 'h' },
      ])
      const call = (id: string, name: string) => ({
        id,
        type: 'function',
        function: { name, arguments: '{}' },
      })
      assert.deepEqual(message.tool_calls, [
        call(derivedId('msg_1:0'), 'f'),
        call(derivedId('msg_1:1'), 'g'),
        call('toolu_3', 'h'),
      ])
    })

    it('calls by the names that were asked for, beside tools that are no functions', () => {
      const tools = [
        { type: 'web_fetch' },
        { type: 'function' },
        { type: 'function', function: { name: 'a.b' } },
      ]
      const content = [{ type: 'tool_use', id: 'x', name: toolName('a.b', 128), input: {} }]
      const made = translationOf(chatCompletions, { protocol: 'anthropic' })?.answer(
        { content },
        {},
        { ...context, request: { tools } },
      )
      assert.match(JSON.stringify(made?.body), /"name":"a\.b"/)
    })

    it('signs nothing if the thinking has no signature', () => {
      const { message } = ofBlocks([
        { type: 'thinking', thinking: 'a' },
        { type: 'thinking', thinking: 'bc', signature: '' },
        { type: 'thinking', thinking: 'd', signature: 's' },
      ])
      assert.equal(message.reasoning_content, 'abcd')
      assert.deepEqual(message.reasoning_details, [
        { type: 'reasoning.text', format: 'anthropic-claude-v1', index: 0, length: 1, signature: 's' },
      ])
    })

    const SOURCES: [what: string, citation: Body, url: string | undefined][] = [
      ['a page', { type: 'web_search_result_location', url: 'http://a.test/' }, 'http://a.test/'],
      ['a page in capitals', { type: 'search_result_location', source: 'HTTPS://A.TEST' }, 'HTTPS://A.TEST'],
      [
        'a text that holds an address',
        { type: 'search_result_location', source: 'see https://a.test' },
        undefined,
      ],
      ['a file', { type: 'search_result_location', source: 'file:///a' }, undefined],
      [
        'the address of another kind',
        { type: 'char_location', url: 'https://a.test', source: 'https://a.test' },
        undefined,
      ],
      ['the source of a page', { type: 'web_search_result_location', source: 'https://a.test' }, undefined],
      [
        'the address of a search result',
        { type: 'search_result_location', url: 'https://a.test' },
        undefined,
      ],
    ]
    for (const [what, citation, url] of SOURCES) {
      it(`cites pages only: ${what}`, () => {
        const { message, skipped } = ofBlocks([{ ...text, citations: [{ title: '', ...citation }] }])
        const cited = { start_index: 0, end_index: 5, url, title: url }
        assert.deepEqual(
          [message.annotations, skipped],
          url === undefined ? [undefined, 1] : [[{ type: 'url_citation', url_citation: cited }], 0],
        )
      })
    }

    it('cites what each of its texts has, in their order', () => {
      const page = (url: unknown) => ({ type: 'web_search_result_location', url })
      const { message, skipped } = ofBlocks([
        { ...text, citations: [page('https://a'), page(['https://x'])] },
        { ...text, citations: [page('https://b')] },
      ])
      const cited = (message.annotations as { url_citation: Body }[]).map(
        ({ url_citation: { url, start_index } }) => [url, start_index],
      )
      assert.deepEqual(
        [cited, skipped],
        [
          [
            ['https://a', 0],
            ['https://b', 5],
          ],
          1,
        ],
      )
    })

    it('declines by its stop reason only, in the words that it has', () => {
      const stop_details = { explanation: '' }
      assert.equal(ofBlocks([text], { stop_reason: 'end_turn', stop_details }).message.refusal, null)
      for (const details of [stop_details, 'no', null, { explanation: 7 }]) {
        const { message } = ofBlocks([text], { stop_reason: 'refusal', stop_details: details })
        assert.deepEqual([message.content, message.refusal], ['Hello', 'The model declined to answer.'])
      }
    })
  })

  describe('an OpenAI-style answer that is not as it should be', () => {
    it('says nothing where it has no message', () => {
      for (const json of [{}, { choices: [] }, { choices: 'x' }, choice(undefined), choice('Hello')]) {
        const { body, skipped } = ofChat(json)
        assert.deepEqual([body.content, body.stop_reason, skipped], [[], 'end_turn', 0])
      }
    })

    it('has an id of its own', () => {
      for (const id of [undefined, '', 7])
        assert.equal(ofChat({ ...choice({ content: 'a' }), id }).body.id, 'msg_5')
    })

    it('has its further choices counted, and its reasoning of other makers', () => {
      const { skipped, content } = ofChat({
        choices: [
          {
            message: {
              content: 'a',
              reasoning_details: [{ format: 'other' }, { format: 'anthropic-claude-v1' }, 'x'],
            },
          },
          { message: { content: 'b' } },
          { message: { content: 'c' } },
        ],
      })
      assert.deepEqual([content, skipped], [[{ type: 'text', text: 'a' }], 3])
    })

    it('may come in parts, of which those without a counterpart are counted', () => {
      const { content, skipped } = ofChat(
        choice({
          content: [
            { type: 'thinking', thinking: [{ text: 'H' }, { text: 7 }, 'x', { text: 'm' }] },
            { type: 'text', text: 'a' },
            { type: 'text', text: 7 },
            { type: 'mystery', text: 'no', thinking: [{ text: 'no' }] },
            { type: 'text', text: 'b' },
            'x',
          ],
          audio: null,
        }),
      )
      assert.deepEqual(content, [
        { type: 'thinking', thinking: 'Hm', signature: 'unsigned:openai-style-line' },
        { type: 'text', text: 'ab' },
      ])
      assert.equal(skipped, 1)
    })

    it('may have a call in its old form, which is the same one beside the current form', () => {
      const old = { name: 'f', arguments: '{"a":1}' }
      const use = { type: 'tool_use', name: 'f', input: { a: 1 } }
      assert.deepEqual(ofChat(choice({ function_call: old })).content, [{ ...use, id: derivedId('c:0') }])
      const tool_calls = [{ id: 'call_1', type: 'function', function: old }]
      assert.deepEqual(ofChat(choice({ tool_calls, function_call: old })).content, [{ ...use, id: 'call_1' }])
    })

    it('calls with an id, and with what the line wants back', () => {
      const extra_content = { google: { thought_signature: 's' } }
      const fn = { name: 'f', arguments: { a: 1 } }
      const tool_calls = [
        { function: fn },
        { id: 'call_1', function: fn, extra_content },
        { id: 'x' },
        { id: 'y', function: {} },
      ]
      const { content, skipped, body } = ofChat(choice({ tool_calls }))
      assert.deepEqual(content, [
        { type: 'tool_use', id: derivedId('c:0'), name: 'f', input: { a: 1 } },
        { type: 'tool_use', id: sealedToolId('call_1', extra_content), name: 'f', input: { a: 1 } },
      ])
      assert.deepEqual([skipped, body.stop_reason], [2, 'tool_use'])
    })

    it('keeps integers of any size in the arguments of its calls', () => {
      const written = '{"id":12345678901234567890}'
      const { content } = ofChat(
        choice({ tool_calls: [{ id: 'a', function: { name: 'f', arguments: written } }] }),
      )
      assert.match(JSON.stringify(content), /"input":\{"id":12345678901234567890\}/)
    })

    it('cites what has an address, with a title or without', () => {
      const annotations = [
        { url_citation: { url: 'https://a.test', title: '' } },
        { url_citation: { title: 'No address' } },
        { url_citation: null },
        { file_citation: {} },
      ]
      const { content } = ofChat(choice({ content: 'a', annotations }))
      const page = {
        url: 'https://a.test',
        title: null,
        encrypted_index: 'unsigned:openai-style-line',
        cited_text: '',
      }
      assert.deepEqual(content, [
        { type: 'text', text: 'a', citations: [{ type: 'web_search_result_location', ...page }] },
      ])
      assert.deepEqual(ofChat(choice({ content: '', annotations })).content, [])
    })

    it('declines behind what it has said', () => {
      const { content, body } = ofChat(choice({ content: 'Well. ', refusal: 'No.' }, 'length'))
      assert.deepEqual([content, body.stop_reason], [[{ type: 'text', text: 'Well. No.' }], 'max_tokens'])
      const called = ofChat(choice({ refusal: 'No.', tool_calls: [{ id: 'a', function: { name: 'f' } }] }))
      assert.equal(called.body.stop_reason, 'tool_use')
      for (const refusal of ['', null, 7])
        assert.equal('stop_details' in ofChat(choice({ content: 'a', refusal })).body, false)
    })
  })
})

describe('the end of an answer', () => {
  const context = { request: { model: 'chat' }, created: 5, estimatedInputTokens: 9 }
  const UNKNOWN = ['new', 7, ['length'], ...Object.getOwnPropertyNames(Object.prototype)]
  const message = { role: 'assistant', content: 'Hello' }
  const content = [{ type: 'text', text: 'Hello' }]

  /** Returns the end of an answer as each protocol reports it, for the finish reason of a line. */
  function endsFor(reason: unknown): unknown[] {
    const chat = { id: 'c', choices: [{ index: 0, message, finish_reason: reason }] }
    const answer = { id: 'msg_1', model: 'claude', content, stop_reason: reason }
    const toMessages = translationOf(messages, { protocol: 'openai' })?.answer(chat, {}, context)
    const toChat = translationOf(chatCompletions, { protocol: 'anthropic' })?.answer(answer, {}, context)
    const line = { protocol: 'openai', endpoints: new Set(['chat/completions']) } as const
    const toResponse = translationOf(responses, line)?.answer(chat, {}, context)
    assert.ok(toChat)
    const [choice] = toChat.body.choices as [{ finish_reason: unknown }]
    return [toMessages?.body.stop_reason, choice.finish_reason, toResponse?.body.status]
  }

  it('an answer that ends for an unknown reason, whatever its name, may have been cut', () => {
    for (const reason of UNKNOWN)
      assert.deepEqual(endsFor(reason), ['max_tokens', 'length', 'incomplete'], String(reason))
  })

  it('an answer that met any kind of maximum was cut', () => {
    for (const reason of [
      'model_length',
      'MAX_TOKENS',
      'maxTokens',
      'context_length_exceeded',
      'token_limit',
    ])
      assert.deepEqual(endsFor(reason), ['max_tokens', 'length', 'incomplete'], reason)
  })

  it('an answer that gives no reason for its end is complete', () => {
    for (const reason of ['', null, undefined])
      assert.deepEqual(endsFor(reason), ['end_turn', 'stop', 'completed'], String(reason))
  })
})
