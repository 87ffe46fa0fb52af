import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type JsonObject, objectsIn } from '../../../../lib/core/json/index.ts'
import { responses } from '../../../../lib/core/operations/index.ts'
import { responsesAsChat, responsesAsMessages } from '../../../../lib/core/translate/directions.ts'
import { derivedId, sealedToolId } from '../../../../lib/core/translate/tool-ids.ts'
import { chatAnswered, chatAsked } from '../support/responses.ts'
import { chunk, eventsOf, piece, translator } from '../support/streams.ts'

const WEATHER = {
  type: 'function',
  name: 'weather',
  parameters: { type: 'object', properties: {} },
  strict: false,
}

describe('a chat’s answer, as a response', () => {
  it('holds what was thought, said, refused and called, and the usage', () => {
    const { body, skipped } = responsesAsChat.answer(
      {
        id: 'chatcmpl-1',
        model: 'm',
        choices: [
          {
            index: 0,
            finish_reason: 'tool_calls',
            message: {
              content: 'Hello',
              reasoning_content: 'Hm.',
              tool_calls: [{ id: 'call_a', type: 'function', function: { name: 'weather', arguments: '' } }],
            },
          },
        ],
        usage: { completion_tokens_details: { reasoning_tokens: 2 } },
      },
      { inputTokens: 30, cachedInputTokens: 20, outputTokens: 9 },
      { request: { tools: [WEATHER] }, created: 5, estimatedInputTokens: 9 },
    )
    assert.equal(skipped, 0)
    const id = 'resp_chatcmpl-1'
    assert.deepEqual(body.output, [
      {
        id: `rs_${id}`,
        type: 'reasoning',
        summary: [],
        content: [{ type: 'reasoning_text', text: 'Hm.' }],
        status: 'completed',
      },
      {
        id: `msg_${id}`,
        type: 'message',
        status: 'completed',
        role: 'assistant',
        content: [{ type: 'output_text', text: 'Hello', annotations: [], logprobs: [] }],
      },
      {
        id: `fc_${id}_0`,
        type: 'function_call',
        status: 'completed',
        call_id: 'call_a',
        name: 'weather',
        arguments: '{}',
      },
    ])
    assert.deepEqual(body.usage, {
      input_tokens: 30,
      input_tokens_details: { cached_tokens: 20 },
      output_tokens: 9,
      output_tokens_details: { reasoning_tokens: 2 },
      total_tokens: 39,
    })
    assert.deepEqual([body.id, body.status, body.created_at, body.tools], [id, 'completed', 5, [WEATHER]])
  })
})

const REPEATED = {
  instructions: 'Be brief.',
  max_output_tokens: 7,
  max_tool_calls: 3,
  metadata: { a: 'b' },
  parallel_tool_calls: false,
  reasoning: { effort: 'low' },
  temperature: 0.5,
  text: { format: { type: 'json_object' } },
  tool_choice: 'none',
  tools: [{ type: 'function', name: 'f' }],
  top_p: 0.5,
  truncation: 'auto',
  user: 'u',
}

