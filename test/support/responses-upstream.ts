import type { ServerResponse } from 'node:http'
import {
  answerJson,
  type ReceivedRequest,
  type ScriptedUpstream,
  startUpstream,
  stream,
} from './scripted-upstream.ts'

/** A response as an upstream gives it. */
export interface ResponseBody {
  readonly id: string
  readonly [member: string]: unknown
}

export const USAGE = {
  input_tokens: 7,
  input_tokens_details: { cached_tokens: 2 },
  output_tokens: 3,
  output_tokens_details: { reasoning_tokens: 1 },
  total_tokens: 10,
}

/** A message of the assistant's that says `text`. */
export const messageItem = (text: string, id = 'msg_1') => ({
  id,
  type: 'message',
  status: 'completed',
  role: 'assistant',
  content: [{ type: 'output_text', text, annotations: [], logprobs: [] }],
})

/** A whole response with these items. */
export function responseBody(
  output: readonly object[],
  extra: Readonly<Record<string, unknown>> = {},
): ResponseBody {
  return {
    id: 'resp_1',
    object: 'response',
    created_at: 1,
    status: 'completed',
    background: false,
    error: null,
    incomplete_details: null,
    instructions: null,
    max_output_tokens: null,
    model: 'upstream-model',
    output,
    parallel_tool_calls: true,
    previous_response_id: null,
    reasoning: { effort: null, summary: null },
    store: true,
    temperature: 1,
    text: { format: { type: 'text' } },
    tool_choice: 'auto',
    tools: [],
    top_p: 1,
    truncation: 'disabled',
    // Reasoning without a word would be an answer.
    usage: output.length > 0 ? USAGE : { ...USAGE, output_tokens_details: { reasoning_tokens: 0 } },
    user: null,
    metadata: {},
    ...extra,
  }
}

/** Returns the id of the response among what an answer leaves at its line. */
export const responseIn = (kept: readonly { kind: string; id: string }[] | undefined) =>
  kept?.find(({ kind }) => kind === 'response')?.id

/** Frames events, numbering them from 0. */
export function numbered(
  events: readonly ({ type: string } & Readonly<Record<string, unknown>>)[],
): string[] {
  return events.map(
    (event, number) =>
      `event: ${event.type}\ndata: ${JSON.stringify({ sequence_number: number, ...event })}\n\n`,
  )
}

/** All events of a stream that says `words` in one message. */
export function responseEvents(
  words: readonly string[],
  extra: Readonly<Record<string, unknown>> = {},
): string[] {
  const whole = responseBody([messageItem(words.join(''))], extra)
  const begun = { ...whole, status: 'in_progress', output: [], usage: null }
  const place = { item_id: 'msg_1', output_index: 0, content_index: 0 }
  const emptyPart = { type: 'output_text', text: '', annotations: [], logprobs: [] }
  const item = messageItem(words.join(''))
  return numbered([
    { type: 'response.created', response: begun },
    { type: 'response.in_progress', response: begun },
    {
      type: 'response.output_item.added',
      output_index: 0,
      item: { ...item, status: 'in_progress', content: [] },
    },
    { type: 'response.content_part.added', ...place, part: emptyPart },
    ...words.map((delta) => ({
      type: 'response.output_text.delta',
      ...place,
      delta,
      logprobs: [],
      obfuscation: 'xyz',
    })),
    { type: 'response.output_text.done', ...place, text: words.join(''), logprobs: [] },
    { type: 'response.content_part.done', ...place, part: item.content[0] },
    { type: 'response.output_item.done', output_index: 0, item },
    { type: 'response.completed', response: whole },
  ])
}

/** Where the events of {@link responseEvents} before the first word end. */
export const EVENTS_BEFORE_WORDS = 4

/** An upstream that keeps the responses it makes, as the real API does. */
export interface KeepingUpstream extends ScriptedUpstream {
  /** The responses that it keeps, by id. */
  readonly kept: Map<string, ResponseBody>
}

/** Starts one; its responses say its name, and `idOf` names them. */
export async function startKeepingUpstream(
  name: string,
  idOf: (count: number) => string = (count) => `resp_${name}_${count}`,
): Promise<KeepingUpstream> {
  const kept = new Map<string, ResponseBody>()
  let made = 0
  const upstream = await startUpstream((res, request) => {
    if (request.method !== 'POST') return askKept(kept, res, request)
    const { previous_response_id: previous = null, stream: streams, store = true } = request.json
    if (typeof previous === 'string' && !kept.has(previous)) return previousNotFound(res, previous)
    const extra = { id: idOf(++made), previous_response_id: previous, store }
    if (store === true) kept.set(extra.id, responseBody([messageItem(`I am ${name}`)], extra))
    if (streams) return stream(res, responseEvents(['I ', 'am ', name], extra))
    answerJson(res, 200, responseBody([messageItem(`I am ${name}`)], extra))
  })
  return Object.assign(upstream, { kept })
}

function previousNotFound(res: ServerResponse, id: string): void {
  const error = {
    message: `Previous response with id '${id}' not found.`,
    type: 'invalid_request_error',
    param: 'previous_response_id',
    code: 'previous_response_not_found',
  }
  answerJson(res, 400, { error })
}

function askKept(
  kept: Map<string, ResponseBody>,
  res: ServerResponse,
  { method, path }: ReceivedRequest,
): void {
  const [, id = '', part] = /^\/v1\/responses\/([^/?]+)(?:\/(\w+))?/.exec(path) ?? []
  const response = kept.get(id)
  if (!response) {
    const message = `Response with id '${id}' not found.`
    answerJson(res, 404, { error: { message, type: 'invalid_request_error', param: null, code: null } })
  } else if (method === 'DELETE') {
    kept.delete(id)
    answerJson(res, 200, { id, object: 'response.deleted', deleted: true })
  } else if (part === 'input_items') {
    const item = {
      id: 'msg_in',
      type: 'message',
      role: 'user',
      content: [{ type: 'input_text', text: 'hi' }],
    }
    answerJson(res, 200, {
      object: 'list',
      data: [item],
      first_id: 'msg_in',
      last_id: 'msg_in',
      has_more: false,
    })
  } else answerJson(res, 200, response)
}
