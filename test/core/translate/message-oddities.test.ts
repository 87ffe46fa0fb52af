import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { JsonObject } from '../../../lib/core/json/index.ts'
import { messages } from '../../../lib/core/operations/index.ts'
import { translationOf } from '../../../lib/core/translate/index.ts'
import { ask, type Body, message, text } from './requests.ts'

const direction = translationOf(messages, { protocol: 'openai' })
/** A request that the endpoint’s own schema may not let through. */
const unchecked = (json: JsonObject) =>
  direction?.request(
    { model: 'm', max_tokens: 10, messages: ask, ...json },
    { upstreamModel: 'm', defaultMaxTokens: 10 },
  )
const shown = (...content: unknown[]) => message.translate({ messages: [{ role: 'user', content }] }).messages
const said = (...content: unknown[]) => {
  const made = message.translate({ messages: [...ask, { role: 'assistant', content }] }).messages
  return (made as unknown[]).slice(1)
}

describe('the content of a message', () => {
  const document = (source: object, more: object = {}) => ({ type: 'document', source, ...more })
  const pdf = { type: 'base64', media_type: 'application/pdf', data: 'QQ==' }

  const SHOWN: [what: string, content: unknown[], made: unknown][] = [
    ['one text', [text('a')], 'a'],
    ['texts', [text('a'), text('b')], [text('a'), text('b')]],
    ['a text that is empty', [text(''), text('a')], 'a'],
    [
      'an image alone',
      [{ type: 'image', source: { type: 'url', url: 'https://a' } }],
      [{ type: 'image_url', image_url: { url: 'https://a' } }],
    ],
    [
      'a PDF without a title',
      [document(pdf)],
      [{ type: 'file', file: { filename: 'document.pdf', file_data: 'data:application/pdf;base64,QQ==' } }],
    ],
    [
      'a text document with a title and a context',
      [document({ type: 'text', data: 'd' }, { title: 't', context: 'c' })],
      [text('t'), text('c'), text('d')],
    ],
    [
      'a document of blocks',
      [document({ type: 'content', content: 'd' }, { title: 't' })],
      [text('t'), text('d')],
    ],
    ['a document without blocks', [document({ type: 'content' }, { title: 't' })], 't'],
    ['a search result without content', [{ type: 'search_result', title: 't', source: 's' }], 't (s)'],
    [
      'a tool that was found, by its name on the line',
      [{ type: 'tool_reference', tool_name: 'a.b' }],
      'Tool: a_b_2e7336dc',
    ],
  ]
  for (const [what, content, made] of SHOWN)
    it(`is shown: ${what}`, () => assert.deepEqual(shown(...content), [{ role: 'user', content: made }]))

  it('is nothing where it says nothing', () => {
    for (const content of ['', [], [text('')]])
      assert.deepEqual(unchecked({ messages: [{ role: 'user', content }, ...ask] })?.messages, ask)
    for (const content of [[], [text('')], ''])
      assert.deepEqual(unchecked({ messages: [...ask, { role: 'assistant', content }] })?.messages, ask)
    for (const system of ['', [], [text('')]]) assert.deepEqual(message.translate({ system }).messages, ask)
    for (const none of [undefined, null, 7]) assert.deepEqual(unchecked({ messages: none })?.messages, [])
  })

  it('holds instructions as one text, and as parts where they are not all text', () => {
    const image = { type: 'image', source: { type: 'url', url: 'https://a' } }
    const system = (content: unknown) => unchecked({ system: content })?.messages
    assert.deepEqual(system([text('a'), text(''), text('b')]), [
      { role: 'system', content: 'a\n\nb' },
      ...ask,
    ])
    assert.deepEqual(system([text('a'), image]), [
      { role: 'system', content: [text('a'), { type: 'image_url', image_url: { url: 'https://a' } }] },
      ...ask,
    ])
  })

  it('is what the assistant said, called and thought, joined', () => {
    const thought = (thinking: string, more = '') => ({
      type: 'thinking',
      thinking,
      signature: `unsigned:openai-style-line${more}`,
    })
    assert.deepEqual(
      said(
        thought('a'),
        thought('b'),
        thought('c', ':reasoning'),
        text('d'),
        { type: 'tool_use', id: 't', name: 'f' },
        text('e'),
      ),
      [
        {
          role: 'assistant',
          content: 'de',
          reasoning_content: 'ab',
          reasoning: 'c',
          tool_calls: [{ id: 't', type: 'function', function: { name: 'f', arguments: '{}' } }],
        },
      ],
    )
    assert.deepEqual(said(thought('a')), [], 'no message holds reasoning only')
    const searched = [
      { type: 'server_tool_use', id: 's', name: 'web_search', input: {} },
      { type: 'web_search_tool_result', tool_use_id: 's', content: [] },
    ]
    assert.deepEqual(said(...searched), [])
    assert.deepEqual(unchecked({ messages: [{ role: 'assistant', content: 'a' }] })?.messages, [
      { role: 'assistant', content: 'a' },
    ])
  })

  const REFUSED: [param: string, messages: unknown[]][] = [
    ['messages[0]', ['x']],
    ['messages[1].role', [...ask, { role: 'tool', content: 'a' }]],
    [
      'messages[0].content[0]',
      [{ role: 'user', content: [null, { type: 'tool_result', tool_use_id: 't' }] }],
    ],
    ['messages[0].content[0].tool_use_id', [{ role: 'user', content: [{ type: 'tool_result' }] }]],
    ['messages[0].content[1]', [{ role: 'assistant', content: [text('a'), null] }]],
    ['messages[0].content[0].id', [{ role: 'assistant', content: [{ type: 'tool_use', name: 'f' }] }]],
    ['messages[0].content[0].name', [{ role: 'assistant', content: [{ type: 'tool_use', id: 't' }] }]],
    [
      'messages[0].content[0]',
      [{ role: 'assistant', content: [{ type: 'server_tool_use', name: 'code_execution' }] }],
    ],
    ['messages[0].content[0].source', [{ role: 'user', content: [{ type: 'image', source: 'x' }] }]],
    [
      'messages[0].content[0].source',
      [{ role: 'user', content: [{ type: 'image', source: { type: 'url' } }] }],
    ],
    [
      'messages[0].content[0].source',
      [{ role: 'user', content: [{ type: 'image', source: { type: 'base64', url: 'x' } }] }],
    ],
  ]
  for (const [param, turns] of REFUSED)
    it(`is refused for ${param}: ${JSON.stringify(turns)}`, () =>
      assert.throws(() => unchecked({ messages: turns }), { name: 'Untranslatable', param }))
})

