/** Answers of lines that have all members which callers of other protocols get. No number in them is 0, and no text empty. */

const PAGE = { url: 'https://a.test', title: 'A page' }

const chatUsage = {
  prompt_tokens: 40,
  completion_tokens: 30,
  total_tokens: 70,
  prompt_tokens_details: { cached_tokens: 10, cache_write_tokens: 5 },
  completion_tokens_details: { reasoning_tokens: 6 },
}

const chatHead = {
  id: 'chatcmpl-1',
  created: 1_700_000_000,
  model: 'upstream-model',
  service_tier: 'default',
}

const CHAT_ANSWER = {
  ...chatHead,
  object: 'chat.completion',
  choices: [
    {
      index: 0,
      message: {
        role: 'assistant',
        content: 'Sun in Rome.',
        refusal: 'I will not say more.',
        reasoning_content: 'They want it.',
        reasoning_details: [
          {
            type: 'reasoning.text',
            format: 'anthropic-claude-v1',
            index: 0,
            length: 13,
            signature: 'sealed-1',
          },
          {
            type: 'reasoning.encrypted',
            format: 'anthropic-claude-v1',
            index: 1,
            length: 0,
            data: 'sealed-2',
          },
        ],
        annotations: [{ type: 'url_citation', url_citation: { ...PAGE, start_index: 4, end_index: 11 } }],
        tool_calls: [
          {
            id: 'call_1',
            type: 'function',
            function: { name: 'weather', arguments: '{"city":"Rome"}' },
            extra_content: { google: { thought_signature: 'sealed-3' } },
          },
          { id: 'call_2', type: 'function', function: { name: 'weather', arguments: '{"city":"Oslo"}' } },
        ],
      },
      finish_reason: 'tool_calls',
    },
  ],
  usage: chatUsage,
}

const chunk = (delta: object, finish_reason: string | null = null) => ({
  ...chatHead,
  object: 'chat.completion.chunk',
  choices: [{ index: 0, delta, finish_reason }],
})

const { message: chatMessage } = CHAT_ANSWER.choices[0] as (typeof CHAT_ANSWER.choices)[number]

const CHAT_EVENTS = [
  chunk({ role: 'assistant', content: 'Sun' }),
  chunk({ reasoning_content: 'They want' }),
  chunk({ reasoning_content: ' it.' }),
  chunk({ reasoning_details: [chatMessage.reasoning_details[0]] }),
  chunk({ reasoning_details: [chatMessage.reasoning_details[1]] }),
  chunk({ content: ' in' }),
  chunk({ content: ' Rome.' }),
  chunk({ annotations: chatMessage.annotations }),
  chunk({ refusal: 'I will not say more.' }),
  chunk({
    tool_calls: [
      {
        index: 0,
        id: 'call_1',
        type: 'function',
        function: { name: 'weather', arguments: '{"city":' },
        extra_content: { google: { thought_signature: 'sealed-3' } },
      },
    ],
  }),
  chunk({ tool_calls: [{ index: 0, function: { arguments: '"Rome"}' } }] }),
  chunk({
    tool_calls: [
      {
        index: 1,
        id: 'call_2',
        type: 'function',
        function: { name: 'weather', arguments: '{"city":"Oslo"}' },
      },
    ],
  }),
  chunk({}, 'tool_calls'),
  { ...chatHead, object: 'chat.completion.chunk', choices: [], usage: chatUsage },
]

const messageUsage = {
  input_tokens: 25,
  cache_creation_input_tokens: 5,
  cache_read_input_tokens: 10,
  cache_creation: { ephemeral_5m_input_tokens: 3, ephemeral_1h_input_tokens: 2 },
  output_tokens: 30,
  output_tokens_details: { thinking_tokens: 6 },
  service_tier: 'standard',
}

const citation = {
  type: 'web_search_result_location',
  ...PAGE,
  encrypted_index: 'sealed-3',
  cited_text: 'Sun',
}

const search = { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'weather' } }
const found = {
  type: 'web_search_tool_result',
  tool_use_id: 'srvtoolu_1',
  content: [{ type: 'web_search_result', ...PAGE, encrypted_content: 'sealed-4', page_age: '1 day' }],
}

const MESSAGE_ANSWER = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'upstream-model',
  content: [
    { type: 'thinking', thinking: 'They want it.', signature: 'sealed-1' },
    { type: 'redacted_thinking', data: 'sealed-2' },
    search,
    found,
    { type: 'text', text: 'Sun in Rome.', citations: [citation] },
    { type: 'tool_use', id: 'toolu_1', name: 'weather', input: { city: 'Rome' } },
    { type: 'tool_use', id: 'toolu_2', name: 'weather', input: { city: 'Oslo' } },
  ],
  stop_reason: 'tool_use',
  stop_sequence: null,
  usage: messageUsage,
}

const delta = (index: number, type: string, members: object) => ({
  type: 'content_block_delta',
  index,
  delta: { type, ...members },
})
const start = (index: number, content_block: object) => ({
  type: 'content_block_start',
  index,
  content_block,
})
const stop = (index: number) => ({ type: 'content_block_stop', index })