describe('a response that is made of a chat’s answer', () => {
  const SHELL = {
    id: 'resp_c',
    object: 'response',
    created_at: 5,
    status: 'completed',
    background: false,
    error: null,
    incomplete_details: null,
    model: 'm',
    output: [],
    previous_response_id: null,
    store: false,
    top_logprobs: 0,
    usage: { input_tokens: 0, output_tokens: 0, total_tokens: 0 },
  }
  const DEFAULTS = {
    instructions: null,
    max_output_tokens: null,
    max_tool_calls: null,
    metadata: {},
    parallel_tool_calls: true,
    reasoning: { effort: null, summary: null },
    temperature: 1,
    text: { format: { type: 'text' } },
    tool_choice: 'auto',
    tools: [],
    top_p: 1,
    truncation: 'disabled',
    user: null,
  }

  it('repeats what was asked for, and has the defaults of the rest', () => {
    const answer = { id: 'c', model: 'm' }
    assert.deepEqual(chatAnswered(answer).body, { ...SHELL, ...DEFAULTS })
    assert.deepEqual(chatAnswered(answer, { ...REPEATED, input: 'hi', other: 1 }).body, {
      ...SHELL,
      ...REPEATED,
    })
    const nulls = Object.fromEntries(Object.keys(REPEATED).map((member) => [member, null]))
    assert.deepEqual(chatAnswered(answer, nulls).body, { ...SHELL, ...DEFAULTS })
  })

  it('has an id and a model where the line gave none', () => {
    for (const odd of [undefined, '', 7]) {
      const { body } = chatAnswered({ id: odd, model: odd === '' ? {} : odd }, { model: 'asked' })
      assert.deepEqual([body.id, body.model], ['resp_5', 'asked'])
    }
  })

  it('has the usage, each part of it', () => {
    const usage = { inputTokens: 30, outputTokens: 9, cachedInputTokens: 20, cacheWriteTokens: 4 }
    const answer = { usage: { completion_tokens_details: { reasoning_tokens: 2 } } }
    assert.deepEqual(chatAnswered(answer, {}, usage).body.usage, {
      input_tokens: 30,
      input_tokens_details: { cached_tokens: 20, cache_write_tokens: 4 },
      output_tokens: 9,
      output_tokens_details: { reasoning_tokens: 2 },
      total_tokens: 39,
    })
  })

  const message = (members: object) => ({ id: 'c', choices: [{ message: members, finish_reason: 'stop' }] })
  const item = (content: object[]) => ({
    id: 'msg_resp_c',
    type: 'message',
    status: 'completed',
    role: 'assistant',
    content,
  })

  it('says, cites and declines', () => {
    const cited = { url: 'https://a.test', title: 'A', start_index: 0, end_index: 1 }
    const annotations = [
      { type: 'url_citation', url_citation: cited },
      { type: 'x' },
      { url_citation: 7 },
      'x',
    ]
    const text = {
      type: 'output_text',
      text: 'a',
      annotations: [{ type: 'url_citation', ...cited }],
      logprobs: [],
    }
    const refusal = { type: 'refusal', refusal: 'No.' }
    assert.deepEqual(chatAnswered(message({ content: 'a', refusal: 'No.', annotations })).body.output, [
      item([text, refusal]),
    ])
    assert.deepEqual(chatAnswered(message({ content: '', refusal: 'No.' })).body.output, [item([refusal])])
    assert.deepEqual(chatAnswered(message({ content: null, refusal: '' })).body.output, [])
  })

  it('calls with an id, arguments as a text, and what the line wants back', () => {
    const extra = { google: { thought_signature: 's' } }
    const tool_calls = [
      { function: { name: 'f', arguments: { a: 1 } } },
      { id: 'call_1', function: { name: 'f', arguments: null }, extra_content: extra },
      { id: 'x', function: { name: 7 } },
      { id: 'y' },
      { id: 'call_2', function: { name: 'f', arguments: '{}' } },
    ]
    const call = (i: number, call_id: string, args: string) => ({
      id: `fc_resp_c_${i}`,
      type: 'function_call',
      status: 'completed',
      call_id,
      name: 'f',
      arguments: args,
    })
    const { body, skipped } = chatAnswered(message({ tool_calls }))
    assert.equal(skipped, 2, 'those without a name')
    assert.deepEqual(body.output, [
      call(0, derivedId('resp_c:0'), '{"a":1}'),
      call(1, sealedToolId('call_1', extra), '{}'),
      call(4, 'call_2', '{}'),
    ])
  })

  it('counts what it has no item for', () => {
    const choices = [{ message: { content: 'a', images: [{}], audio: {} } }, {}, {}]
    assert.equal(chatAnswered({ choices }).skipped, 4)
    const blocks = [{ type: 'mystery' }, { type: 'text', text: 'a' }]
    const made = responsesAsMessages.answer(
      { content: blocks },
      {},
      { request: {}, created: 5, estimatedInputTokens: 0 },
    )
    assert.equal(made.skipped, 1)
  })
})

/** The whole response that a stream of these deltas ends with, and how many parts were left out. */
function streamed(deltas: readonly object[], request: JsonObject = {}) {
  const stream = translator(responses, request)
  const text = deltas.map((delta) => stream.push(chunk(delta))).join('') + stream.end({})
  const events = eventsOf(text)
  return { events, output: objectsIn(events.at(-1).response.output), skipped: stream.skipped }
}

