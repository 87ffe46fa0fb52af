import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isJsonObject, type JsonObject, objectsIn } from '../../../../lib/core/json/index.ts'
import { responsesAsChat, responsesAsMessages } from '../../../../lib/core/translate/directions.ts'
import { Untranslatable } from '../../../../lib/core/translate/translation.ts'
import type { Body } from '../support/requests.ts'
import { chatAsked } from '../support/responses.ts'

describe('an item of the input of a response, in a chat,', () => {
  const text = (value: string) => ({ type: 'text', text: value })
  const messagesOf = (...input: unknown[]) => chatAsked({ input }).messages
  const reasoning = (members: object) => ({ type: 'reasoning', id: 'rs_resp_1', summary: [], ...members })
  const sealed = (json: JsonObject) =>
    `reasoning_details:${Buffer.from(JSON.stringify(json)).toString('base64')}`
  const call = { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' }
  const called = { id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }

  const USER: [content: unknown, made: unknown][] = [
    ['hi', 'hi'],
    [[{ type: 'input_text', text: 'hi' }], 'hi'],
    [[{ type: 'input_text', text: '' }], ''],
    [[{ type: 'text', text: 'hi' }], 'hi'],
    [
      [
        { type: 'input_text', text: 'a' },
        { type: 'input_text', text: 'b' },
      ],
      [text('a'), text('b')],
    ],
    [
      [{ type: 'input_image', image_url: 'https://a.test', detail: 7 }],
      [{ type: 'image_url', image_url: { url: 'https://a.test' } }],
    ],
    [
      [{ type: 'input_file', file_data: 'data:a', filename: 'a.pdf' }],
      [{ type: 'file', file: { file_data: 'data:a', filename: 'a.pdf' } }],
    ],
    [
      [{ type: 'input_file', file_data: 'data:a', filename: null }],
      [{ type: 'file', file: { file_data: 'data:a' } }],
    ],
    [[{ type: 'refusal', refusal: 'No.' }], [{ type: 'refusal', refusal: 'No.' }]],
  ]
  for (const [content, made] of USER)
    it(`is a user’s: ${JSON.stringify(content)}`, () => {
      assert.deepEqual(messagesOf({ role: 'user', content }), [{ role: 'user', content: made }])
      assert.deepEqual(messagesOf({ type: 'message', role: 'developer', content }), [
        { role: 'system', content: made },
      ])
    })

  const ASSISTANT: [what: string, contents: unknown[], made: unknown][] = [
    ['texts', ['a', [{ type: 'output_text', text: 'b' }], 'c'], 'abc'],
    ['a refusal', [[{ type: 'refusal', refusal: 'No.' }]], [{ type: 'refusal', refusal: 'No.' }]],
    [
      'a text, then a refusal',
      ['a', [{ type: 'refusal', refusal: 'No.' }]],
      [text('a'), { type: 'refusal', refusal: 'No.' }],
    ],
    [
      'a text beside a refusal, then a text',
      [
        [
          { type: 'output_text', text: 'a' },
          { type: 'refusal', refusal: 'No.' },
        ],
        'b',
      ],
      [text('a'), { type: 'refusal', refusal: 'No.' }, text('b')],
    ],
    ['an empty text', [''], ''],
  ]
  for (const [what, contents, made] of ASSISTANT)
    it(`is one message of the assistant’s with others of its turn: ${what}`, () => {
      const items = contents.map((content) => ({ role: 'assistant', content }))
      assert.deepEqual(messagesOf(...items), [{ role: 'assistant', content: made }])
    })

  const THOUGHT: [what: string, items: object[], made: Body | undefined][] = [
    ['its content', [reasoning({ content: [{ text: 'a' }, { text: 'b' }] })], { reasoning_content: 'ab' }],
    [
      'its summary, without content',
      [reasoning({ content: [], summary: [{ text: 's' }] })],
      { reasoning_content: 's' },
    ],
    [
      'its content before its summary',
      [reasoning({ content: [{ text: 'a' }], summary: [{ text: 's' }] })],
      { reasoning_content: 'a' },
    ],
    [
      'what is sealed before both',
      [reasoning({ content: [{ text: 'a' }], encrypted_content: sealed({ text: 'b' }) })],
      { reasoning_content: 'b' },
    ],
    [
      'all of a turn',
      [reasoning({ content: [{ text: 'a' }] }), reasoning({ content: [{ text: 'b' }] })],
      { reasoning_content: 'ab' },
    ],
    [
      'each member',
      [
        reasoning({ content: [{ text: 'a' }], encrypted_content: sealed({ member: 'reasoning' }) }),
        reasoning({ content: [{ text: 'b' }], encrypted_content: sealed({ member: 'x' }) }),
      ],
      { reasoning: 'a', reasoning_content: 'b' },
    ],
    [
      'without an id',
      [
        reasoning({ id: undefined, content: [{ text: 'a' }] }),
        reasoning({ id: null, content: [{ text: 'b' }] }),
      ],
      { reasoning_content: 'ab' },
    ],
    [
      'its details',
      [reasoning({ encrypted_content: sealed({ details: [{ format: 'other', a: 1 }] }) })],
      { reasoning_details: [{ format: 'other', a: 1 }] },
    ],
    ['nothing of another line', [reasoning({ id: 'rs_1', content: [{ text: 'a' }] })], {}],
    [
      'nothing that this gateway has not sealed',
      [
        reasoning({ encrypted_content: `x${sealed({ text: 'b' })}` }),
        reasoning({
          encrypted_content: sealed({ text: 'b' }).replace('reasoning_details', 'other_details_____'),
        }),
      ],
      {},
    ],
    ['nothing where it is empty', [reasoning({})], {}],
  ]
  for (const [what, items, made] of THOUGHT)
    it(`is thought of the turn: ${what}`, () => {
      assert.deepEqual(messagesOf(...items, { role: 'assistant', content: 'Hi' }), [
        { role: 'assistant', content: 'Hi', ...made },
      ])
      assert.deepEqual(messagesOf(...items, call), [
        { role: 'assistant', content: null, ...made, tool_calls: [called] },
      ])
      // No message may hold reasoning only.
      assert.deepEqual(messagesOf(...items, { role: 'user', content: 'Hi' }), [
        { role: 'user', content: 'Hi' },
      ])
    })

  it('ends the turn of the assistant where the user or a tool speaks', () => {
    const assistant = { role: 'assistant', content: 'a' }
    const user = { role: 'user', content: 'b' }
    const result = { type: 'function_call_output', call_id: 'c', output: 'r' }
    assert.deepEqual(
      messagesOf(assistant, user, assistant, call, result, call, { type: 'web_search_call' }, assistant),
      [
        assistant,
        user,
        { role: 'assistant', content: 'a', tool_calls: [called] },
        { role: 'tool', tool_call_id: 'c', content: 'r' },
        { role: 'assistant', content: 'a', tool_calls: [called] },
      ],
    )
  })

  it('shows what a result holds beside its text before anything else is said', () => {
    const image = { type: 'input_image', image_url: 'https://a.test' }
    const result = (id: string) => ({ type: 'function_call_output', call_id: id, output: [image] })
    const shown = (id: string) => [
      text(`Part of the result of ${id}:`),
      { type: 'image_url', image_url: { url: 'https://a.test' } },
    ]
    assert.deepEqual(messagesOf(result('a'), result('b'), { role: 'assistant', content: 'c' }, result('d')), [
      { role: 'tool', tool_call_id: 'a', content: '' },
      { role: 'tool', tool_call_id: 'b', content: '' },
      { role: 'user', content: [...shown('a'), ...shown('b')] },
      { role: 'assistant', content: 'c' },
      { role: 'tool', tool_call_id: 'd', content: '' },
      { role: 'user', content: shown('d') },
    ])
  })

  it('is nothing where there is no input', () => {
    for (const input of [undefined, null, 7, []]) assert.deepEqual(chatAsked({ input }).messages, [])
  })
})

describe('the arguments of a call in the input of a response', () => {
  const context = { upstreamModel: 'some-model', defaultMaxTokens: 500 }
  const called = (args?: unknown): JsonObject => ({
    model: 'chat',
    input: [
      { role: 'user', content: 'Rain?' },
      { type: 'function_call', call_id: 'call_a', name: 'weather', arguments: args },
      { type: 'function_call_output', call_id: 'call_a', output: 'Rain' },
    ],
  })
  const inChat = (args?: unknown): unknown[] =>
    objectsIn(responsesAsChat.request(called(args), context).messages)
      .flatMap((message) => objectsIn(message.tool_calls))
      .map(({ function: fn }) => isJsonObject(fn) && fn.arguments)
  const inMessages = (args?: unknown): unknown[] =>
    objectsIn(responsesAsMessages.request(called(args), context).messages)
      .flatMap(({ content }) => objectsIn(content))
      .filter(({ type }) => type === 'tool_use')
      .map(({ input }) => input)

  it('reach the model also where they are given as an object', () => {
    assert.deepEqual(inChat({ city: 'Rome' }), ['{"city":"Rome"}'])
    assert.deepEqual(inMessages({ city: 'Rome' }), [{ city: 'Rome' }])
  })

  it('are empty where there are none', () => {
    for (const none of [undefined, null]) assert.deepEqual(inChat(none), ['{}'])
    for (const none of [undefined, null, '']) assert.deepEqual(inMessages(none), [{}])
  })

  for (const args of [['Rome'], 1, true])
    it(`are refused: ${JSON.stringify(args)}`, () => {
      const named = (error: unknown) =>
        error instanceof Untranslatable && error.param === 'input[1].arguments'
      assert.throws(() => inChat(args), named)
      assert.throws(() => inMessages(args), named)
    })
})
