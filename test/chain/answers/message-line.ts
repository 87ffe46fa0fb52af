import type { Content, Shape, StopReason } from './content-forms.ts'
import { halves, INPUT_TOKENS, OUTPUT_TOKENS } from './content-forms.ts'

const HEAD = { id: 'msg_1', type: 'message', role: 'assistant', model: 'upstream-model' }
const usage = { input_tokens: INPUT_TOKENS, output_tokens: OUTPUT_TOKENS }
const SIGNATURE = 'c2lnbmF0dXJl'

type Block = { readonly type: string; readonly [member: string]: unknown }

/** The content blocks of an answer. A refusal is a stop reason here, with what the model wrote before it. */
function blocksOf({ reasoning, sealed, text, unknown, moreText, calls = [] }: Content): readonly Block[] {
  return [
    ...(reasoning === undefined ? [] : [{ type: 'thinking', thinking: reasoning, signature: SIGNATURE }]),
    ...(sealed ? [{ type: 'thinking', thinking: '', signature: SIGNATURE }] : []),
    ...(text === undefined ? [] : [{ type: 'text', text }]),
    ...(unknown ? [{ type: 'mystery', riddle: { answer: 42 } }] : []),
    ...(moreText === undefined ? [] : [{ type: 'text', text: moreText }]),
    ...calls.map(({ id, name, input = {} }) => ({ type: 'tool_use', id, name, input })),
  ]
}

const reasonOf = ({ refusal }: Content, reason: StopReason): StopReason =>
  refusal === undefined ? reason : 'refusal'

const endOf = (content: Content, reason: StopReason) => ({
  stop_reason: reasonOf(content, reason),
  stop_sequence: reason === 'stop_sequence' ? 'END' : null,
  ...(content.refusal !== undefined && {
    stop_details: { type: 'refusal', category: null, explanation: content.refusal },
  }),
})

/** A whole message. */
export const messagePlain = (content: Content, reason: StopReason): object => ({
  ...HEAD,
  content: blocksOf(content),
  ...endOf(content, reason),
  usage,
})

/** The data of all events of a streamed message. */
export function messageStreamed(content: Content, reason: StopReason, shape: Shape): readonly string[] {
  const message = { ...HEAD, content: [], stop_reason: null, stop_sequence: null }
  const events = [
    { type: 'message_start', message: { ...message, usage: { ...usage, output_tokens: 1 } } },
    ...blocksOf(content).flatMap((block, index) => blockEvents(block, index, shape)),
    { type: 'message_delta', delta: endOf(content, reason), usage: { output_tokens: OUTPUT_TOKENS } },
    { type: 'message_stop' },
  ]
  return events.map((event) => JSON.stringify(event))
}

function blockEvents(block: Block, index: number, shape: Shape): readonly object[] {
  const begin = (content_block: object) => ({ type: 'content_block_start', index, content_block })
  const delta = (given: object) => ({ type: 'content_block_delta', index, delta: given })
  const stop = { type: 'content_block_stop', index }
  if (shape === 'first event') return [begin(block), stop]
  const inOne = (text: string) => (shape === 'last event' ? [text] : halves(text))
  switch (block.type) {
    case 'text':
      return [
        begin({ ...block, text: '' }),
        ...inOne(String(block.text)).map((text) => delta({ type: 'text_delta', text })),
        stop,
      ]
    case 'thinking':
      return [
        begin({ ...block, thinking: '', signature: '' }),
        ...(block.thinking === '' ? [] : inOne(String(block.thinking))).map((thinking) =>
          delta({ type: 'thinking_delta', thinking }),
        ),
        delta({ type: 'signature_delta', signature: block.signature }),
        stop,
      ]
    case 'tool_use': {
      const json = Object.keys(block.input as object).length === 0 ? '' : JSON.stringify(block.input)
      return [
        begin({ ...block, input: {} }),
        ...inOne(json).map((partial_json) => delta({ type: 'input_json_delta', partial_json })),
        stop,
      ]
    }
    default:
      return [begin(block), delta({ type: 'mystery_delta', clue: 7 }), stop]
  }
}
