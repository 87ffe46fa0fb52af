import type { ServerResponse } from 'node:http'
import type { TestContext } from 'node:test'
import {
  type ChatAnswer,
  type ErrorEnvelope,
  envelopeIn,
  isEnvelope,
  type MessageAnswer,
  type StreamedEvent,
} from './answer-bodies.ts'
import { chatBody, messageBody, startGateway, type TestGateway, type TestGatewayOptions } from './gateway.ts'
import { chatAnswer, chatEvents, messageAnswer, messageEvents, stream } from './scripted-upstream.ts'

/** How a call is made: the inbound protocol, and whether the answer is streamed. */
export interface Mode {
  readonly protocol: 'openai' | 'anthropic'
  readonly stream: boolean
}

export const OPENAI: Mode = { protocol: 'openai', stream: false }
export const OPENAI_STREAM: Mode = { protocol: 'openai', stream: true }
export const ANTHROPIC: Mode = { protocol: 'anthropic', stream: false }
export const ANTHROPIC_STREAM: Mode = { protocol: 'anthropic', stream: true }
export const MODES: readonly Mode[] = [OPENAI, OPENAI_STREAM, ANTHROPIC, ANTHROPIC_STREAM]
export const STREAMS: readonly Mode[] = [OPENAI_STREAM, ANTHROPIC_STREAM]

export const modeName = ({ protocol, stream: streams }: Mode): string =>
  `${protocol}, ${streams ? 'streamed' : 'plain'}`

/** One call as its caller saw it. */
export interface Exchange {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** The body as JSON; undefined when it is none. */
  readonly json: unknown
  /** The body as an error; fails when it is none. */
  envelope(): ErrorEnvelope
  /** The code of the error in the body; undefined when there is none. */
  readonly errorCode: string | undefined
  /** Whether the connection was cut before the regular end. */
  readonly broken: boolean
  readonly requestId: string
}

/** A gateway that is closed at the end of the test, however that ends. */
export async function gatewayFor(t: TestContext, options: TestGatewayOptions): Promise<TestGateway> {
  const gateway = await startGateway(options)
  t.after(() => gateway.close())
  return gateway
}

/** Makes a call and reads its answer to the end, or as far as it comes. */
export async function exchange(
  gateway: TestGateway,
  mode: Mode = OPENAI,
  extra: Record<string, unknown> = {},
  init: RequestInit = {},
): Promise<Exchange> {
  const body = { ...bodyOf(mode), ...extra }
  return readExchange(await gateway.post(pathOf(mode), body, init))
}

export const pathOf = ({ protocol }: Mode): string =>
  protocol === 'openai' ? '/v1/chat/completions' : '/v1/messages'

export const bodyOf = ({ protocol, stream: streams }: Mode): Record<string, unknown> =>
  protocol === 'openai'
    ? chatBody(streams ? { stream: true } : {})
    : messageBody(streams ? { stream: true } : {})

/** Reads a response to the end, or as far as it comes. */
export async function readExchange(response: Response): Promise<Exchange> {
  const chunks: Uint8Array[] = []
  let broken = false
  try {
    for await (const chunk of response.body ?? []) chunks.push(chunk as Uint8Array)
  } catch {
    broken = true
  }
  const text = Buffer.concat(chunks).toString()
  const json = parsed(text)
  return {
    status: response.status,
    headers: response.headers,
    text,
    json,
    envelope: () => envelopeIn(json),
    errorCode: isEnvelope(json) ? json.error.code : undefined,
    broken,
    requestId: response.headers.get('x-request-id') ?? '',
  }
}

/** A whole answer in the caller's protocol. */
export async function answer(res: ServerResponse, mode: Mode, text = 'Hello'): Promise<void> {
  if (mode.stream) await stream(res, eventsOf(mode, [text]))
  else if (mode.protocol === 'openai') chatAnswer(res, text)
  else messageAnswer(res, text)
}

/** All events of a stream that says `words`. */
export const eventsOf = ({ protocol }: Mode, words: readonly string[]): string[] =>
  protocol === 'openai' ? chatEvents(words) : messageEvents(words)

/** The text that an answer, or a stream, gave to the caller. */
export function saidTo({ protocol, stream: streams }: Mode, { text, json }: Exchange): string {
  if (!streams) {
    return protocol === 'openai'
      ? (json as ChatAnswer).choices[0].message.content
      : (json as MessageAnswer).content[0].text
  }
  const events = dataOf(text)
  return events
    .map((event) => (protocol === 'openai' ? event.choices?.[0]?.delta?.content : event.delta?.text) ?? '')
    .join('')
}

/** The JSON of each event of a stream, in their order; `[DONE]` is left out. */
export function dataOf(text: string): StreamedEvent[] {
  return [...text.matchAll(/^data: ?(.*)$/gm)]
    .map(([, data]) => data as string)
    .filter((data) => data !== '[DONE]')
    .map((data) => JSON.parse(data))
}

/** How often a needle stands in a text. */
export const occurrences = (text: string, needle: string): number => text.split(needle).length - 1

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