describe('a streamed response', () => {
  it('that only calls begins each call once', () => {
    const { events, output } = streamed([
      piece({ index: 0, id: 'a', function: { name: 'f', arguments: '{"a"' } }),
      piece({ index: 0, function: { arguments: ':1}' } }),
      piece({ index: 1, id: 'b', function: { name: 'g', arguments: '{}' } }),
    ])
    const begun = events.filter(({ type }) => type === 'response.output_item.added')
    assert.deepEqual(
      begun.map(({ output_index: index }) => index),
      [0, 1],
    )
    assert.deepEqual(
      output.map((item) => item.arguments),
      ['{"a":1}', '{}'],
    )
  })

  it('has what is cited in its order, and counts what is cited for no text', () => {
    const cited = (url: string) => ({ annotations: [{ type: 'url_citation', url_citation: { url } }] })
    const { output, skipped } = streamed([
      cited('https://a.test/early'),
      { reasoning: 'x' },
      cited('https://a.test/thought'),
      { content: 'y' },
      cited('https://a.test/1'),
      cited('https://a.test/2'),
    ])
    const [content] = objectsIn(output.at(-1)?.content)
    assert.deepEqual(
      objectsIn(content?.annotations).map(({ url }) => url),
      ['https://a.test/1', 'https://a.test/2'],
    )
    assert.equal(skipped, 2)
  })

  it('keeps details of reasoning that come before it, or without it', () => {
    const detail = { format: 'other', id: 'd' }
    const { events, output, skipped } = streamed([{ reasoning_details: [detail] }, { content: 'a' }])
    assert.equal(events[2].type, 'response.output_item.added')
    const text = Buffer.from(String(output[0]?.encrypted_content).split(':')[1] ?? '', 'base64').toString()
    assert.deepEqual([JSON.parse(text).details, output[0]?.content, skipped], [[detail], [], 0])
  })

  const FORMS: [request: JsonObject, type: string, isSealed: boolean][] = [
    [{}, 'reasoning_text', false],
    [{ reasoning: { effort: 'low', summary: null } }, 'reasoning_text', false],
    [{ reasoning: { summary: 'auto' } }, 'summary_text', false],
    [{ reasoning: { generate_summary: 'concise' } }, 'summary_text', false],
    [{ reasoning: 'x', include: ['file_search_call.results'] }, 'reasoning_text', false],
    [{ include: 'reasoning.encrypted_content' }, 'reasoning_text', false],
    [{ include: ['reasoning.encrypted_content'] }, 'reasoning_text', true],
  ]
  for (const [request, type, isSealed] of FORMS)
    it(`has reasoning in the form that was asked for: ${JSON.stringify(request)}`, () => {
      const answered = chatAnswered({ choices: [{ message: { reasoning_content: 'Hm' } }] }, request)
      for (const [item] of [
        streamed([{ reasoning_content: 'Hm' }], request).output,
        objectsIn(answered.body.output),
      ].map((items) => [items[0]])) {
        const parts = type === 'summary_text' ? item?.summary : item?.content
        assert.deepEqual(parts, [{ type, text: 'Hm' }])
        assert.equal('encrypted_content' in (item ?? {}), isSealed)
      }
    })
})

describe('a request for a response, of which a part cannot be said in a chat,', () => {
  const REFUSED: [param: string, json: JsonObject][] = [
    [
      'tools[1].tools[1]',
      {
        tools: [
          { type: 'function', name: 'f' },
          {
            type: 'namespace',
            name: 'n',
            tools: [
              { type: 'function', name: 'g' },
              { type: 'shell', name: 'h' },
            ],
          },
        ],
      },
    ],
    [
      'input[0].output[0]',
      {
        input: [
          { type: 'function_call_output', call_id: 'c', output: [{ type: 'input_file', file_id: 'f' }] },
        ],
      },
    ],
    ['input[0].content', { input: [{ role: 'user', content: 7 }] }],
    [
      'input[0].content[0]',
      { input: [{ role: 'user', content: [{ type: 'input_file', file_url: 'https://a' }] }] },
    ],
    ['input[0].content[0]', { input: [{ role: 'user', content: [{ type: 'input_image' }] }] }],
    ['input[0]', { input: [null] }],
  ]
  for (const [param, json] of REFUSED)
    it(`is refused for ${param}`, () =>
      assert.throws(() => chatAsked(json), { name: 'Untranslatable', param }))

  it('says in a message what that is', () => {
    assert.throws(() => chatAsked({ conversation: 'c' }), { message: 'conversation has no counterpart' })
    assert.throws(() => chatAsked({ input: [{ type: 'x' }] }), {
      message: 'the item "x" (input[0]) has no counterpart',
    })
  })

  it('leaves no trace of it, where it may be left out', () => {
    const context = { upstreamModel: 'm', defaultMaxTokens: 10, leaveOut: () => {} }
    const tools = [{ type: 'file_search' }, { type: 'function', name: 'f' }]
    const { tools: made } = responsesAsChat.request({ model: 'm', input: 'hi', tools }, context)
    assert.deepEqual(made, [{ type: 'function', function: { name: 'f' } }])
  })

  it('has its limit in the member that the model takes', () => {
    for (const [upstreamModel, member] of [
      ['o3', 'max_completion_tokens'],
      ['gpt-4o', 'max_tokens'],
    ] as const) {
      const context = { upstreamModel, defaultMaxTokens: 10 }
      const made = responsesAsChat.request(
        { model: 'm', input: 'hi', max_output_tokens: 7, temperature: 1 },
        context,
      )
      assert.deepEqual([made[member], made.temperature], [7, upstreamModel === 'o3' ? undefined : 1])
    }
  })
})

