import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isJsonObject, type JsonObject, objectsIn } from '../../../../lib/core/json/index.ts'
import { responsesAsChat, responsesAsMessages } from '../../../../lib/core/translate/directions.ts'
import { Untranslatable } from '../../../../lib/core/translate/translation.ts'
import { chatChunk } from '../../../support/scripted-upstream.ts'
import { chatAnswered, chatAsked, clientOn } from '../support/responses.ts'

describe('a request for a response', () => {
  const context = { upstreamModel: 'some-model', defaultMaxTokens: 500 }
  const asChat = (json: JsonObject) => responsesAsChat.request({ model: 'chat', ...json }, context)
  const asMessages = (json: JsonObject) => responsesAsMessages.request({ model: 'chat', ...json }, context)
  const WEATHER = {
    type: 'function',
    name: 'weather',
    parameters: { type: 'object', properties: {} },
    strict: false,
  }
  const message = (role: string, type: string, text: string) => ({
    type: 'message',
    role,
    content: [{ type, text }],
  })

  describe('a response request, as a chat’s', () => {
    it('has instructions first, then the input', () => {
      assert.deepEqual(asChat({ instructions: 'Be brief.', input: 'hi' }).messages, [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'hi' },
      ])
    })

    it('has an effort as far as the model takes one', () => {
      const json = { model: 'chat', input: 'hi', reasoning: { effort: 'high' } }
      const effort = (upstreamModel: string, more: object = {}) =>
        responsesAsChat.request({ ...json, ...more }, { ...context, upstreamModel }).reasoning_effort
      assert.equal(effort('gpt-5.6'), 'high')
      assert.equal(effort('gpt-5.6', { tools: [WEATHER] }), 'none')
      assert.equal(effort('gpt-4.1'), undefined)
    })

    it('has one message for what was thought, said and called in a turn, and one for each result', () => {
      const input = [
        {
          role: 'user',
          content: [
            { type: 'input_text', text: 'Look' },
            { type: 'input_image', image_url: 'https://a.test/b.png', detail: 'low' },
          ],
        },
        { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'Of another line' }] },
        { type: 'reasoning', id: 'rs_resp_1', content: [{ type: 'reasoning_text', text: 'Hm.' }] },
        message('assistant', 'output_text', 'Looking.'),
        { type: 'function_call', call_id: 'call_a', name: 'weather', arguments: '{"city":"Rome"}' },
        { type: 'function_call', call_id: 'call_b', name: 'weather', arguments: '{}' },
        { type: 'function_call_output', call_id: 'call_a', output: 'Rain' },
        { type: 'function_call_output', call_id: 'call_b', output: [{ type: 'input_text', text: 'Sun' }] },
      ]
      const called = (id: string, args: string) => ({
        id,
        type: 'function',
        function: { name: 'weather', arguments: args },
      })
      assert.deepEqual(asChat({ input }).messages, [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'Look' },
            { type: 'image_url', image_url: { url: 'https://a.test/b.png', detail: 'low' } },
          ],
        },
        {
          role: 'assistant',
          content: 'Looking.',
          reasoning_content: 'Hm.',
          tool_calls: [called('call_a', '{"city":"Rome"}'), called('call_b', '{}')],
        },
        { role: 'tool', tool_call_id: 'call_a', content: 'Rain' },
        { role: 'tool', tool_call_id: 'call_b', content: 'Sun' },
      ])
    })

    it('has texts as texts, and instructions of a role that every line knows', () => {
      const two = [
        { type: 'output_text', text: 'A' },
        { type: 'output_text', text: 'B' },
      ]
      const input = [
        message('developer', 'input_text', 'Be brief.'),
        message('user', 'input_text', 'hi'),
        { type: 'message', role: 'assistant', content: two },
      ]
      assert.deepEqual(asChat({ input }).messages, [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'hi' },
        { role: 'assistant', content: 'AB' },
      ])
    })

    it('shows the images of results behind the last of them', () => {
      const image = { type: 'input_image', image_url: 'https://a.test/b.png' }
      const input = [
        { type: 'function_call', call_id: 'call_a', name: 'weather', arguments: '{}' },
        { type: 'function_call', call_id: 'call_b', name: 'weather', arguments: '{}' },
        {
          type: 'function_call_output',
          call_id: 'call_a',
          output: [{ type: 'input_text', text: 'A' }, image],
        },
        { type: 'function_call_output', call_id: 'call_b', output: 'B' },
      ]
      const shown = {
        role: 'user',
        content: [
          { type: 'text', text: 'Part of the result of call_a:' },
          { type: 'image_url', image_url: { url: image.image_url } },
        ],
      }
      const results = [
        { role: 'tool', tool_call_id: 'call_a', content: 'A' },
        { role: 'tool', tool_call_id: 'call_b', content: 'B' },
      ]
      const more = { role: 'user', content: 'And?' }
      assert.deepEqual(objectsIn(asChat({ input }).messages).slice(1), [...results, shown])
      assert.deepEqual(objectsIn(asChat({ input: [...input, more] }).messages).slice(1), [
        ...results,
        shown,
        more,
      ])
    })

    for (const member of ['reasoning_content', 'reasoning']) {
      it(`returns its ${member} to a line in the member that it came in`, () => {
        const answered = { choices: [{ message: { content: 'Hi', [member]: 'Hm.' }, finish_reason: 'stop' }] }
        const { body } = responsesAsChat.answer(
          answered,
          {},
          { request: {}, created: 5, estimatedInputTokens: 9 },
        )
        const { messages } = asChat({ input: objectsIn(body.output) })
        assert.deepEqual(messages, [{ role: 'assistant', content: 'Hi', [member]: 'Hm.' }])
      })
    }

    for (const member of ['reasoning_content', 'reasoning']) {
      it(`gives a line its ${member} back from a stream, too`, async () => {
        const events = [
          chatChunk({ [member]: 'H' }),
          chatChunk({ [member]: 'm.' }),
          chatChunk({ content: 'Hi' }),
        ]
        const response = await clientOn('openai', responsesAsChat, [...events, chatChunk({}, 'stop')])
          .responses.stream({ model: 'chat', input: 'hi' })
          .finalResponse()
        const { messages } = asChat({ input: response.output })
        assert.deepEqual(messages, [{ role: 'assistant', content: 'Hi', [member]: 'Hm.' }])
      })
    }

    it('leaves the thinking of an Anthropic-style line out', () => {
      const content = [
        { type: 'thinking', thinking: 'Hm.', signature: 'c2ln' },
        { type: 'text', text: 'Hi' },
      ]
      const answered = { id: 'msg_1', model: 'm', content, stop_reason: 'end_turn' }
      const { body } = responsesAsMessages.answer(
        answered,
        {},
        { request: {}, created: 5, estimatedInputTokens: 9 },
      )
      assert.deepEqual(asChat({ input: objectsIn(body.output) }).messages, [
        { role: 'assistant', content: 'Hi' },
      ])
    })

    it('has tools, their choice, the format, the effort and the limits', () => {
      const format = { type: 'json_schema', name: 'place', schema: { type: 'object' }, strict: true }
      const { messages: _, ...members } = asChat({
        input: 'hi',
        tools: [WEATHER],
        tool_choice: { type: 'function', name: 'weather' },
        parallel_tool_calls: false,
        text: { format, verbosity: 'low' },
        reasoning: { effort: 'low', summary: 'auto' },
        max_output_tokens: 50,
        temperature: 0.5,
        safety_identifier: 'u1',
        stream: true,
      })
      const { type, name, ...rest } = WEATHER
      assert.deepEqual(members, {
        model: 'chat',
        max_tokens: 50,
        tools: [{ type, function: { name, ...rest } }],
        tool_choice: { type: 'function', function: { name: 'weather' } },
        parallel_tool_calls: false,
        response_format: {
          type: 'json_schema',
          json_schema: { name: 'place', schema: { type: 'object' }, strict: true },
        },
        reasoning_effort: 'low',
        temperature: 0.5,
        user: 'u1',
        stream: true,
      })
    })

    const REFUSED: [string, JsonObject][] = [
      ['previous_response_id', { previous_response_id: 'resp_1' }],
      ['store', { store: true }],
      ['background', { background: true }],
      ['conversation', { conversation: 'conv_1' }],
      ['prompt', { prompt: { id: 'p' } }],
      ['include', { include: ['message.output_text.logprobs'] }],
      ['tools[0]', { tools: [{ type: 'file_search' }] }],
      ['tool_choice', { tools: [WEATHER], tool_choice: { type: 'web_search' } }],
      ['input[0]', { input: [{ type: 'item_reference', id: 'msg_1' }] }],
      [
        'input[0].content[0]',
        { input: [{ role: 'user', content: [{ type: 'input_image', file_id: 'f' }] }] },
      ],
      ['something_new', { something_new: 1 }],
    ]
    for (const [param, json] of REFUSED) {
      it(`cannot be made of ${param}`, () => {
        assert.throws(
          () => asChat({ input: 'hi', ...json }),
          (error) => error instanceof Untranslatable && error.param === param,
        )
      })
    }
  })

  describe('a response request, as a message’s', () => {
    it('names what has no counterpart by the caller’s word', () => {
      assert.throws(
        () => asMessages({ input: 'hi', text: { format: { type: 'grammar' } } }),
        (error) => error instanceof Untranslatable && error.param === 'text.format',
      )
    })

    it('gives the thinking of an earlier answer back unchanged', () => {
      const content = [
        { type: 'thinking', thinking: 'Hm. ', signature: 'c2ln' },
        { type: 'redacted_thinking', data: 'c2VjcmV0' },
        { type: 'tool_use', id: 'call_a', name: 'weather', input: { city: 'Rome' } },
      ]
      const answered = { id: 'msg_1', model: 'm', content, stop_reason: 'tool_use' }
      const { body } = responsesAsMessages.answer(
        answered,
        {},
        { request: {}, created: 5, estimatedInputTokens: 9 },
      )
      const result = { type: 'function_call_output', call_id: 'call_a', output: 'Rain' }
      const request = asMessages({
        input: [{ role: 'user', content: 'hi' }, ...objectsIn(body.output), result],
        max_output_tokens: 5000,
        reasoning: { effort: 'low' },
        tools: [WEATHER],
      })
      const [, turn] = objectsIn(request.messages)
      assert.deepEqual(turn?.content, content)
      assert.ok(isJsonObject(request.thinking))
    })
  })
})

