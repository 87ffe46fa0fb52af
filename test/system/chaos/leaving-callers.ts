import type { ServerResponse } from 'node:http'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { numbered, responseBody } from '../../support/responses-upstream.ts'
import { chatChunk, messageEvent } from '../../support/scripted-upstream.ts'
import { until } from '../../support/until.ts'

/** The tokens that an upstream bills until it notices that nobody listens. A token of output costs ten of input. */
export interface Bill {
  input: number
  output: number
}

/** One piece of an answer: its event, and the tokens that it costs the upstream. */
type Piece = readonly [event: string, tokens: number]

export type Form = 'text' | 'arguments' | 'reasoning' | 'unseen' | 'audio' | 'image'
export type Api = 'chat' | 'messages' | 'responses'

export const PROMPT = 'Tell me everything about the town that you come from, and leave nothing out of it.'
const INPUT_TOKENS = 24
const PIECES = 40
/** Twenty tokens of speech a second, in samples of two bytes. */
const SOUND = Buffer.alloc(2400 * 5).toString('base64')
const WORD = ' river'

/** The time that a piece takes. */
const PACE_MS: Partial<Record<Form, number>> = { image: 40, audio: 10 }

const messagePiece = (index: number, delta: object): string =>
  messageEvent('content_block_delta', { index, delta })

const START: Record<Api, string[]> = {
  chat: [chatChunk({ role: 'assistant', content: '' })],
  messages: [
    messageEvent('message_start', {
      message: {
        id: 'msg_1',
        type: 'message',
        role: 'assistant',
        content: [],
        usage: { input_tokens: INPUT_TOKENS, output_tokens: 1 },
      },
    }),
  ],
  responses: numbered([
    { type: 'response.created', response: { ...responseBody([]), status: 'in_progress', usage: null } },
    { type: 'response.in_progress', response: { ...responseBody([]), status: 'in_progress', usage: null } },
  ]),
}

