import { randomUUID } from 'node:crypto'
import { messageEvent } from '../../../support/scripted-upstream.ts'
import type { MessageRequest } from './message-request.ts'
import { piecesOf, type Said, sealOf, type Usage } from './script.ts'

interface Block {
  readonly whole: object
  /** The beginning of a stream, and its deltas. */
  readonly start: object
  readonly deltas: readonly object[]
}

function blocksOf({ thought: whole, text, calls }: Said, turn: number, isOmitted: boolean): Block[] {
  const thought = isOmitted && whole !== undefined ? '' : whole
  const thinking = thought !== undefined && {
    whole: { type: 'thinking', thinking: thought, signature: sealOf(thought) },
    start: { type: 'thinking', thinking: '', signature: '' },
    deltas: [
      ...piecesOf(thought).map((piece) => ({ type: 'thinking_delta', thinking: piece })),
      { type: 'signature_delta', signature: sealOf(thought) },
    ],
  }
  const said = text !== '' && {
    whole: { type: 'text', text },
    start: { type: 'text', text: '' },
    deltas: piecesOf(text).map((piece) => ({ type: 'text_delta', text: piece })),
  }
  const uses = calls.map(({ name, args }, i) => {
    const use = { type: 'tool_use', id: `toolu_${turn}_${i}`, name }
    // Without arguments nothing but an empty piece comes.
    const pieces = Object.keys(args).length > 0 ? piecesOf(JSON.stringify(args)) : []
    return {
      whole: { ...use, input: args },
      start: { ...use, input: {} },
      deltas: ['', ...pieces].map((piece) => ({ type: 'input_json_delta', partial_json: piece })),
    }
  })
  return [thinking, said, ...uses].filter((block) => block !== false)
}

const omits = (thinking: MessageRequest['thinking']) =>
  thinking !== undefined && 'display' in thinking && thinking.display === 'omitted'

const headOf = (model: string, usage: object) => ({
  id: `msg_${randomUUID()}`,
  type: 'message',
  role: 'assistant',
  model,
  content: [] as object[],
  stop_reason: null as string | null,
  stop_sequence: null,
  usage,
})
const reasonOf = ({ calls }: Said) => (calls.length > 0 ? 'tool_use' : 'end_turn')

/** A whole message; `turn` numbers the calls. */
export function message(
  said: Said,
  turn: number,
  { input, output }: Usage,
  { model, thinking }: MessageRequest,
): object {
  const isOmitted = omits(thinking)
  const usage = { input_tokens: input, output_tokens: output }
  const content = blocksOf(said, turn, isOmitted).map(({ whole }) => whole)
  return { ...headOf(model, usage), content, stop_reason: reasonOf(said) }
}

/** The events of one. */
export function messageEvents(
  said: Said,
  turn: number,
  { input, output }: Usage,
  { model, thinking }: MessageRequest,
): string[] {
  const isOmitted = omits(thinking)
  return [
    messageEvent('message_start', { message: headOf(model, { input_tokens: input, output_tokens: 1 }) }),
    messageEvent('ping'),
    ...blocksOf(said, turn, isOmitted).flatMap(({ start, deltas }, index) => [
      messageEvent('content_block_start', { index, content_block: start }),
      ...deltas.map((delta) => messageEvent('content_block_delta', { index, delta })),
      messageEvent('content_block_stop', { index }),
    ]),
    messageEvent('message_delta', {
      delta: { stop_reason: reasonOf(said), stop_sequence: null },
      usage: { output_tokens: output },
    }),
    messageEvent('message_stop'),
  ]
}
