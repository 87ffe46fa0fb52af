import type { TwinAnswer, TwinRequest } from './twin-server.ts'

/** The words that every twin says, and the tokens that it counts. */
const WORDS = ['Hel', 'lo']
const USAGE = { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 }

/** How the chat answers of a provider differ from OpenAI's. */
export interface ChatQuirks {
  /** Whether usage comes in the last chunk of every stream, whoever asks. */
  readonly usageUnasked?: boolean
  /** The data before the first chunk. */
  readonly before?: readonly string[]
  /** Members of every answer and chunk. */
  readonly extra?: Readonly<Record<string, unknown>>
}

/** A chat completion, plain or streamed, as the request asks. */
export function chatCompletion({ json }: TwinRequest, quirks: ChatQuirks = {}): TwinAnswer {
  const { extra = {}, before = [], usageUnasked = false } = quirks
  const head = { id: 'chatcmpl-1', created: 1, model: json.model, ...extra }
  if (json.stream !== true)
    return {
      body: {
        ...head,
        object: 'chat.completion',
        choices: [
          { index: 0, message: { role: 'assistant', content: WORDS.join('') }, finish_reason: 'stop' },
        ],
        usage: USAGE,
      },
    }
  const chunk = (choices: readonly object[], more: object = {}): string =>
    `data: ${JSON.stringify({ ...head, object: 'chat.completion.chunk', choices, ...more })}\n\n`
  const piece = (delta: object, finish: string | null, more: object = {}): string =>
    chunk([{ index: 0, delta, finish_reason: finish }], more)
  const asks = (json.stream_options as { include_usage?: boolean } | undefined)?.include_usage === true
  return {
    pieces: [
      ...before,
      piece({ role: 'assistant', content: '' }, null),
      ...WORDS.map((content) => piece({ content }, null)),
      piece({}, 'stop', usageUnasked ? { usage: USAGE } : {}),
      ...(asks && !usageUnasked ? [chunk([], { usage: USAGE })] : []),
      'data: [DONE]\n\n',
    ],
  }
}

/** A list of embeddings. */
export function embeddingList(
  { json }: TwinRequest,
  usage: object = { prompt_tokens: 7, total_tokens: 7 },
): TwinAnswer {
  const data = [{ object: 'embedding', index: 0, embedding: [0.1, 0.2] }]
  return { body: { object: 'list', data, model: json.model, usage } }
}

/** The events of a message, each as its type and its JSON. */
export function messageEventsOf(model: unknown): (readonly [type: string, event: object])[] {
  const message = {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model,
    content: [],
    stop_reason: null,
    stop_sequence: null,
  }
  const events: (readonly [string, object])[] = [
    ['message_start', { message: { ...message, usage: { input_tokens: 7, output_tokens: 1 } } }],
    ['content_block_start', { index: 0, content_block: { type: 'text', text: '' } }],
    ...WORDS.map(
      (text) => ['content_block_delta', { index: 0, delta: { type: 'text_delta', text } }] as const,
    ),
    ['content_block_stop', { index: 0 }],
    [
      'message_delta',
      { delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 3 } },
    ],
    ['message_stop', {}],
  ]
  return events.map(([type, event]) => [type, { type, ...event }] as const)
}

/** A message, plain or streamed. */
export function message(model: unknown, streams: boolean): TwinAnswer {
  if (streams)
    return {
      pieces: messageEventsOf(model).map(
        ([type, event]) => `event: ${type}\ndata: ${JSON.stringify(event)}\n\n`,
      ),
    }
  return {
    body: {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model,
      content: [{ type: 'text', text: WORDS.join('') }],
      stop_reason: 'end_turn',
      stop_sequence: null,
      usage: { input_tokens: 7, output_tokens: 3 },
    },
  }
}
