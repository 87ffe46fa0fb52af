/**
 * The requests every target is sent, and the answers the scripted upstream gives to them. The way the upstream is to
 * pace a stream travels in the prompt, the one part of a request that every gateway passes on untouched.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The key that the load generators send. A target that authenticates seeds it. */
export const BENCH_KEY = 'sk-bench-0123456789abcdef0123456789abcdef'

/** The model that is asked for; a target maps it to itself, so that answers keep their length. */
export const BENCH_MODEL = 'chat-small'

/** Chunks with a choice in one stream, the finish chunk included; the usage chunk and `[DONE]` come on top. */
export const STREAM_CHUNKS = 200

export const PATH = '/v1/chat/completions'

/** Where a line that speaks Anthropic's protocol is asked for the same, and a target by callers who do. */
export const MESSAGES_PATH = '/v1/messages'

/** The upstream reports here how many chunks it has written so far. */
export const WRITTEN_PATH = '/written'

/**
 * - `burst`: one write per chunk, with a turn of the event loop between two writes
 * - `coalesced`: the whole stream in a few large writes
 * - `paced`: one chunk every few milliseconds, as a model produces them
 * - `hold`: one chunk, then nothing until the caller leaves
 */
export type Pace = 'burst' | 'coalesced' | 'paced' | 'hold'

/** `long` is a conversation of 330 KB, as an agent sends it in each turn. */
export type Prompt = 'short' | 'long'

const PACE_MARK = /\[pace:(burst|coalesced|paced|hold)\]/

/** Targets whose callers speak Anthropic's protocol; those of all others speak OpenAI's. */
const ASKED_FOR_MESSAGES: ReadonlySet<string> = new Set(['whole-translated-messages'])

/** Where a target is asked. */
export function pathTo(target: string): string {
  return ASKED_FOR_MESSAGES.has(target) ? MESSAGES_PATH : PATH
}

/** Returns the request to a target; with a pace it is a streamed request. */
export function requestTo(target: string, pace: Pace | null, prompt: Prompt = 'short'): string {
  return ASKED_FOR_MESSAGES.has(target) ? messageRequest(pace) : chatRequest(pace, prompt)
}