describe('a member of a message request, told as a chat’s,', () => {
  const json_schema = { type: 'json_schema', schema: { type: 'string' } }
  const response_format = {
    type: 'json_schema',
    json_schema: { name: 'answer', schema: { type: 'string' }, strict: true },
  }
  const thinking = (members: object) => ({ max_tokens: 100, thinking: { type: 'enabled', ...members } })
  const f = (members: object = {}) => ({
    type: 'function',
    function: { name: 'f', parameters: { type: 'object', properties: {} }, ...members },
  })
  const ROWS: [given: Body, made: Body][] = [
    [{ output_config: { format: json_schema }, output_format: null }, { response_format }],
    [{ output_config: {}, output_format: json_schema }, { response_format }],
    [{ output_config: { format: null }, output_format: null }, {}],
    [thinking({ budget_tokens: 34 }), { max_tokens: 100, reasoning_effort: 'low' }],
    [thinking({ budget_tokens: 35 }), { max_tokens: 100, reasoning_effort: 'medium' }],
    [thinking({ budget_tokens: 64 }), { max_tokens: 100, reasoning_effort: 'medium' }],
    [thinking({ budget_tokens: 65 }), { max_tokens: 100, reasoning_effort: 'high' }],
    [thinking({}), { max_tokens: 100 }],
    [{ thinking: { type: 'adaptive', budget_tokens: 5 } }, {}],
    ...['minimal', 'low'].map((effort): [Body, Body] => [
      { output_config: { effort } },
      { reasoning_effort: 'low' },
    ]),
    ...['high', 'xhigh', 'max'].map((effort): [Body, Body] => [
      { output_config: { effort } },
      { reasoning_effort: 'high' },
    ]),
    [{ output_config: { effort: 'mystery' } }, {}],
    [{ container: {}, metadata: {}, temperature: null }, {}],
    [{ stream: false, service_tier: null, metadata: { user_id: '' } }, {}],
    [{ tools: [] }, {}],
    [
      { tools: [{ name: 'f', description: '', strict: true, input_schema: { type: 'object' } }] },
      { tools: [f()] },
    ],
    [{ tools: [{ type: null, name: 'f', input_schema: null }], tool_choice: null }, { tools: [f()] }],
    [
      {
        tools: [
          {
            name: 'f',
            strict: false,
            input_schema: { type: 'object', properties: {}, additionalProperties: false },
          },
        ],
        tool_choice: { type: 'auto', disable_parallel_tool_use: false },
      },
      {
        tools: [f({ parameters: { type: 'object', properties: {}, additionalProperties: false } })],
        tool_choice: 'auto',
      },
    ],
    [
      { tools: [{ name: 'f' }], tool_choice: { type: 'tool', name: 'a.b', disable_parallel_tool_use: true } },
      {
        tools: [f()],
        tool_choice: { type: 'function', function: { name: 'a_b_2e7336dc' } },
        parallel_tool_calls: false,
      },
    ],
  ]
  for (const [given, made] of ROWS)
    it(`is ${JSON.stringify(given)}`, () =>
      assert.deepEqual(unchecked(given), { model: 'm', messages: ask, max_tokens: 10, ...made }))

  it('has what OpenAI demands of a schema in each place that holds one, and nowhere else', () => {
    const list = { type: 'array' }
    const places = ['additionalProperties', 'allOf', 'anyOf', 'items', 'oneOf', 'prefixItems']
    const named = ['$defs', 'definitions', 'properties']
    const schemaOf = (one: object) => ({
      ...Object.fromEntries(places.map((place) => [place, place.endsWith('Of') ? [one, true] : one])),
      ...Object.fromEntries(named.map((place) => [place, { items: one }])),
    })
    const input_schema = {
      type: 'object',
      ...schemaOf(list),
      default: list,
      enum: [list],
      const: list,
      definitions: 7,
      required: list,
    }
    const parameters = { ...input_schema, ...schemaOf({ ...list, items: {} }), definitions: 7 }
    assert.deepEqual(unchecked({ tools: [{ name: 'f', input_schema }] })?.tools, [f({ parameters })])
    const nested = { type: 'object', properties: {}, definitions: { a: list }, $defs: 7 }
    assert.deepEqual(unchecked({ tools: [{ name: 'f', input_schema: nested }] })?.tools, [
      f({ parameters: { ...nested, definitions: { a: { ...list, items: {} } } } }),
    ])
  })
})
