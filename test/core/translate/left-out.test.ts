import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ofChat, ofMessage, refused, said } from './dropping.ts'
import { ask, type Body, text, tool } from './requests.ts'

describe('where members may be left out, a chat', () => {
  const LEFT: [body: Body, left: unknown[], made: Body][] = [
    [{ n: 2, audio: {} }, ['n', 'audio'], {}],
    [{ stop: ['a', ' ', 7] }, ['stop'], { stop_sequences: ['a'] }],
    [{ stop: ' ' }, ['stop'], { stop_sequences: undefined }],
    [
      { response_format: { type: 'grammar' } },
      ['response_format'],
      { output_config: undefined, system: undefined },
    ],
    [{ tools: [tool('f')], tool_choice: 'mystery' }, ['tool_choice'], { tool_choice: undefined }],
    [{ tools: [tool('f'), { type: 'web_fetch' }] }, [['tools[1]', 'the tool "web_fetch"']], {}],
    [
      { tools: [{ type: 'x'.repeat(70) }] },
      [['tools[0]', `the tool "${'x'.repeat(64)}"`]],
      { tools: undefined },
    ],
    [{ tools: [{}] }, [['tools[0]', 'the tool "undefined"']], { tools: undefined }],
    [
      { tools: [tool('web_search')], web_search_options: {} },
      ['web_search_options'],
      { tools: [{ name: 'web_search', input_schema: { type: 'object', properties: {} } }] },
    ],
    [
      said(text('a'), { type: 'input_audio' }),
      ['messages[0].content[1]'],
      { messages: [{ role: 'user', content: [text('a')] }] },
    ],
  ]
  for (const [body, left, made] of LEFT) {
    it(`does without ${JSON.stringify(left)}`, () => {
      const dropped = ofChat(body)
      assert.deepEqual(dropped.left, left)
      for (const [member, value] of Object.entries(made)) assert.deepEqual(dropped.made[member], value)
    })
  }

  it('is refused all the same where a message would go missing, or is none', () => {
    const rows: [param: string, body: Body][] = [
      ['messages[0].content', said({ type: 'input_audio' })],
      ['messages[0].content[1]', said({ type: 'file', file: { file_id: 'f' } }, 'x')],
      ['messages[0].content[0].image_url', said({ type: 'image_url', image_url: '' })],
    ]
    for (const [param, body] of rows) assert.equal(refused(() => ofChat(body))[0], param)
  })

  it('is refused all the same with a tool that the caller runs', () => {
    for (const type of [
      'custom',
      'computer',
      'bash_20250124',
      'text_editor_1',
      'memory',
      'local_shell',
      'shell',
      'apply_patch',
    ])
      assert.deepEqual(
        refused(() => ofChat({ tools: [{ type }] })),
        ['tools[0]', `the tool ${JSON.stringify(type)}`],
      )
    for (const type of ['customs', 'my_custom', 'bashful', ''])
      assert.equal(ofChat({ tools: [{ type }] }).left.length, 1)
  })
})

describe('where members may be left out, a message', () => {
  const document = (source: unknown, more: object = {}) => ({ type: 'document', source, ...more })
  const LEFT: [body: Body, left: unknown[], made: Body][] = [
    [{ top_k: 5, container: { id: 'c' } }, ['top_k', 'container'], {}],
    [{ stop_sequences: ['a', 'b', 'c', 'd', 'e'] }, ['stop_sequences'], { stop: ['a', 'b', 'c', 'd'] }],
    [{ output_format: { type: 'x' } }, ['output_format'], { response_format: undefined }],
    [{ output_format: 'x' }, ['output_format'], { response_format: undefined }],
    [{ output_format: { type: 'x', schema: {} } }, ['output_format'], { response_format: undefined }],
    [
      {
        output_config: { format: { type: 'json_schema' } },
        output_format: { type: 'json_schema', schema: {} },
      },
      ['output_config.format'],
      { response_format: undefined },
    ],
    [{ tools: [{ name: 'f' }], tool_choice: { type: 'x' } }, ['tool_choice'], { tool_choice: undefined }],
    [
      { tools: [{ type: 'web_fetch_1', name: 'f' }] },
      [['tools[0]', 'the tool "web_fetch_1"']],
      { tools: undefined },
    ],
    [
      said(text('a'), { type: 'x' }),
      ['messages[0].content[1]'],
      { messages: [{ role: 'user', content: 'a' }] },
    ],
    [
      said(
        text('a'),
        document({ type: 'url' }),
        document('x'),
        document({ type: 'base64', data: 'a', media_type: 'text/plain' }),
      ),
      [1, 2, 3].map((i) => `messages[0].content[${i}].source`),
      { messages: [{ role: 'user', content: 'a' }] },
    ],
    [
      said(
        document({ type: 'text', data: 'a' }, { citations: { enabled: true } }),
        document({ type: 'text', data: 'b' }, { citations: { enabled: false } }),
      ),
      ['messages[0].content[0].citations'],
      { messages: [{ role: 'user', content: [text('a'), text('b')] }] },
    ],
    [
      said({ type: 'tool_result', tool_use_id: 't', content: [{ type: 'x' }, text('a')] }, { type: 'x' }),
      ['messages[0].content[0].content[0]', 'messages[0].content[1]'],
      { messages: [{ role: 'tool', tool_call_id: 't', content: 'a' }] },
    ],
    [
      { messages: [...ask, { role: 'assistant', content: [{ type: 'x' }, text('a')] }] },
      ['messages[1].content[0]'],
      { messages: [...ask, { role: 'assistant', content: 'a' }] },
    ],
  ]
  for (const [body, left, made] of LEFT) {
    it(`does without ${JSON.stringify(left)}`, () => {
      const dropped = ofMessage(body)
      assert.deepEqual(dropped.left, left)
      for (const [member, value] of Object.entries(made)) assert.deepEqual(dropped.made[member], value)
    })
  }

  it('has no stop sequences for a reasoning model, and is told so', () => {
    const { made, left } = ofMessage({ stop_sequences: ['a'] }, 'o3')
    assert.deepEqual([made.stop, left], [undefined, ['stop_sequences']])
  })

  it('is refused all the same without what it is about', () => {
    const rows: [param: string, body: Body][] = [
      ['inference_geo', { inference_geo: 'eu' }],
      ['thread', { thread: 't' }],
      ['max_tokens', { max_tokens: 0 }],
      ['messages[0].content', said({ type: 'x' })],
      [
        'messages[0].content[0].content',
        said({ type: 'tool_result', tool_use_id: 't', content: [{ type: 'x' }] }),
      ],
      ['messages[1].content', { messages: [...ask, { role: 'assistant', content: [{ type: 'x' }] }] }],
    ]
    for (const [param, body] of rows) assert.equal(refused(() => ofMessage(body))[0], param)
  })
})
