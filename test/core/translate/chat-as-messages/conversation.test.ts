import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { JsonObject } from '../../../../lib/core/json/index.ts'
import { chatCompletions } from '../../../../lib/core/operations/index.ts'
import { translationOf } from '../../../../lib/core/translate/index.ts'
import { ask, assistant, type Body, chat, PNG, text, user } from '../support/requests.ts'

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
      { type: 'tool_result', tool_use_id: 'a', content: 'a' },
      { type: 'tool_result', tool_use_id: 'b', content: 'b' },
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
      [
        ...ask,
        { role: 'user', content: [{ type: 'input_audio', input_audio: { data: 'AA==', format: 'wav' } }] },
      ],
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
    [
      'messages[1].tool_calls[0]',
      [...ask, { role: 'assistant', tool_calls: [{ id: 'c', type: 'mystery' }] }],
    ],
    [
      'messages[1].tool_calls[0].function.arguments',
      [...ask, { role: 'assistant', tool_calls: [{ ...call, function: { name: 'f', arguments: '[1]' } }] }],
    ],
    ['messages', [{ role: 'user', content: '' }]],
  ]
  for (const [param, messages] of REFUSED) {
    it(`are refused for ${param}`, () => assert.equal(chat.refusedMember({ messages }), param))
  }
})

const direction = translationOf(chatCompletions, { protocol: 'anthropic' })
/** A request that the endpoint’s own schema may not let through. */
const unchecked = (json: JsonObject, upstreamModel = 'm') =>
  direction?.request({ model: 'm', messages: ask, ...json }, { upstreamModel, defaultMaxTokens: 10 }) ?? {}
const turnsOf = (...messages: unknown[]) => unchecked({ messages }).messages
const EPHEMERAL = { type: 'ephemeral' }
const cached = { cache_control: EPHEMERAL }
const result = (id: string, more: object = {}) => ({
  type: 'tool_result',
  tool_use_id: id,
  content: id,
  ...more,
})
const toolMessage = (id: string, more: object = {}) => ({
  role: 'tool',
  tool_call_id: id,
  content: id,
  ...more,
})
const call = (id: string, name = 'f') => ({ id, type: 'function', function: { name, arguments: '{}' } })
const use = (id: string, name = 'f') => ({ type: 'tool_use', id, name, input: {} })

