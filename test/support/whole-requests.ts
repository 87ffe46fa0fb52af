import {
  chatCompletions,
  messages,
  type Operation,
  responses,
  videos,
  videoTasks,
} from '../../lib/core/operations/index.ts'
import { rerank } from '../../lib/core/operations/rerank.ts'
import type { Path } from './member-faults.ts'

/** Requests of each protocol that use the members which lines of other protocols understand. */

const PNG = 'iVBORw0KGgoAAAANSUhEUg=='
const schema = {
  type: 'object',
  properties: { city: { type: 'string' }, days: { type: 'array', items: { type: 'number' } } },
  required: ['city', 'days'],
  additionalProperties: false,
}
const cache_control = { type: 'ephemeral' }

const CHAT_REQUEST = {
  model: 'chat',
  messages: [
    { role: 'system', content: [{ type: 'text', text: 'Be brief.', cache_control }] },
    { role: 'developer', content: 'Be polite.', name: 'operator' },
    {
      role: 'user',
      name: 'ann',
      content: [
        { type: 'text', text: 'Look at this.' },
        { type: 'image_url', image_url: { url: `data:image/png;base64,${PNG}`, detail: 'low' } },
        { type: 'image_url', image_url: { url: 'https://a.test/b.png' } },
        { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,QQ==' } },
      ],
    },
    {
      role: 'assistant',
      content: [
        { type: 'text', text: 'I look.' },
        { type: 'refusal', refusal: 'I will not say more.' },
      ],
      reasoning_content: 'The user wants it.',
      reasoning_details: [
        {
          type: 'reasoning.text',
          format: 'anthropic-claude-v1',
          index: 0,
          length: 18,
          signature: 'sealed-1',
        },
        { type: 'reasoning.encrypted', format: 'anthropic-claude-v1', index: 1, length: 0, data: 'sealed-2' },
      ],
      tool_calls: [
        { id: 'call_1', type: 'function', function: { name: 'weather', arguments: '{"city":"Rome"}' } },
        { id: 'call_2', type: 'function', function: { name: 'weather', arguments: '{"city":"Oslo"}' } },
      ],
    },
    { role: 'tool', tool_call_id: 'call_1', content: 'Sun' },
    {
      role: 'tool',
      tool_call_id: 'call_2',
      content: [{ type: 'text', text: 'Rain', cache_control: { type: 'ephemeral', ttl: '1h' } }],
    },
    { role: 'assistant', content: 'Sun and rain.', refusal: 'No more.' },
    { role: 'user', content: 'Thanks, and now?' },
  ],
  max_tokens: 5000,
  max_completion_tokens: 4000,
  temperature: 0.5,
  top_p: 0.96,
  stop: ['END', 'STOP'],
  seed: 5,
  n: 1,
  frequency_penalty: 0,
  presence_penalty: 0,
  logit_bias: {},
  logprobs: false,
  top_logprobs: 0,
  modalities: ['text'],
  tools: [
    {
      type: 'function',
      function: { name: 'weather', description: 'Says the weather', parameters: schema, strict: true },
      cache_control,
    },
    { type: 'function', function: { name: 'time' } },
  ],
  tool_choice: { type: 'function', function: { name: 'weather' } },
  parallel_tool_calls: false,
  response_format: {
    type: 'json_schema',
    json_schema: { name: 'plan', description: 'A plan', schema, strict: true },
  },
  reasoning_effort: 'low',
  stream: true,
  stream_options: { include_usage: true },
  user: 'user-1',
  safety_identifier: 'user-2',
  prompt_cache_key: 'key-1',
  service_tier: 'default',
  store: false,
  metadata: { team: 'search' },
  verbosity: 'low',
}

const MESSAGE_REQUEST = {
  model: 'chat',
  max_tokens: 4000,
  system: [{ type: 'text', text: 'Be brief.', cache_control }],
  messages: [
    {
      role: 'user',
      content: [
        { type: 'text', text: 'Look at this.', cache_control },
        { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PNG } },
        { type: 'image', source: { type: 'url', url: 'https://a.test/b.png' } },
        {
          type: 'document',
          source: { type: 'base64', media_type: 'application/pdf', data: 'QQ==' },
          title: 'Plan',
          context: 'Of last year',
          citations: { enabled: false },
        },
        { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'A note' } },
        { type: 'document', source: { type: 'content', content: [{ type: 'text', text: 'A part' }] } },
        {
          type: 'search_result',
          source: 'https://a.test',
          title: 'Found',
          content: [{ type: 'text', text: 'A page' }],
        },
      ],
    },
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: 'The user wants it.', signature: 'unsigned:openai-style-line' },
        { type: 'redacted_thinking', data: 'sealed-2' },
        { type: 'text', text: 'I look.' },
        { type: 'tool_use', id: 'toolu_1', name: 'weather', input: { city: 'Rome' } },
        { type: 'tool_use', id: 'toolu_2', name: 'weather', input: { city: 'Oslo' } },
      ],
    },
    {
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: 'toolu_1', content: 'Sun', is_error: true },
        {
          type: 'tool_result',
          tool_use_id: 'toolu_2',
          content: [
            { type: 'text', text: 'Rain' },
            { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PNG } },
          ],
        },
        { type: 'text', text: 'Thanks, and now?' },
      ],
    },
  ],
  temperature: 0.5,
  top_p: 0.9,
  stop_sequences: ['END', 'STOP'],
  tools: [
    {
      type: 'custom',
      name: 'weather',
      description: 'Says the weather',
      input_schema: schema,
      strict: true,
      cache_control,
    },
    { name: 'time', input_schema: { type: 'object' } },
  ],
  tool_choice: { type: 'tool', name: 'weather', disable_parallel_tool_use: true },
  thinking: { type: 'enabled', budget_tokens: 2000 },
  output_config: { effort: 'low', format: { type: 'json_schema', schema } },
  metadata: { user_id: 'user-1' },
  service_tier: 'standard_only',
  stream: true,
}