const PLAIN = { model: 'm', messages: [{ role: 'user', content: 'hi' }] }
const F = { type: 'function', name: 'f' }
const fn = (members: object) => ({ type: 'function', function: { name: 'f', ...members } })
const SEARCH = { type: 'web_search' }
const closed = { type: 'object', properties: {}, additionalProperties: false }

describe('a member of a request for a response, in a chat,', () => {
  const MADE: [given: JsonObject, made: JsonObject][] = [
    [{}, {}],
    [{ max_output_tokens: 7 }, { max_tokens: 7 }],
    [{ max_output_tokens: null, temperature: null, top_p: null }, {}],
    [
      { temperature: 0, top_p: 0.5 },
      { temperature: 0, top_p: 0.5 },
    ],
    [{ user: 'u', safety_identifier: 's' }, { user: 'u' }],
    [{ user: '', safety_identifier: 's' }, { user: 's' }],
    [{ service_tier: 'flex' }, { service_tier: 'flex' }],
    [{ stream: true }, { stream: true }],
    [{ stream: false, store: null, instructions: null, service_tier: null }, {}],
    [{ text: { format: { type: 'text' } } }, {}],
    [{ text: { format: { type: 'json_object' } } }, { response_format: { type: 'json_object' } }],
    [{ text: {} }, {}],
    [{ reasoning: { effort: 'low' } }, { reasoning_effort: 'low' }],
    [{ reasoning: { effort: null } }, {}],
    [{ tools: [F] }, { tools: [fn({})] }],
    [
      { tools: [{ ...F, description: 'd', parameters: closed }] },
      { tools: [fn({ description: 'd', parameters: closed, strict: true })] },
    ],
    [
      { tools: [{ ...F, description: null, parameters: closed, strict: false }] },
      { tools: [fn({ parameters: closed, strict: false })] },
    ],
    [
      { tools: [{ ...F, parameters: { type: 'object', properties: {} }, strict: null }] },
      { tools: [fn({ parameters: { type: 'object', properties: {} } })] },
    ],
    [
      { tools: [{ ...F, parameters: { type: 'string' } }] },
      { tools: [fn({ parameters: { type: 'string' } })] },
    ],
    [{ tools: [{ ...F, parameters: null, strict: true }] }, { tools: [fn({ strict: true })] }],
    [
      { tools: [F], tool_choice: 'required', parallel_tool_calls: true },
      { tools: [fn({})], tool_choice: 'required', parallel_tool_calls: true },
    ],
    [{ tools: [F], tool_choice: null, parallel_tool_calls: null }, { tools: [fn({})] }],
    [{ tools: [], tool_choice: 'required', parallel_tool_calls: true }, {}],
    [{ tool_choice: { type: 'mystery' }, parallel_tool_calls: true }, {}],
    [
      { tools: [F], tool_choice: F },
      { tools: [fn({})], tool_choice: fn({}) },
    ],
    [{ tools: [SEARCH, { type: 'web_search_preview' }], tool_choice: 'auto' }, { web_search_options: {} }],
    [
      { tools: [F, SEARCH], tool_choice: 'auto' },
      { tools: [fn({})], web_search_options: {}, tool_choice: 'auto' },
    ],
    [
      { tools: [F, SEARCH], tool_choice: { type: 'web_search_preview' } },
      { tools: [fn({})], web_search_options: {} },
    ],
    [
      { tools: [F, SEARCH], tool_choice: F },
      { tools: [fn({})], web_search_options: {}, tool_choice: fn({}) },
    ],
    [
      {
        tools: [F, SEARCH],
        tool_choice: { type: 'allowed_tools', mode: 'auto', tools: [F, SEARCH, { ...F, namespace: 'n' }] },
      },
      {
        tools: [fn({})],
        web_search_options: {},
        tool_choice: {
          type: 'allowed_tools',
          allowed_tools: { mode: 'auto', tools: [fn({}), { type: 'function', function: { name: 'n__f' } }] },
        },
      },
    ],
    [
      {
        tools: [F, { type: 'namespace', name: 'n', tools: [F, 'x', SEARCH] }],
        tool_choice: { ...F, namespace: 'n' },
      },
      { tools: [fn({}), fn({ name: 'n__f' })], tool_choice: fn({ name: 'n__f' }) },
    ],
  ]
  for (const [given, made] of MADE)
    it(`is translated: ${JSON.stringify(given)}`, () =>
      assert.deepEqual(chatAsked(given), { ...PLAIN, ...made }))

  it('names no namespace that holds no list, and keeps what is no namespace', () => {
    assert.throws(() => chatAsked({ tools: [{ type: 'namespace', name: 'n' }] }), /tools\[0\]/)
    const { body } = chatAnswered(
      { choices: [{ message: { tool_calls: [{ id: 'a', function: { name: 'n__f' } }] } }] },
      {
        tools: [
          { type: 'mcp', name: 'n', tools: [F] },
          { type: 'mcp', name: 'n__f' },
        ],
      },
    )
    const [{ id: _, ...item } = {}] = objectsIn(body.output)
    assert.deepEqual(item, {
      type: 'function_call',
      status: 'completed',
      call_id: 'a',
      name: 'n__f',
      arguments: '{}',
    })
  })
})

