import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { chatCompletions, messages, type Operation, responses } from '../../../lib/core/operations/index.ts'
import { translationOf, Untranslatable } from '../../../lib/core/translate/index.ts'
import {
  ANTHROPIC,
  ask,
  type Body,
  input,
  OPENAI,
  ofChat,
  ofMessage,
  ofResponse,
  refused,
  said,
  text,
  tool,
} from './support/requests.ts'

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

  it('is still refused if a message would be lost, or is invalid', () => {
    const rows: [param: string, body: Body][] = [
      ['messages[0].content', said({ type: 'input_audio' })],
      ['messages[0].content[1]', said({ type: 'file', file: { file_id: 'f' } }, 'x')],
      ['messages[0].content[0].image_url', said({ type: 'image_url', image_url: '' })],
    ]
    for (const [param, body] of rows) assert.equal(refused(() => ofChat(body))[0], param)
  })

  it('is still refused with a tool that the caller runs', () => {
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

  it('has no stop sequences for a reasoning model, and lists them as left out', () => {
    const { made, left } = ofMessage({ stop_sequences: ['a'] }, 'o3')
    assert.deepEqual([made.stop, left], [undefined, ['stop_sequences']])
  })

  it('is still refused without its essential content', () => {
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

describe('where members may be left out, a response', () => {
  const LEFT: [body: Body, left: unknown[]][] = [
    [{ store: true, something_new: 1 }, ['store', 'something_new']],
    [{ tools: [{ type: 'file_search' }] }, [['tools[0]', 'the tool "file_search"']]],
    [{ tools: [{ type: 'function', name: 'f' }], tool_choice: { type: 'mcp' } }, ['tool_choice']],
    [
      input({
        role: 'user',
        content: [
          { type: 'input_text', text: 'a' },
          { type: 'input_image', file_id: 'f' },
        ],
      }),
      ['input[0].content[1]'],
    ],
    ...[
      'mcp_call',
      'mcp_list_tools',
      'file_search_call',
      'code_interpreter_call',
      'image_generation_call',
      'tool_search_call',
    ].map((type): [Body, unknown[]] => [
      input({ role: 'user', content: 'a' }, { type }),
      [['input[1]', `the item "${type}"`]],
    ]),
  ]
  for (const [body, left] of LEFT)
    it(`does without ${JSON.stringify(left)}`, () => {
      assert.deepEqual(ofResponse(body).left, left)
      assert.deepEqual(ofResponse(body, ANTHROPIC).left, left)
    })

  it('lists members without a counterpart by their own names', () => {
    const format = { text: { format: { type: 'grammar' } } }
    assert.deepEqual(ofResponse(format, ANTHROPIC).left, ['text.format'])
    const filters = { allowed_domains: ['a'], blocked_domains: ['b'] }
    const { left, made } = ofResponse({ tools: [{ type: 'web_search', filters }] }, ANTHROPIC)
    assert.deepEqual(left, ['tools'])
    assert.deepEqual(made.tools, [
      { type: 'web_search_20250305', name: 'web_search', allowed_domains: ['a'] },
    ])
  })

  it('is still refused without its essential content', () => {
    const rows: [param: string, body: Body, what?: string][] = [
      ['previous_response_id', { previous_response_id: 'r' }],
      ['instructions', { instructions: ['a'] }],
      ['input[0]', input({ type: 'item_reference', id: 'a' }), 'the item "item_reference"'],
      ['input[0]', input({ type: `x${'y'.repeat(70)}` }), `the item "x${'y'.repeat(63)}"`],
      ['input[0]', input({ type: 'file_search_call_output' }), 'the item "file_search_call_output"'],
      ['input[0]', input({ type: 'local_shell_call' }), 'the item "local_shell_call"'],
      ['input[1]', input({ role: 'user', content: 'a' }, 'x')],
      ['input[0].content', input({ role: 'user', content: [{ type: 'input_image', file_id: 'f' }] })],
    ]
    for (const [param, body, what] of rows)
      for (const line of [OPENAI, ANTHROPIC])
        assert.deepEqual(
          refused(() => ofResponse(body, line)),
          [param, what],
        )
  })
})

describe('a member that does no harm', () => {
  const CHAT: Body = { model: 'm', messages: ask }
  const MESSAGE: Body = { ...CHAT, max_tokens: 100 }
  const RESPONSE: Body = { model: 'm', input: 'hi' }

  const OPENAI = { protocol: 'openai' } as const
  const ANTHROPIC = { protocol: 'anthropic' } as const
  const PLAIN = { protocol: 'openai', endpoints: new Set(['chat/completions']) } as const

  const DIRECTIONS = [
    { name: 'chat on an anthropic line', from: chatCompletions, line: ANTHROPIC, smallest: CHAT },
    { name: 'messages on an openai line', from: messages, line: OPENAI, smallest: MESSAGE },
    { name: 'responses on a chat line', from: responses, line: PLAIN, smallest: RESPONSE },
    { name: 'responses on an anthropic line', from: responses, line: ANTHROPIC, smallest: RESPONSE },
  ]

  /** Members that no line needs, whichever endpoint the request was sent to. */
  const HARMLESS: Body[] = [
    { client_metadata: { installation: 'x' } },
    { metadata: {} },
    { user: 'u' },
    { safety_identifier: 's' },
    { prompt_cache_key: 'k' },
    { prompt_cache_options: { mode: 'explicit' } },
    { prompt_cache_retention: '24h' },
    { service_tier: 'auto' },
    { stream_options: { include_obfuscation: false } },
    { verbosity: 'low' },
    { truncation: 'auto' },
    { truncation: 'disabled' },
    { store: false },
    { background: false },
    { include: [] },
    { include: ['reasoning.encrypted_content', 'web_search_call.action.sources'] },
    ...[
      'code_interpreter_call.outputs',
      'computer_call_output.output.image_url',
      'file_search_call.results',
      'message.input_image.image_url',
      'web_search_call.results',
    ].map((one) => ({ include: [one] })),
    { parallel_tool_calls: true },
    { text: {} },
    { text: { format: { type: 'text' }, verbosity: 'medium' } },
    { max_tool_calls: 5 },
    { context_management: [] },
    { provider: { only: ['a'] } },
  ]

  const functions = [{ type: 'function', name: 'f', parameters: { type: 'object' }, strict: false }]
  const PART = { type: 'input_text', text: 'hi' }

  /** The members that clients send without being asked, beside model and content. */
  const DEFAULTS: [client: string, from: Operation, members: Body][] = [
    [
      'Codex CLI',
      responses,
      {
        instructions: 'Code.',
        input: [
          { type: 'message', role: 'developer', content: [PART] },
          { type: 'message', role: 'user', content: [PART] },
        ],
        tools: functions,
        tool_choice: 'auto',
        parallel_tool_calls: true,
        reasoning: { effort: 'medium', summary: 'auto' },
        store: false,
        stream: true,
        include: ['reasoning.encrypted_content'],
        prompt_cache_key: '0198',
        text: { verbosity: 'low' },
        client_metadata: { 'x-codex-installation-id': '0198' },
        service_tier: 'auto',
      },
    ],
    [
      'AI SDK, responses',
      responses,
      { input: [{ role: 'user', content: [PART] }], tools: functions, tool_choice: 'auto' },
    ],
    [
      'OpenAI Agents',
      responses,
      {
        instructions: 'i',
        input: ask,
        include: [],
        tools: functions,
        stream: false,
        text: { verbosity: 'low' },
        reasoning: { effort: 'none' },
      },
    ],
    [
      'LangChain, responses',
      responses,
      { input: [{ type: 'message', role: 'user', content: 'hi' }], stream: false, text: {} },
    ],
    ['LangChain, chat', chatCompletions, { stream: false, tools: [tool('f')] }],
    [
      'AI SDK, chat',
      chatCompletions,
      { tools: [tool('f')], tool_choice: 'auto', stream: true, stream_options: { include_usage: true } },
    ],
    [
      'OpenAI Agents, chat',
      chatCompletions,
      { tools: [tool('f')], tool_choice: 'auto', parallel_tool_calls: true, store: true },
    ],
    [
      'Claude Code',
      messages,
      {
        system: [{ type: 'text', text: 'Code.', cache_control: { type: 'ephemeral' } }],
        tools: [{ name: 'f', input_schema: { type: 'object' }, eager_input_streaming: true }],
        metadata: { user_id: 'user_1' },
        thinking: { type: 'adaptive' },
        context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] },
        output_config: { effort: 'medium' },
        temperature: 1,
        stream: true,
      },
    ],
  ]

  function translated(from: Operation, line: (typeof DIRECTIONS)[number]['line'], body: Body) {
    return translationOf(from, line)?.request(body, { upstreamModel: 'up', defaultMaxTokens: 100 })
  }

  for (const { name, from, line, smallest } of DIRECTIONS) {
    for (const members of HARMLESS) {
      it(`is no reason to refuse ${name}: ${JSON.stringify(members)}`, () => {
        assert.ok(translated(from, line, { ...smallest, ...members }))
      })
    }
    for (const [client, endpoint, members] of DEFAULTS) {
      if (endpoint !== from) continue
      it(`is no reason to refuse ${name}: the defaults of ${client}`, () => {
        assert.ok(translated(from, line, { ...smallest, ...members }))
      })
    }
    it(`does not stand for others: ${name}`, () => {
      for (const [param, member] of [
        ['guided_regex', 'a+'],
        ['store', 'everywhere'],
        ['include', ['message.output_text.logprobs']],
      ] as const) {
        // Records of the upstream's own are nothing that a chat asks for.
        if (from === chatCompletions && param === 'store') continue
        assert.throws(
          () => translated(from, line, { ...smallest, [param]: member }),
          (error) => error instanceof Untranslatable && error.param === param,
        )
      }
    })
  }
})