const MESSAGE_EVENTS = [
  {
    type: 'message_start',
    message: {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: 'upstream-model',
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { ...messageUsage, output_tokens: 1 },
    },
  },
  start(0, { type: 'thinking', thinking: 'They', signature: 'sealed' }),
  delta(0, 'thinking_delta', { thinking: ' want it.' }),
  delta(0, 'signature_delta', { signature: 'sealed-1' }),
  stop(0),
  start(1, { type: 'redacted_thinking', data: 'sealed-2' }),
  stop(1),
  start(2, { ...search, input: {} }),
  delta(2, 'input_json_delta', { partial_json: '{"query":"weather"}' }),
  stop(2),
  start(3, found),
  stop(3),
  start(4, { type: 'text', text: 'Sun' }),
  delta(4, 'text_delta', { text: ' in' }),
  delta(4, 'text_delta', { text: ' Rome.' }),
  delta(4, 'citations_delta', { citation }),
  stop(4),
  start(5, { type: 'tool_use', id: 'toolu_1', name: 'weather', input: {} }),
  delta(5, 'input_json_delta', { partial_json: '{"city":' }),
  delta(5, 'input_json_delta', { partial_json: '"Rome"}' }),
  stop(5),
  start(6, { type: 'tool_use', id: 'toolu_2', name: 'weather', input: { city: 'Oslo' } }),
  stop(6),
  { type: 'message_delta', delta: { stop_reason: 'tool_use', stop_sequence: null }, usage: messageUsage },
  { type: 'message_stop' },
]

const responseMessage = {
  id: 'msg_1',
  type: 'message',
  status: 'completed',
  role: 'assistant',
  content: [
    {
      type: 'output_text',
      text: 'Sun in Rome.',
      annotations: [{ type: 'url_citation', ...PAGE, start_index: 4, end_index: 11 }],
    },
    { type: 'refusal', refusal: 'I will not say more.' },
  ],
}
const responseReasoning = {
  id: 'rs_1',
  type: 'reasoning',
  summary: [{ type: 'summary_text', text: 'They want it.' }],
  encrypted_content: 'sealed-1',
}
const responseCall = {
  id: 'fc_1',
  type: 'function_call',
  status: 'completed',
  call_id: 'call_1',
  name: 'weather',
  arguments: '{"city":"Rome"}',
}

const RESPONSE_ANSWER = {
  id: 'resp_1',
  object: 'response',
  created_at: 1_700_000_000,
  status: 'completed',
  error: null,
  incomplete_details: null,
  model: 'upstream-model',
  output: [responseReasoning, responseMessage, responseCall],
  parallel_tool_calls: true,
  temperature: 1,
  tool_choice: 'auto',
  tools: [],
  usage: {
    input_tokens: 40,
    input_tokens_details: { cached_tokens: 10 },
    output_tokens: 30,
    output_tokens_details: { reasoning_tokens: 6 },
    total_tokens: 70,
  },
}

const begun = { ...RESPONSE_ANSWER, status: 'in_progress', output: [], usage: null }
const text = { item_id: 'msg_1', output_index: 1, content_index: 0 }
const args = { item_id: 'fc_1', output_index: 2 }

const RESPONSE_EVENTS = [
  { type: 'response.created', response: begun },
  { type: 'response.in_progress', response: begun },
  {
    type: 'response.output_item.added',
    output_index: 0,
    item: { id: 'rs_1', type: 'reasoning', summary: [] },
  },
  {
    type: 'response.reasoning_summary_text.delta',
    item_id: 'rs_1',
    output_index: 0,
    summary_index: 0,
    delta: 'They want it.',
  },
  { type: 'response.output_item.done', output_index: 0, item: responseReasoning },
  {
    type: 'response.output_item.added',
    output_index: 1,
    item: { ...responseMessage, status: 'in_progress', content: [] },
  },
  { type: 'response.content_part.added', ...text, part: { type: 'output_text', text: '', annotations: [] } },
  { type: 'response.output_text.delta', ...text, delta: 'Sun in Rome.' },
  { type: 'response.output_text.done', ...text, text: 'Sun in Rome.' },
  { type: 'response.content_part.done', ...text, part: responseMessage.content[0] },
  { type: 'response.output_item.done', output_index: 1, item: responseMessage },
  { type: 'response.output_item.added', output_index: 2, item: { ...responseCall, arguments: '' } },
  { type: 'response.function_call_arguments.delta', ...args, delta: '{"city":"Rome"}' },
  { type: 'response.function_call_arguments.done', ...args, arguments: '{"city":"Rome"}' },
  { type: 'response.output_item.done', output_index: 2, item: responseCall },
  { type: 'response.completed', response: RESPONSE_ANSWER },
].map((event, sequence_number) => ({ ...event, sequence_number }))

interface LineAnswers {
  readonly plain: Record<string, unknown>
  readonly events: readonly unknown[]
  /** Returns a stream in two pieces, so that its first output goes out before the rest has come. */
  piecesOf(events: readonly unknown[]): readonly string[]
}

const piecesOf =
  (isTyped: boolean, end: string) =>
  (events: readonly unknown[]): readonly string[] => {
    const type = (event: unknown): unknown => (event as { type?: unknown } | null)?.type
    const texts = events.map(
      (event) => `${isTyped ? `event: ${type(event)}\n` : ''}data: ${JSON.stringify(event)}\n\n`,
    )
    return [texts.slice(0, 3).join(''), texts.slice(3).join('') + end]
  }

/** Whole answers of lines and the events of streams, by the names of the operations. */
export const ANSWERS: Readonly<Record<string, LineAnswers>> = {
  'chat.completions': {
    plain: CHAT_ANSWER,
    events: CHAT_EVENTS,
    piecesOf: piecesOf(false, 'data: [DONE]\n\n'),
  },
  messages: { plain: MESSAGE_ANSWER, events: MESSAGE_EVENTS, piecesOf: piecesOf(true, '') },
  responses: { plain: RESPONSE_ANSWER, events: RESPONSE_EVENTS, piecesOf: piecesOf(true, '') },
}
