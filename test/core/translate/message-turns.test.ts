import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ask, type Body, message, PNG, text } from './requests.ts'

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
              { type: 'document', source: { type: 'text', data: 'a' }, citations: { enabled: true } },
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
