import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { JsonObject } from '../../../../lib/core/json/index.ts'
import { messages } from '../../../../lib/core/operations/index.ts'
import { dataUrl, readDataUrl } from '../../../../lib/core/translate/chat-content.ts'
import { translationOf } from '../../../../lib/core/translate/index.ts'
import { ask, type Body, message, PNG, text } from '../support/requests.ts'

const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'aGk=' } }
const use = { type: 'tool_use', id: 'toolu_1', name: 'f', input: { a: 1 } }
const call = { id: 'toolu_1', type: 'function', function: { name: 'f', arguments: '{"a":1}' } }

/** The messages of the chat that a conversation becomes. */
const chatOf = (messages: Body[], more: Body = {}) => message.translate({ messages, ...more }).messages

describe('the turns of a message request', () => {
  it('follow the system prompt', () => {
    assert.deepEqual(chatOf(ask, { system: 'Be brief.' }), [{ role: 'system', content: 'Be brief.' }, ...ask])
    const blocks = [{ ...text('one'), cache_control: { type: 'ephemeral' } }, text('two')]
    assert.deepEqual(chatOf(ask, { system: blocks }), [{ role: 'system', content: 'one\n\ntwo' }, ...ask])
  })

  it('may hold instructions in between', () => {
    assert.deepEqual(chatOf([...ask, { role: 'system', content: 'Be brief.' }]), [
      ...ask,
      { role: 'system', content: 'Be brief.' },
    ])
  })

  it('keep what a user shows', () => {
    const data = Buffer.from('%PDF').toString('base64')
    const content = [
      text('look'),
      { ...image, cache_control: { type: 'ephemeral' } },
      { type: 'image', source: { type: 'url', url: 'https://example.com/a.jpg' } },
      {
        type: 'document',
        source: { type: 'base64', media_type: 'application/pdf', data },
        title: 'a.pdf',
        context: 'new',
      },
      { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'notes' }, title: 'Notes' },
      { type: 'document', source: { type: 'content', content: [text('part'), image] } },
      { type: 'search_result', source: 'https://example.com', title: 'Example', content: [text('found')] },
      { type: 'tool_reference', tool_name: 'weather' },
    ]
    assert.deepEqual(chatOf([{ role: 'user', content }]), [
      {
        role: 'user',
        content: [
          text('look'),
          { type: 'image_url', image_url: { url: PNG } },
          { type: 'image_url', image_url: { url: 'https://example.com/a.jpg' } },
          text('new'),
          { type: 'file', file: { filename: 'a.pdf', file_data: `data:application/pdf;base64,${data}` } },
          text('Notes'),
          text('notes'),
          text('part'),
          { type: 'image_url', image_url: { url: PNG } },
          text('Example (https://example.com)'),
          text('found'),
          text('Tool: weather'),
        ],
      },
    ])
  })

  it('keep what an assistant said and called', () => {
    const said = {
      role: 'assistant',
      content: [text('Let me '), text('see'), use, { ...use, id: 'toolu_2', input: {} }],
    }
    assert.deepEqual(chatOf([...ask, said]), [
      ...ask,
      {
        role: 'assistant',
        content: 'Let me see',
        tool_calls: [call, { ...call, id: 'toolu_2', function: { name: 'f', arguments: '{}' } }],
      },
    ])
    assert.deepEqual(chatOf([...ask, { role: 'assistant', content: [use] }]), [
      ...ask,
      { role: 'assistant', content: null, tool_calls: [call] },
    ])
  })

  it('give each result a message of its own, before what the user says', () => {
    const content = [
      { type: 'tool_result', tool_use_id: 'toolu_1', content: 'one' },
      { type: 'tool_result', tool_use_id: 'toolu_2', content: [text('two'), text('three')], is_error: true },
      { type: 'tool_result', tool_use_id: 'toolu_3' },
      text('and?'),
    ]
    assert.deepEqual(chatOf([...ask, { role: 'user', content }]), [
      ...ask,
      { role: 'tool', tool_call_id: 'toolu_1', content: 'one' },
      { role: 'tool', tool_call_id: 'toolu_2', content: 'Error: two\nthree' },
      { role: 'tool', tool_call_id: 'toolu_3', content: '' },
      { role: 'user', content: 'and?' },
    ])
  })

  it('show the images of results behind them', () => {
    const content = [
      { type: 'tool_result', tool_use_id: 'toolu_1', content: [text('one'), image] },
      { type: 'tool_result', tool_use_id: 'toolu_2', content: 'two' },
      text('and?'),
    ]
    assert.deepEqual(chatOf([...ask, { role: 'user', content }]), [
      ...ask,
      { role: 'tool', tool_call_id: 'toolu_1', content: 'one' },
      { role: 'tool', tool_call_id: 'toolu_2', content: 'two' },
      {
        role: 'user',
        content: [
          text('Part of the result of toolu_1:'),
          { type: 'image_url', image_url: { url: PNG } },
          text('and?'),
        ],
      },
    ])
  })

  it('keep the thinking of OpenAI-style lines only', () => {
    const own = { type: 'thinking', thinking: 'hmm', signature: 'unsigned:openai-style-line' }
    const foreign = { type: 'thinking', thinking: 'ho', signature: 'EqQBCgIYAhIM' }
    const redacted = { type: 'redacted_thinking', data: 'xyz' }
    assert.deepEqual(chatOf([...ask, { role: 'assistant', content: [own, foreign, redacted, text('a')] }]), [
      ...ask,
      { role: 'assistant', content: 'a', reasoning_content: 'hmm' },
    ])
    assert.deepEqual(chatOf([...ask, { role: 'assistant', content: [foreign] }, ...ask]), [...ask, ...ask])
    const renamed = { ...own, signature: `${own.signature}:reasoning` }
    assert.deepEqual(chatOf([...ask, { role: 'assistant', content: [renamed, text('a')] }]), [
      ...ask,
      { role: 'assistant', content: 'a', reasoning: 'hmm' },
    ])
  })

  const REFUSED: [param: string, more: Body][] = [
    [
      'messages[0].content[0]',
      { messages: [{ role: 'user', content: [{ type: 'container_upload', file_id: 'f' }] }] },
    ],
    [
      'messages[0].content[0].source',
      { messages: [{ role: 'user', content: [{ type: 'image', source: { type: 'file', file_id: 'f' } }] }] },
    ],
    [
      'messages[0].content[1].source',
      {
        messages: [
          {
            role: 'user',
            content: [
              text('a'),
              { type: 'document', source: { type: 'url', url: 'https://example.com/a.pdf' } },
            ],
          },
        ],
      },
    ],
    [
      'messages[0].content[0].citations',
      {
        messages: [
          {
            role: 'user',
            content: [
              {
                type: 'document',
                source: { type: 'text', media_type: 'text/plain', data: 'a' },
                citations: { enabled: true },
              },
            ],
          },
        ],
      },
    ],
    [
      'messages[0].content[0].content[0]',
      {
        messages: [
          {
            role: 'user',
            content: [
              {
                type: 'tool_result',
                tool_use_id: 't',
                content: [{ type: 'mystery', tool_name: 'f' }],
              },
            ],
          },
        ],
      },
    ],
    [
      'messages[1].content[0]',
      {
        messages: [
          ...ask,
          {
            role: 'assistant',
            content: [{ type: 'server_tool_use', id: 's', name: 'code_execution', input: {} }],
          },
        ],
      },
    ],
    ['system[0]', { system: [{ type: 'weather' }] }],
  ]
  for (const [param, more] of REFUSED) {
    it(`are refused for ${param}`, () => assert.equal(message.refusedMember(more), param))
  }
})

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
      [document({ type: 'text', media_type: 'text/plain', data: 'd' }, { title: 't', context: 'c' })],
      [text('t'), text('c'), text('d')],
    ],
    [
      'a document of blocks',
      [document({ type: 'content', content: 'd' }, { title: 't' })],
      [text('t'), text('d')],
    ],
    ['a document without blocks', [document({ type: 'content', content: [] }, { title: 't' })], 't'],
    [
      'a search result without content',
      [{ type: 'search_result', title: 't', source: 's', content: [] }],
      't (s)',
    ],
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