describe('web searches of an anthropic line', () => {
  const use = (id: string, input: unknown) => ({ type: 'server_tool_use', id, name: 'web_search', input })
  const result = (id: string, content: unknown) => ({
    type: 'web_search_tool_result',
    tool_use_id: id,
    content,
  })
  const include = { include: ['web_search_call.action.sources'] }
  const context = { request: include, created: 5, estimatedInputTokens: 0 }
  const actions = (output: unknown) => objectsIn(output).map(({ status, action }) => [status, action])
  const action = (query: string | undefined, ...urls: string[]) => ({
    type: 'search',
    ...(query !== undefined && { query, queries: [query] }),
    sources: urls.map((url) => ({ type: 'url', url })),
  })

  it('contain what was asked and found, as far as that is known', () => {
    const content = [
      use('1', { query: 'a' }),
      use('2', { query: '' }),
      { ...use('3', { query: 'c' }), name: 'code_execution' },
      result('2', { type: 'error' }),
      result('1', [{ url: 'https://a' }, { url: '' }, { url: 7 }, 'x', { url: 'https://b' }]),
      result('3', []),
      result('4', []),
    ]
    const { body, skipped } = responsesAsMessages.answer({ id: 'm', content }, {}, context)
    assert.deepEqual(actions(body.output), [
      ['failed', action(undefined)],
      ['completed', action('a', 'https://a', 'https://b')],
      ['completed', action(undefined)],
      // It is the last item of the answer.
      ['completed', action(undefined)],
    ])
    assert.equal(skipped, 1)
  })

  const start = (index: number, content_block: object) => ({
    type: 'content_block_start',
    index,
    content_block,
  })
  const delta = (index: number, partial_json: unknown) => ({
    type: 'content_block_delta',
    index,
    delta: { type: 'input_json_delta', partial_json },
  })
  const stop = (index: number) => ({ type: 'content_block_stop', index })
  const told = (...events: object[]) => {
    const stream = responsesAsMessages.stream(context)
    const text = events.map((event) => stream.push(event)).join('') + stream.end({})
    return { output: objectsIn(eventsOf(text).at(-1).response.output), skipped: stream.skipped }
  }

  it('appear in a stream once their input has come, or begun with them', () => {
    const { output, skipped } = told(
      start(0, use('1', {})),
      delta(0, '{"query":'),
      delta(0, 7),
      delta(0, '"a"}'),
      stop(0),
      start(1, result('1', [{ url: 'https://a' }])),
      stop(1),
      start(2, use('2', { query: 'b' })),
      stop(2),
      start(3, result('2', 'x')),
      stop(3),
    )
    assert.deepEqual(actions(output), [
      ['completed', action('a', 'https://a')],
      ['failed', action('b')],
    ])
    assert.equal(skipped, 0)
  })

  it('do not contain what was asked, where that is more than 16 KiB', () => {
    const query = (length: number) => 'q'.repeat(length - '{"query":""'.length)
    for (const [length, isKnown] of [
      [16 * 1024 - 1, true],
      [16 * 1024, false],
    ] as const) {
      const asked = query(length)
      const { output } = told(
        start(0, use('1', {})),
        delta(0, `{"query":"${asked}"`),
        delta(0, '}'),
        stop(0),
        start(1, result('1', [])),
      )
      assert.deepEqual(actions(output), [['completed', action(isKnown ? asked : undefined)]])
    }
  })
})
