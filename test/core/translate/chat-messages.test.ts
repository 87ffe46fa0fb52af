import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ask, assistant, type Body, chat, PNG, text, user } from './requests.ts'

describe('the messages of a chat', () => {
  const call = { id: 'call_1', type: 'function', function: { name: 'f', arguments: '{"a":1}' } }
  const use = { type: 'tool_use', id: 'call_1', name: 'f', input: { a: 1 } }

  it('give their instructions to the system prompt, in their order', () => {
    const { system, messages } = chat.translate({
      messages: [
        { role: 'system', content: 'one' },
        { role: 'developer', content: [{ type: 'text', text: 'two', cache_control: { type: 'ephemeral' } }] },
        { role: 'user', content: 'hi' },
        { role: 'system', content: 'three' },
      ],
    })
    assert.deepEqual(system, [
      text('one'),
      { ...text('two'), cache_control: { type: 'ephemeral' } },
      text('three'),
    ])
    assert.deepEqual(messages, [user('hi')])
  })

  it('alternate', () => {
    const { messages } = chat.translate({
      messages: [
        { role: 'assistant', content: 'Welcome' },
        { role: 'user', content: 'a' },
        { role: 'user', content: [{ type: 'text', text: 'b' }] },
        { role: 'assistant', content: 'c' },
        { role: 'assistant', content: null, refusal: 'd' },
        { role: 'user', content: 'e' },
      ],
    })
    assert.deepEqual(messages, [
      user('.'),
      assistant(text('Welcome')),
      { role: 'user', content: [text('a'), text('b')] },
      assistant(text('c'), text('d')),
      user('e'),
    ])
  })

  it('may be instructions only', () => {
    for (const messages of [
      [{ role: 'system', content: 'Name a colour.' }],
      [{ role: 'developer', content: 'Name a colour.' }],
      [
        { role: 'system', content: 'Name a colour.' },
        { role: 'user', content: '' },
      ],
    ]) {
      const { system, messages: turns } = chat.translate({ messages })
      assert.deepEqual({ system, turns }, { system: [text('Name a colour.')], turns: [user('.')] })
    }
  })

  it('keep their content parts', () => {
    const pdf = Buffer.from('%PDF').toString('base64')
    const { messages } = chat.translate({
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'look', prompt_cache_breakpoint: { mode: 'explicit' } },
            { type: 'image_url', image_url: { url: PNG, detail: 'high' } },
            {
              type: 'image_url',
              image_url: { url: 'https://example.com/a.jpg' },
              cache_control: { type: 'ephemeral' },
            },
            { type: 'file', file: { filename: 'a.pdf', file_data: `data:application/pdf;base64,${pdf}` } },
            { type: 'file', file: { file_data: `data:text/plain;charset=utf-8;base64,${btoa('notes')}` } },
          ],
        },
      ],
    })
    assert.deepEqual(messages, [
      {
        role: 'user',
        content: [
          { ...text('look'), cache_control: { type: 'ephemeral' } },
          { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'aGk=' } },
          {
            type: 'image',
            source: { type: 'url', url: 'https://example.com/a.jpg' },
            cache_control: { type: 'ephemeral' },
          },
          {
            type: 'document',
            source: { type: 'base64', media_type: 'application/pdf', data: pdf },
            title: 'a.pdf',
          },
          { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'notes' } },
        ],
      },
    ])
  })

  it('keep images that callers name after the end of a file', () => {
    const url = 'data:image/jpg;base64,aGk='
    const { messages } = chat.translate({
      messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }],
    })
    const source = { type: 'base64', media_type: 'image/jpeg', data: 'aGk=' }
    assert.deepEqual(messages, [{ role: 'user', content: [{ type: 'image', source }] }])
  })

  it('have all results of a turn, and what the user says to them, in one turn', () => {
    const { messages } = chat.translate({
      messages: [
        ...ask,
        { role: 'assistant', content: 'Let me see', tool_calls: [call, { ...call, id: 'call_2' }] },
        { role: 'tool', tool_call_id: 'call_1', content: 'one' },
        {
          role: 'tool',
          tool_call_id: 'call_2',
          content: [
            { type: 'text', text: 'two' },
            { type: 'image_url', image_url: { url: PNG } },
          ],
        },
        { role: 'user', content: 'and?' },
      ],
    })
    const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'aGk=' } }
    assert.deepEqual((messages as unknown[]).slice(1), [
      assistant(text('Let me see'), use, { ...use, id: 'call_2' }),
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'call_1', content: 'one' },
          { type: 'tool_result', tool_use_id: 'call_2', content: [text('two'), image] },
          text('and?'),
        ],
      },
    ])
  })

  it('have all results of a turn before what the user said between them', () => {
    const result = (id: string) => ({ role: 'tool', tool_call_id: id, content: id })
    const calls = ['a', 'b'].map((id) => ({ ...call, id }))
    const { messages } = chat.translate({
      messages: [
        ...ask,
        { role: 'assistant', content: null, tool_calls: calls },
        result('b'),
        { role: 'user', content: 'Well?' },
        result('a'),
      ],
    })
    assert.deepEqual((messages as { content: unknown }[])[2]?.content, [
      { type: 'tool_result', tool_use_id: 'b', content: 'b' },
      { type: 'tool_result', tool_use_id: 'a', content: 'a' },
      text('Well?'),
    ])
  })

  it('may call a tool without arguments, and get an empty result', () => {
    const { messages } = chat.translate({
      messages: [
        ...ask,
        { role: 'assistant', tool_calls: [{ ...call, function: { name: 'f', arguments: '' } }] },
        { role: 'tool', tool_call_id: 'call_1', content: '' },
      ],
    })
    assert.deepEqual((messages as unknown[]).slice(1), [
      assistant({ ...use, input: {} }),
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'call_1' }] },
    ])
  })

  it('have ids that Anthropic takes, the same for a call and its result', () => {
    const { messages } = chat.translate({
      messages: [
        ...ask,
        { role: 'assistant', tool_calls: [{ ...call, id: 'functions.f:0' }] },
        { role: 'tool', tool_call_id: 'functions.f:0', content: 'one' },
      ],
    })
    const [, asked, answered] = messages as { content: { id?: string; tool_use_id?: string }[] }[]
    assert.match(asked?.content[0]?.id ?? '', /^[a-zA-Z0-9_-]{1,40}$/)
    assert.equal(asked?.content[0]?.id, answered?.content[0]?.tool_use_id)
  })

  it('may end with the beginning of the answer, without white space at its end', () => {
    const { messages } = chat.translate({ messages: [...ask, { role: 'assistant', content: '{"a": ' }] })
    assert.deepEqual(messages, [user('hi'), assistant(text('{"a":'))])
  })

  for (const model of ['claude-sonnet-4-6', 'anthropic/claude-opus-4.7', 'claude-sonnet-5']) {
    it(`end with a user turn for ${model}, which takes no beginning of the answer`, () => {
      const given = { messages: [...ask, { role: 'assistant', content: 'Well, ' }], reasoning_effort: 'high' }
      const { messages, thinking } = chat.translate(given, model)
      assert.deepEqual(messages, [user('hi'), assistant(text('Well,')), user('Continue.')])
      assert.equal((thinking as { type: string }).type, 'adaptive')
    })
  }

  it('that say nothing are left out', () => {
    const { messages } = chat.translate({
      messages: [
        ...ask,
        { role: 'assistant', content: '' },
        { role: 'user', content: [{ type: 'text', text: ' ' }] },
      ],
    })
    assert.deepEqual(messages, [user('hi')])
  })

  const REFUSED: [param: string, messages: Body[]][] = [
    [
      'messages[1].content[0]',
      [...ask, { role: 'user', content: [{ type: 'input_audio', input_audio: {} }] }],
    ],
    [
      'messages[0].content[0].image_url.url',
      [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:image/tiff;base64,AA==' } }] }],
    ],
    [
      'messages[0].content[1].file',
      [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'a' },
            { type: 'file', file: { file_id: 'f' } },
          ],
        },
      ],
    ],
    [
      'messages[0].content[0].file.file_data',
      [{ role: 'user', content: [{ type: 'file', file: { file_data: 'data:audio/wav;base64,AA==' } }] }],
    ],
    [
      'messages[0].content',
      [{ role: 'system', content: [{ type: 'image_url', image_url: { url: PNG } }] }, ...ask],
    ],
    ['messages[1].role', [...ask, { role: 'function', name: 'f', content: 'a' }]],
    ['messages[1].audio', [...ask, { role: 'assistant', audio: { id: 'a' } }]],
    ['messages[1].function_call', [...ask, { role: 'assistant', function_call: { name: 'f' } }]],
    ['messages[1].tool_calls[0]', [...ask, { role: 'assistant', tool_calls: [{ id: 'c', type: 'custom' }] }]],
    [
      'messages[1].tool_calls[0].function.arguments',
      [...ask, { role: 'assistant', tool_calls: [{ ...call, function: { name: 'f', arguments: '[1]' } }] }],
    ],
    ['messages[1].tool_call_id', [...ask, { role: 'tool', content: 'a' }]],
    ['messages', [{ role: 'user', content: '' }]],
  ]
  for (const [param, messages] of REFUSED) {
    it(`are refused for ${param}`, () => assert.equal(chat.refusedMember({ messages }), param))
  }
})