/** The pieces that an upstream streams of each form; none where its protocol does not have that. */
const STREAMED: Record<Api, Partial<Record<Form, () => Piece[]>>> = {
  chat: {
    text: () => repeat([chatChunk({ content: WORD }), 1]),
    arguments: () => [
      [
        chatChunk({
          tool_calls: [
            { index: 0, id: 'call_1', type: 'function', function: { name: 'tell', arguments: '' } },
          ],
        }),
        1,
      ],
      ...repeat([chatChunk({ tool_calls: [{ index: 0, function: { arguments: WORD } }] }), 1]),
    ],
    reasoning: () => repeat([chatChunk({ reasoning_content: WORD }), 1]),
    unseen: () => repeat([': thinking\n\n', 5]),
    audio: () => repeat([chatChunk({ audio: { id: 'audio_1', data: SOUND } }), 5]),
    image: () =>
      repeat([
        chatChunk({ images: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }] }),
        1290,
      ]).slice(0, 3),
  },
  messages: {
    text: () => [
      [messageEvent('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }), 0],
      ...repeat([messagePiece(0, { type: 'text_delta', text: WORD }), 1]),
    ],
    arguments: () => [
      [
        messageEvent('content_block_start', {
          index: 0,
          content_block: { type: 'tool_use', id: 't', name: 'tell', input: {} },
        }),
        1,
      ],
      ...repeat([messagePiece(0, { type: 'input_json_delta', partial_json: WORD }), 1]),
    ],
    reasoning: () => [
      [
        messageEvent('content_block_start', { index: 0, content_block: { type: 'thinking', thinking: '' } }),
        0,
      ],
      ...repeat([messagePiece(0, { type: 'thinking_delta', thinking: WORD }), 1]),
    ],
    unseen: () => repeat([messageEvent('ping'), 5]),
  },
  responses: {
    text: () => responsePieces('response.output_text.delta', WORD, 1),
    arguments: () => responsePieces('response.function_call_arguments.delta', WORD, 1),
    reasoning: () => responsePieces('response.reasoning_summary_text.delta', WORD, 1),
    unseen: () => repeat([': thinking\n\n', 5]),
    audio: () => responsePieces('response.audio.delta', SOUND, 5),
    image: () =>
      [0, 1, 2].map((index): Piece => {
        const event = {
          type: 'response.image_generation_call.partial_image',
          output_index: 0,
          partial_image_index: index,
          partial_image_b64: 'AAAA',
        }
        return [numbered([event])[0] as string, index === 0 ? 1156 : 100]
      }),
  },
}

function repeat(piece: Piece): Piece[] {
  return Array.from({ length: PIECES }, () => piece)
}

function responsePieces(type: string, delta: string, tokens: number): Piece[] {
  return repeat([numbered([{ type, output_index: 0, delta }])[0] as string, tokens])
}

/** How a caller leaves: before anything came, after some events, or when everything but the end has come. */
export type Moment = 'first byte' | 'first event' | 'middle' | 'end'

export interface Leaver {
  readonly api: Api
  readonly line: Api
  readonly form: Form
  readonly streams: boolean
  readonly moment: Moment
  readonly reset: boolean
}

export const LINES = {
  chat: { protocol: 'openai', endpoints: ['chat/completions'] },
  messages: { protocol: 'anthropic' },
  responses: { protocol: 'openai', endpoints: ['responses'] },
} as const

export const PATHS: Record<Api, string> = {
  chat: '/v1/chat/completions',
  messages: '/v1/messages',
  responses: '/v1/responses',
}

const WAYS: readonly (readonly [Api, Api])[] = [
  ['chat', 'chat'],
  ['messages', 'messages'],
  ['responses', 'responses'],
  ['chat', 'messages'],
  ['messages', 'chat'],
  ['responses', 'chat'],
  ['responses', 'messages'],
]
const MOMENTS: readonly Moment[] = ['first event', 'middle', 'end', 'first byte']

/** A hundred callers: every form that a line has, on every way, at all moments. */
export function leavers(): Leaver[] {
  const all: Leaver[] = []
  for (const moment of MOMENTS) {
    for (const [api, line] of WAYS) {
      for (const form of Object.keys(STREAMED[line]) as Form[]) {
        // Only same-protocol callers get sound and images.
        if (api !== line && (form === 'audio' || form === 'image')) continue
        const reset = all.length % 2 === 0
        all.push({ api, line, form, streams: true, moment, reset })
      }
      if (moment === 'first byte') {
        for (const form of ['text', 'unseen'] as const)
          all.push({ api, line, form, streams: false, moment, reset: true })
      }
    }
  }
  return all
}

/**
 * Waits until the gateway, which is in this process, has read what was written. On a busy machine both of its timers, the next
 * piece's and the one that ends the call, may run out before it reads anything.
 */
async function read(): Promise<void> {
  await nextTurn()
  await nextTurn()
}

/** Answers as the leaver asks, and bills every token that arrives until the connection is gone. */
export async function work(
  res: ServerResponse,
  { line, form, streams, moment }: Leaver,
  bill: Bill,
  sent: () => void,
): Promise<void> {
  bill.input += INPUT_TOKENS
  // It reads the prompt before it writes anything.
  if (streams && moment === 'first byte' && form !== 'unseen') await sleep(100)
  if (res.destroyed) return
  const pieces = STREAMED[line][form]?.() ?? []
  if (streams) {
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const event of START[line]) res.write(event)
  }
  for (const [event, tokens] of pieces) {
    if (res.destroyed) return
    if (streams) res.write(event)
    await read()
    if (res.destroyed) return
    bill.output += tokens
    await sleep(PACE_MS[form] ?? 3)
  }
  sent()
  // Nothing shows the caller that it is over.
  await until(() => res.destroyed, 'the gateway leaves')
}
