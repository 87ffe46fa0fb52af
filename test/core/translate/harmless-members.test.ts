import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { chatCompletions, messages, type Operation, responses } from '../../../lib/core/operations/index.ts'
import { translationOf, Untranslatable } from '../../../lib/core/translate/index.ts'
import { ask, type Body, tool } from './requests.ts'

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

/** What no line needs, whichever endpoint it was sent to. */
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

describe('a member that does no harm', () => {
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

function translated(from: Operation, line: (typeof DIRECTIONS)[number]['line'], body: Body) {
  return translationOf(from, line)?.request(body, { upstreamModel: 'up', defaultMaxTokens: 100 })
}