/** Returns the headers of a request to a target. Portkey is told in them where its upstream is. */
export function headersTo(target: {
  readonly name: string
  readonly upstream?: string | undefined
}): Readonly<Record<string, string>> {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${BENCH_KEY}` }
  if (target.name !== PORTKEY) return headers
  return { ...headers, 'x-portkey-provider': 'openai', 'x-portkey-custom-host': `${target.upstream}/v1` }
}

/** The target for which requests have headers of their own. */
export const PORTKEY = 'portkey'

/** Whether a target can be sent such requests. Portkey 1.15.2 fails on streams with Node 24: it changes immutable headers. */
export function serves(target: string, pace: Pace | null): boolean {
  return target !== PORTKEY || pace === null
}

const SYSTEM = 'You are a helpful assistant. Answer briefly, and in the language of the question.'
const LIMITS = { max_tokens: 256, temperature: 0.2 }

function question(pace: Pace | null): object {
  const mark = pace === null ? '' : ` [pace:${pace}]`
  return { role: 'user', content: `Name three rivers of Europe and the seas they flow into.${mark}` }
}

/** The body of a chat request; with a pace it is a streamed one that asks for usage. */
export function chatRequest(pace: Pace | null, prompt: Prompt = 'short'): string {
  const streamed = pace === null ? {} : { stream: true, stream_options: { include_usage: true } }
  const turns = prompt === 'long' ? conversation() : []
  const messages = [{ role: 'system', content: SYSTEM }, ...turns, question(pace)]
  return JSON.stringify({ model: BENCH_MODEL, messages, ...LIMITS, ...streamed })
}

const LONG_PROMPT_BYTES = 330_000

/** Turns of texts and programs in several languages, until they are as long as a long prompt. */
function conversation(): object[] {
  const texts = ['english', 'typescript', 'json', 'german'].map((name) =>
    readFileSync(join(import.meta.dirname, 'corpus', `${name}.txt`), 'utf8'),
  )
  const turns: object[] = []
  for (let bytes = 0; bytes < LONG_PROMPT_BYTES; ) {
    const content = texts[turns.length % texts.length] as string
    turns.push({ role: turns.length % 2 === 0 ? 'user' : 'assistant', content })
    bytes += Buffer.byteLength(JSON.stringify(content))
  }
  return turns
}

/** The same as a message request. */
function messageRequest(pace: Pace | null): string {
  const streamed = pace === null ? {} : { stream: true }
  return JSON.stringify({
    model: BENCH_MODEL,
    system: SYSTEM,
    messages: [question(pace)],
    ...LIMITS,
    ...streamed,
  })
}

export function paceOf(requestBody: string): Pace {
  return (PACE_MARK.exec(requestBody)?.[1] as Pace | undefined) ?? 'burst'
}

const ID = 'chatcmpl-bench0123456789abcdefghij'
const CREATED = 1_767_225_600
const USAGE = { prompt_tokens: 44, completion_tokens: 198, total_tokens: 242 }

const PLAIN_TEXT =
  'The Rhine flows into the North Sea, the Danube into the Black Sea and the Rhone into the Mediterranean ' +
  'Sea. All three rise in or near the Alps.'

/** A plain chat answer of about 600 bytes. */
export const PLAIN_ANSWER = JSON.stringify({
  id: ID,
  object: 'chat.completion',
  created: CREATED,
  model: BENCH_MODEL,
  choices: [
    {
      index: 0,
      message: {
        role: 'assistant',
        content: PLAIN_TEXT,
        refusal: null,
        annotations: [],
      },
      logprobs: null,
      finish_reason: 'stop',
    },
  ],
  usage: {
    ...USAGE,
    prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: 0, audio_tokens: 0 },
  },
  service_tier: 'default',
  system_fingerprint: 'fp_bench',
})

/** The events of a stream, each ready for the wire: `STREAM_CHUNKS` chunks, then usage if asked for, then `[DONE]`. */
export function streamEvents(includeUsage: boolean): string[] {
  const chunk = (choices: unknown[], usage: unknown = null) =>
    `data: ${JSON.stringify({
      id: ID,
      object: 'chat.completion.chunk',
      created: CREATED,
      model: BENCH_MODEL,
      service_tier: 'default',
      system_fingerprint: 'fp_bench',
      choices,
      ...(includeUsage ? { usage } : {}),
    })}\n\n`
  const choice = (delta: unknown, finishReason: string | null = null) => [
    { index: 0, delta, logprobs: null, finish_reason: finishReason },
  ]
  const events = [chunk(choice({ role: 'assistant', content: '', refusal: null }))]
  for (let i = 1; i < STREAM_CHUNKS - 1; i++) events.push(chunk(choice({ content: ` word${i}` })))
  events.push(chunk(choice({}, 'stop')))
  if (includeUsage) events.push(chunk([], USAGE))
  events.push('data: [DONE]\n\n')
  return events
}

const MESSAGE = {
  id: 'msg_bench0123456789abcdefghij',
  type: 'message',
  role: 'assistant',
  model: BENCH_MODEL,
}
const MESSAGE_USAGE = { input_tokens: 44, cache_creation_input_tokens: 0, cache_read_input_tokens: 0 }

/** The same answer as a message. */
export const PLAIN_MESSAGE = JSON.stringify({
  ...MESSAGE,
  content: [{ type: 'text', text: PLAIN_TEXT }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { ...MESSAGE_USAGE, output_tokens: 198 },
})

/** The same stream as a message's, with as many deltas. */
export function messageStreamEvents(): string[] {
  const event = (type: string, members: object = {}) =>
    `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`
  const message = { ...MESSAGE, content: [], stop_reason: null, stop_sequence: null }
  const events = [
    event('message_start', { message: { ...message, usage: { ...MESSAGE_USAGE, output_tokens: 1 } } }),
    event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
  ]
  for (let i = 1; i < STREAM_CHUNKS - 1; i++)
    events.push(event('content_block_delta', { index: 0, delta: { type: 'text_delta', text: ` word${i}` } }))
  events.push(
    event('content_block_stop', { index: 0 }),
    event('message_delta', {
      delta: { stop_reason: 'end_turn', stop_sequence: null },
      usage: { output_tokens: 198 },
    }),
    event('message_stop'),
  )
  return events
}