describe('the turns of a chat on an anthropic line', () => {
  it('have results first, also with other messages between', () => {
    const inContent = (id: string) => ({ type: 'tool_result', tool_use_id: id, content: [text(id)] })
    assert.deepEqual(
      turnsOf(
        ...ask,
        { role: 'assistant', tool_calls: ['a', 'b', 'c'].map((id) => call(id)) },
        { role: 'user', content: 'one' },
        toolMessage('a'),
        { role: 'user', content: [text('two'), inContent('b')] },
        toolMessage('c'),
        { role: 'assistant', content: 'So', tool_calls: [call('d')] },
        toolMessage('d'),
        { role: 'user', content: 'three' },
      ),
      [
        user('hi'),
        assistant(use('a'), use('b'), use('c')),
        { role: 'user', content: [result('a'), result('c'), inContent('b'), text('one'), text('two')] },
        assistant(text('So'), use('d')),
        { role: 'user', content: [result('d'), text('three')] },
      ],
    )
  })

  it('hold what the assistant refused to say', () => {
    const refused = { role: 'assistant', content: [{ type: 'refusal', refusal: 'No.' }] }
    assert.deepEqual(turnsOf(...ask, refused, ...ask), [user('hi'), assistant(text('No.')), user('hi')])
  })

  it('begin with results where no message came before', () => {
    assert.deepEqual(turnsOf(toolMessage('a'), { role: 'user', content: 'b' }), [
      { role: 'user', content: [result('a'), text('b')] },
    ])
  })

  const CACHED: [what: string, message: object, blocks: unknown[]][] = [
    [
      'the last part of a user’s',
      { role: 'user', content: [text('a'), text('b')] },
      [text('a'), { ...text('b'), ...cached }],
    ],
    ['one text', { role: 'user', content: 'a' }, [{ ...text('a'), ...cached }]],
    ['a result', toolMessage('a'), [result('a', cached)]],
    ['nothing', { role: 'user', content: '' }, []],
  ]
  for (const [what, message, blocks] of CACHED)
    it(`are cached up to ${what}, where the message says so`, () => {
      const marks = [cached, { prompt_cache_breakpoint: {} }]
      for (const mark of marks) {
        const made = turnsOf({ ...message, ...mark }, { role: 'assistant', content: 'x' }, ...ask)
        const first = blocks.length === 0 ? [text('.')] : blocks
        assert.deepEqual(made, [{ role: 'user', content: first }, assistant(text('x')), user('hi')])
      }
      for (const none of [{ cache_control: 'x' }, { cache_control: null, prompt_cache_breakpoint: 'x' }])
        assert.doesNotMatch(JSON.stringify(turnsOf({ ...message, ...none }, ...ask)), /cache_control/)
    })

  it('are cached up to what the assistant called, or up to instructions', () => {
    const made = unchecked({
      messages: [
        { role: 'system', content: [text('a'), text('b')], ...cached },
        ...ask,
        { role: 'assistant', content: 'c', tool_calls: [call('d')], ...cached },
        toolMessage('d', { content: [{ ...text('e'), ...cached }] }),
      ],
    })
    assert.deepEqual(made.system, [text('a'), { ...text('b'), ...cached }])
    assert.deepEqual((made.messages as unknown[]).slice(1), [
      assistant(text('c'), { ...use('d'), ...cached }),
      {
        role: 'user',
        content: [{ type: 'tool_result', tool_use_id: 'd', content: [{ ...text('e'), ...cached }] }],
      },
    ])
  })

  it('hold a result of one text as that, and any other as parts', () => {
    const content = (given: unknown) => {
      const [turn] = turnsOf(toolMessage('a', { content: given })) as [{ content: [{ content: unknown }] }]
      return turn.content[0].content
    }
    assert.deepEqual(content([text('x')]), 'x')
    assert.deepEqual(content([text('x'), text('y')]), [text('x'), text('y')])
    const image = { type: 'image', source: { type: 'url', url: 'https://a' } }
    assert.deepEqual(content([{ type: 'image_url', image_url: { url: 'https://a' } }]), [image])
    for (const none of ['', ' ', null, [], [text(' ')]]) assert.equal(content(none), undefined)
  })

  it('contain a result that failed, as Cursor sends it', () => {
    const failed = { type: 'tool_result', tool_use_id: 'a', content: 'no', is_error: true }
    const [made] = turnsOf({
      role: 'user',
      content: [failed, { ...failed, is_error: 'x', content: '' }],
    }) as [object]
    assert.deepEqual(made, {
      role: 'user',
      content: [
        { ...failed, content: [text('no')] },
        { type: 'tool_result', tool_use_id: 'a' },
      ],
    })
  })

  it('have the blank end of a beginning taken away, and nothing else', () => {
    const spaced = { role: 'assistant', content: ' a ' }
    assert.deepEqual(turnsOf(...ask, spaced), [user('hi'), assistant(text(' a'))])
    assert.deepEqual(turnsOf(...ask, spaced, ...ask), [user('hi'), assistant(text(' a ')), user('hi')])
    assert.deepEqual(turnsOf({ role: 'user', content: 'hi ' }), [user('hi ')])
    const calls = [{ ...spaced, tool_calls: [call('a')] }]
    assert.deepEqual(turnsOf(...ask, ...calls), [user('hi'), assistant(text(' a '), use('a'))])
  })

  it('are ended by the user for a model that takes no beginning, but not behind a call', () => {
    const model = 'claude-opus-4-7'
    const end = (...messages: unknown[]) => unchecked({ messages }, model).messages as unknown[]
    const said = { role: 'assistant', content: 'a' }
    assert.deepEqual(end(...ask, said).at(-1), user('Continue.'))
    assert.deepEqual(end(...ask, said, ...ask).at(-1), user('hi'))
    const called = { ...said, tool_calls: [call('b')] }
    assert.deepEqual(end(...ask, called).at(-1), assistant(text('a'), use('b')))
    assert.deepEqual(end(...ask, called, toolMessage('b'), said).at(-1), user('Continue.'))
  })

  it('hold integers of any size in the arguments of a call', () => {
    const big = { ...call('a'), function: { name: 'f', arguments: '{"id":12345678901234567890}' } }
    assert.match(
      JSON.stringify(turnsOf(...ask, { role: 'assistant', tool_calls: [big] })),
      /"id":12345678901234567890/,
    )
  })

  const REFUSED: [param: string, messages: unknown[]][] = [
    ['messages[0].content[0]', [{ role: 'user', content: ['x'] }]],
    ['messages[0].content[0]', [{ role: 'user', content: [{ type: 'toString' }] }]],
    [
      'messages[0].content[0].image_url',
      [{ role: 'user', content: [{ type: 'image_url', image_url: { url: '' } }] }],
    ],
    [
      'messages[0].content[0].image_url.url',
      [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'DATA:image/png,x' } }] }],
    ],
    ['messages[0].content[0].file', [{ role: 'user', content: [{ type: 'file', file: 'x' }] }]],
    [
      'messages[0].content[0].file',
      [{ role: 'user', content: [{ type: 'file', file: { file_data: 'https://a' } }] }],
    ],
    [
      'messages[1].tool_calls[0].id',
      [...ask, { role: 'assistant', tool_calls: [{ function: { name: 'f' } }] }],
    ],
    [
      'messages[1].tool_calls[1]',
      [...ask, { role: 'assistant', tool_calls: [call('a'), { id: 'b', function: {} }] }],
    ],
    [
      'messages[1].tool_calls[0].function.arguments',
      [...ask, { role: 'assistant', tool_calls: [{ id: 'a', function: { name: 'f', arguments: 'x' } }] }],
    ],
    ['messages[0].role', [{ content: 'a' }]],
    ['system', []],
    ['messages', []],
  ]
  for (const [param, messages] of REFUSED)
    it(`are refused for ${param}: ${JSON.stringify(messages)}`, () => {
      const system = param === 'system' ? [{ type: 'image_url', image_url: { url: 'https://a' } }] : undefined
      assert.throws(() => unchecked({ messages, system }), { name: 'Untranslatable', param })
    })
})

