import {
  isJsonObject,
  type JsonObject,
  objectsIn,
  parseJson,
  parseKeepingIntegers,
} from '../../json/index.ts'
import type { AnswerForm } from '../answer-form.ts'

const event = (type: string, members: JsonObject = {}): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`

/** The forms of an Anthropic-style message. */
export const messageForm: AnswerForm = { toStream, fromStream }

function toStream({ content, stop_reason = null, stop_sequence = null, ...head }: JsonObject): string {
  const message = { ...head, content: [], stop_reason: null, stop_sequence: null }
  return [
    event('message_start', { message }),
    ...objectsIn(content).map(blockEvents),
    event('message_delta', { delta: { stop_reason, stop_sequence }, usage: head.usage }),
    event('message_stop'),
  ].join('')
}

function blockEvents(block: JsonObject, index: number): string {
  const { begin, deltas } = partsOf(block)
  return [
    event('content_block_start', { index, content_block: begin }),
    ...deltas.map((delta) => event('content_block_delta', { index, delta })),
    event('content_block_stop', { index }),
  ].join('')
}

/** Returns a block without its content, and the deltas that bring the content. */
function partsOf(block: JsonObject): { begin: JsonObject; deltas: readonly JsonObject[] } {
  const { type, text, thinking, signature, input, citations } = block
  if (type === 'text') {
    const cited = objectsIn(citations).map((citation) => ({ type: 'citations_delta', citation }))
    return {
      begin: { ...block, text: '', ...(cited.length > 0 && { citations: [] }) },
      deltas: [{ type: 'text_delta', text }, ...cited],
    }
  }
  if (type === 'thinking') {
    const deltas: JsonObject[] = [{ type: 'thinking_delta', thinking }]
    if (signature !== undefined) deltas.push({ type: 'signature_delta', signature })
    return { begin: { ...block, thinking: '', signature: '' }, deltas }
  }
  if (type === 'tool_use' || isJsonObject(input)) {
    // Some upstreams write the input as JSON text, and an empty one as null.
    const json = typeof input === 'string' ? input : JSON.stringify(input ?? {})
    const deltas = [{ type: 'input_json_delta', partial_json: json }]
    return { begin: { ...block, input: {} }, deltas }
  }
  return { begin: block, deltas: [] }
}

function fromStream(events: readonly JsonObject[]): JsonObject {
  let message: JsonObject = {}
  const blocks = new Map<unknown, Record<string, unknown>>()
  const inputs = new Map<unknown, string>()
  for (const { type, index, message: begun, content_block: block, delta, usage } of events) {
    if (type === 'message_start' && isJsonObject(begun)) {
      message = { ...begun, ...message }
      // Some messages begin with blocks, or come whole.
      for (const [at, first] of objectsIn(begun.content).entries()) blocks.set(at, { ...first })
    } else if (type === 'content_block_start' && isJsonObject(block)) blocks.set(index, { ...block })
    else if (type === 'content_block_delta' && isJsonObject(delta)) {
      const into = blocks.get(index)
      if (into) addDelta(into, delta)
      if (typeof delta.partial_json === 'string')
        inputs.set(index, (inputs.get(index) ?? '') + delta.partial_json)
    } else if (type === 'message_delta') {
      const before = isJsonObject(message.usage) ? message.usage : {}
      message = { ...message, ...(delta as JsonObject | undefined) }
      if (isJsonObject(usage)) message = { ...message, usage: { ...before, ...usage } }
    }
  }
  for (const [index, text] of inputs) {
    const block = blocks.get(index)
    const input = text.trim() === '' ? {} : parseJson(text, undefined, parseKeepingIntegers)
    if (block && input !== undefined) block.input = input ?? {}
  }
  return { ...message, content: [...blocks.values()] }
}

function addDelta(block: Record<string, unknown>, delta: JsonObject): void {
  for (const member of ['text', 'thinking', 'signature']) {
    const piece = delta[member]
    const before = block[member]
    if (typeof piece === 'string') block[member] = (typeof before === 'string' ? before : '') + piece
  }
  if (delta.citation !== undefined)
    block.citations = [...(Array.isArray(block.citations) ? block.citations : []), delta.citation]
}
