import { completionOf, messageOf } from '../../core/translate/support/streams.ts'
import { dataOf } from '../../support/exchange.ts'

/** The parts of an answer that a caller reads, whatever the protocol. */
export interface CallerView {
  readonly text: string
  readonly reasoning: string
  readonly refusal: string
  /** Name and arguments of each call. */
  readonly calls: readonly (readonly [name: string, input: unknown])[]
  readonly finish: string
}

// biome-ignore lint/suspicious/noExplicitAny: answers are read freely here
type Json = any

/** Reads a chat completion, whole or streamed. */
export function chatView(body: string, streamed: boolean): CallerView {
  const { message, finish_reason: finish } = streamed ? completionOf(body) : JSON.parse(body).choices[0]
  return {
    text: message.content ?? '',
    reasoning: message.reasoning_content ?? '',
    refusal: message.refusal ?? '',
    calls: (message.tool_calls ?? []).map(({ function: fn }: Json) => [fn.name, JSON.parse(fn.arguments)]),
    finish,
  }
}

/** Reads a message, whole or streamed. */
export function messageView(body: string, streamed: boolean): CallerView {
  const message = streamed ? messageOf(body) : JSON.parse(body)
  const joined = (type: string) =>
    message.content.map((block: Json) => (block.type === type ? block[type] : '')).join('')
  const declined = message.stop_reason === 'refusal'
  return {
    text: declined ? '' : joined('text'),
    reasoning: joined('thinking'),
    refusal: declined ? joined('text') : '',
    calls: message.content
      .filter(({ type }: Json) => type === 'tool_use')
      .map(({ name, input }: Json) => [name, input]),
    finish: message.stop_reason,
  }
}

/** Reads a response, whole or streamed. */
export function responseView(body: string, streamed: boolean): CallerView {
  const response: Json = streamed ? (dataOf(body).at(-1) as Json).response : JSON.parse(body)
  const parts = response.output.flatMap(({ content }: Json) => content ?? [])
  const joined = (type: string, member = 'text') =>
    parts.map((part: Json) => (part.type === type ? part[member] : '')).join('')
  return {
    text: joined('output_text'),
    reasoning: joined('reasoning_text'),
    refusal: joined('refusal', 'refusal'),
    calls: response.output
      .filter(({ type }: Json) => type === 'function_call')
      .map(({ name, arguments: args }: Json) => [name, JSON.parse(args)]),
    finish: response.incomplete_details?.reason ?? response.status,
  }
}