describe('an image of a chat', () => {
  const WEBP = Buffer.from([...Buffer.from('RIFF'), 0xff, 0xfe, 0xfd, 0xfc, ...Buffer.from('WEBPVP8 ')])
  const PNG = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0])
  const JPEG = Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0])

  const imageUrl = (said: string, bytes: Buffer) => `data:${said};base64,${bytes.toString('base64')}`
  const asked = (image_url: unknown) => ({
    messages: [{ role: 'user', content: [{ type: 'image_url', image_url }] }],
  })
  const imageOf = (said: string, bytes: Buffer) => asked({ url: imageUrl(said, bytes) })

  const IMAGES: [said: string, bytes: Buffer, type: string][] = [
    ['image/jpg', JPEG, 'image/jpeg'],
    ['image/jpeg', PNG, 'image/png'],
    ['application/octet-stream', Buffer.from('GIF89a'), 'image/gif'],
    ['image/png', WEBP, 'image/webp'],
    ['image/png', Buffer.from('RIFF....WAVE'), 'image/png'],
    // Magic bytes count only at the beginning of a file.
    ['image/png', Buffer.from(`AAAA${JPEG.toString('base64').slice(0, 4)}`, 'base64'), 'image/png'],
    ['image/gif', Buffer.concat([Buffer.alloc(3), WEBP]), 'image/gif'],
    ['image/png', Buffer.concat([Buffer.alloc(3), Buffer.from('GIF89a')]), 'image/png'],
    ['image/webp', Buffer.concat([Buffer.alloc(3), PNG]), 'image/webp'],
  ]
  for (const [said, bytes, media_type] of IMAGES) {
    it(`that is said to be ${said} is sent as ${media_type}`, () => {
      const { messages } = chat.translate(imageOf(said, bytes))
      const source = { type: 'base64', media_type, data: bytes.toString('base64') }
      assert.deepEqual(messages, [{ role: 'user', content: [{ type: 'image', source }] }])
    })
  }

  it('may be a URL without an object, as Mistral’s clients send it', () => {
    const given = { type: 'base64', media_type: 'image/png', data: PNG.toString('base64') }
    const sources = [
      [asked(imageUrl('image/png', PNG)), given],
      [asked('https://a.test/b.png'), { type: 'url', url: 'https://a.test/b.png' }],
    ] as const
    for (const [body, source] of sources)
      assert.deepEqual(chat.translate(body).messages, [
        { role: 'user', content: [{ type: 'image', source }] },
      ])
    const param = chat.refusedMember(asked(imageUrl('image/bmp', Buffer.from('BM'))))
    assert.equal(param, 'messages[0].content[0].image_url')
  })

  it('of another type is refused', () =>
    assert.equal(
      chat.refusedMember(imageOf('image/bmp', Buffer.from('BM'))),
      'messages[0].content[0].image_url.url',
    ))
})