describe('a member of a message request, translated into a chat’s,', () => {
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
    ...['low', 'xhigh', 'max', 'mystery'].map((effort): [Body, Body] => [
      { output_config: { effort } },
      { reasoning_effort: effort },
    ]),
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

describe('a data URL', () => {
  it('is read up to its first comma, its type in lower case and without parameters', () => {
    assert.deepEqual(readDataUrl('data:image/PNG;base64,aGk='), { mediaType: 'image/png', data: 'aGk=' })
    assert.deepEqual(readDataUrl('DATA:text/plain;charset=utf-8;x=y;BASE64,a,b'), {
      mediaType: 'text/plain',
      data: 'a,b',
    })
    assert.deepEqual(readDataUrl('data:;base64,'), { mediaType: '', data: '' })
    assert.equal(dataUrl({ mediaType: 'image/png', data: 'aGk=' }), 'data:image/png;base64,aGk=')
  })

  it('is nothing else', () => {
    for (const url of [
      '',
      'data:image/png;base64',
      'data:image/png,aGk=',
      'https://a.test/a;base64,b',
      ' data:a;base64,b',
      'data:a;base64b',
      'data:a;base64;x,b',
      'data:a;base64x,b',
    ])
      assert.equal(readDataUrl(url), undefined, url)
  })

  it('has its comma within 200 characters', () => {
    const url = (length: number) => `data:${'x'.repeat(length - 'data:;base64'.length)};base64,aGk=`
    assert.equal(readDataUrl(url(199))?.data, 'aGk=')
    assert.equal(readDataUrl(url(200)), undefined)
  })
})

describe('the user of a message', () => {
  it('is hashed where it is longer than 64 characters', () => {
    const userOf = (user_id: unknown) => message.translate({ metadata: { user_id } }).user
    assert.equal(userOf('x'.repeat(64)), 'x'.repeat(64))
    assert.match(String(userOf('x'.repeat(65))), /^[0-9a-f]{64}$/)
    assert.equal(userOf(''), undefined)
  })
})

describe('a block that is none', () => {
  it('has no counterpart, in the result of a tool too', () => {
    for (const block of [{ type: 'mystery' }, { type: 'constructor' }]) {
      const result = {
        type: 'tool_result',
        tool_use_id: 'toolu_1',
        content: [{ type: 'text', text: 'a' }, block],
      }
      const call = { type: 'tool_use', id: 'toolu_1', name: 'f', input: {} }
      const messages = [...ask, { role: 'assistant', content: [call] }, { role: 'user', content: [result] }]
      assert.equal(
        message.refusedMember({ messages }),
        'messages[2].content[0].content[1]',
        JSON.stringify(block),
      )
    }
  })
})