describe('a namespace of functions', () => {
  const spawn = { type: 'function', name: 'spawn', parameters: { type: 'object' }, strict: false }
  const tools = [
    { ...spawn, name: 'run' },
    { type: 'namespace', name: 'agents', description: 'Others.', tools: [spawn] },
  ]
  const context = { upstreamModel: 'm', defaultMaxTokens: 100 }
  const asChat = (body: JsonObject) => responsesAsChat.request({ model: 'm', input: 'hi', ...body }, context)
  const called = (name: string) => [
    { index: 0, id: 'call_1', type: 'function', function: { name, arguments: '{}' } },
  ]
  const answered = { request: { tools }, created: 5, estimatedInputTokens: 0 }

  it('becomes functions whose names hold its own', () => {
    const names = objectsIn(asChat({ tools }).tools).map(({ function: fn }) => isJsonObject(fn) && fn.name)
    assert.deepEqual(names, ['run', 'agents__spawn'])
  })

  it('is refused where its name, which stands before each of them, is too long', () => {
    const long = (length: number) => [spawn, { type: 'namespace', name: 'n'.repeat(length), tools: [spawn] }]
    assert.equal(objectsIn(asChat({ tools: long(256) }).tools).length, 2)
    assert.throws(
      () => asChat({ tools: long(257) }),
      (error) => error instanceof Untranslatable && error.param === 'tools[1].name',
    )
  })

  it('is returned with a call, and found again in the next turn', () => {
    const message = { role: 'assistant', content: null, tool_calls: called('agents__spawn') }
    const { body } = responsesAsChat.answer(
      { id: 'c', choices: [{ message, finish_reason: 'tool_calls' }] },
      {},
      answered,
    )
    const [call = {}] = objectsIn(body.output)
    assert.deepEqual([call.name, call.namespace], ['spawn', 'agents'])
    const [, said] = objectsIn(asChat({ tools, input: [{ role: 'user', content: 'hi' }, call] }).messages)
    const [again] = objectsIn(said?.tool_calls)
    assert.ok(isJsonObject(again?.function))
    assert.equal(again.function.name, 'agents__spawn')
  })

  it('is returned with a streamed call, and with none of another function', async () => {
    for (const [name, expected] of [
      ['agents__spawn', ['spawn', 'agents']],
      ['run', ['run', undefined]],
    ] as const) {
      const chunk = (delta: object, finish_reason: string | null = null) =>
        `data: ${JSON.stringify({ id: 'c', choices: [{ index: 0, delta, finish_reason }] })}\n\n`
      const events = [chunk({ tool_calls: called(name) }), chunk({}, 'tool_calls'), 'data: [DONE]\n\n']
      const client = clientOn('openai', responsesAsChat, events, { tools })
      const { output } = await client.responses.stream({ model: 'm', input: 'hi' }).finalResponse()
      const [call] = output
      assert.ok(call?.type === 'function_call')
      assert.deepEqual([call.name, (call as { namespace?: string }).namespace], expected)
    }
  })
})