const RESPONSE_REQUEST = {
  model: 'chat',
  instructions: 'Be brief.',
  input: [
    { role: 'developer', content: 'Be polite.' },
    {
      type: 'message',
      role: 'user',
      content: [
        { type: 'input_text', text: 'Look at this.' },
        { type: 'input_image', image_url: `data:image/png;base64,${PNG}`, detail: 'low' },
        { type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,QQ==' },
      ],
    },
    {
      type: 'reasoning',
      id: 'rs_resp_1',
      summary: [{ type: 'summary_text', text: 'The user wants it.' }],
      content: [{ type: 'reasoning_text', text: 'The user wants it.' }],
    },
    {
      type: 'message',
      id: 'msg_1',
      role: 'assistant',
      status: 'completed',
      content: [
        { type: 'output_text', text: 'I look.', annotations: [] },
        { type: 'refusal', refusal: 'I will not say more.' },
      ],
    },
    {
      type: 'function_call',
      id: 'fc_1',
      call_id: 'call_1',
      name: 'weather',
      arguments: '{"city":"Rome"}',
      status: 'completed',
    },
    {
      type: 'function_call',
      call_id: 'call_2',
      namespace: 'geo',
      name: 'find',
      arguments: '{"city":"Oslo"}',
    },
    { type: 'function_call_output', call_id: 'call_1', output: 'Sun' },
    {
      type: 'function_call_output',
      call_id: 'call_2',
      output: [
        { type: 'input_text', text: 'Rain' },
        { type: 'input_image', image_url: `data:image/png;base64,${PNG}`, detail: 'auto' },
      ],
    },
    { role: 'user', content: 'Thanks, and now?' },
  ],
  max_output_tokens: 4000,
  temperature: 0.5,
  top_p: 0.9,
  top_logprobs: 0,
  tools: [
    { type: 'function', name: 'weather', description: 'Says the weather', parameters: schema, strict: true },
    {
      type: 'namespace',
      name: 'geo',
      description: 'About places',
      tools: [{ type: 'function', name: 'find', description: 'Finds a place', parameters: schema }],
    },
  ],
  tool_choice: { type: 'function', name: 'weather' },
  parallel_tool_calls: true,
  text: {
    format: { type: 'json_schema', name: 'plan', description: 'A plan', schema, strict: true },
    verbosity: 'low',
  },
  reasoning: { effort: 'low', summary: 'auto' },
  include: ['reasoning.encrypted_content'],
  max_tool_calls: 5,
  stream: true,
  store: false,
  background: false,
  truncation: 'disabled',
  user: 'user-1',
  safety_identifier: 'user-2',
  prompt_cache_key: 'key-1',
  service_tier: 'default',
  metadata: { team: 'search' },
}

export const REQUESTS: readonly {
  readonly operation: Operation
  readonly request: Record<string, unknown>
}[] = [
  { operation: chatCompletions, request: CHAT_REQUEST },
  { operation: messages, request: MESSAGE_REQUEST },
  { operation: responses, request: RESPONSE_REQUEST },
]

const RERANK_REQUEST = {
  model: 'rerank',
  query: 'green apple',
  documents: ['a red apple', { text: 'a green apple' }],
  top_n: 2,
  stream: false,
  return_documents: true,
  rank_fields: ['text'],
  max_tokens_per_doc: 512,
  max_chunks_per_doc: 5,
  truncation: true,
  instruction: 'Find the apple.',
  user: 'user-1',
}

const VIDEO_REQUEST = {
  model: 'video',
  prompt: 'a cat that runs',
  seconds: '8',
  size: '1280x720',
  input_reference: { image_url: 'https://a.test/b.png' },
  user: 'user-1',
}

const TASK_REQUEST = {
  model: 'video',
  content: [
    { type: 'text', text: 'a cat that runs' },
    { type: 'image_url', image_url: { url: 'https://a.test/b.png' }, role: 'reference_image' },
    { type: 'video_url', video_url: { url: 'https://a.test/b.mp4' }, role: 'reference_video' },
    { type: 'audio_url', audio_url: { url: 'https://a.test/b.mp3' }, role: 'reference_audio' },
    { type: 'draft_task', draft_task: { id: 'cgt-1' } },
  ],
  resolution: '720p',
  ratio: '16:9',
  duration: 5,
  frames: 121,
  framespersecond: 24,
  seed: 7,
  camera_fixed: false,
  watermark: false,
  generate_audio: true,
  draft: false,
  service_tier: 'default',
  execution_expires_after: 3600,
  callback_url: 'https://a.test/done',
  return_last_frame: false,
  safety_identifier: 'user-2',
}

/** Requests for other things than texts, with all members that the gateway knows, and those that must be there. */
export const OTHER_REQUESTS: readonly {
  readonly operation: Operation
  readonly request: Record<string, unknown>
  readonly required: RegExp
}[] = [
  {
    operation: rerank,
    request: RERANK_REQUEST,
    required: /^(?:model|query|documents(?:\[\d\])?|rank_fields\[\d\])$/,
  },
  { operation: videos, request: VIDEO_REQUEST, required: /^(?:model|prompt|input_reference\.image_url)$/ },
  {
    operation: videoTasks,
    request: TASK_REQUEST,
    required: /^(?:model|content(?:\[\d\](?:\.(?:type|text|\w+_url(?:\.url)?|draft_task(?:\.id)?))?)?)$/,
  },
]

const FREE_FORM: ReadonlySet<unknown> = new Set(['parameters', 'schema', 'input_schema', 'logit_bias'])

/** Whether a member holds what the caller likes: a schema, labels, or the input of a tool. */
export function isFreeForm(path: Path): boolean {
  const last = path.at(-1)
  return FREE_FORM.has(last) || (last === 'input' && path.length > 1)
}
