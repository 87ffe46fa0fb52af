import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { ChatStreamReader } from '../../../../lib/core/operations/chat/chat-stream.ts'
import { messages, type StreamReader } from '../../../../lib/core/operations/index.ts'
import { MessageStreamReader } from '../../../../lib/core/operations/messages/messages-stream.ts'
import { readFrame } from '../../../../lib/core/protocols/index.ts'
import { MessageAsChatStream } from '../../../../lib/core/translate/chat-as-messages/stream.ts'
import { type Translation, translationOf } from '../../../../lib/core/translate/index.ts'
import { ChatAsMessageStream } from '../../../../lib/core/translate/messages-as-chat/stream.ts'
import { StreamRelay } from '../../../../lib/middleware/route/relay/stream-relay.ts'
import { TranslatedEvents } from '../../../../lib/middleware/route/relay/translated-events.ts'
import type { Body } from './requests.ts'

// biome-ignore lint/suspicious/noExplicitAny: events are read freely here
type Json = any

/** An Anthropic-style stream put together, after a look at its order: what a strict client would do. */
export function messageOf(text: string): Json {
  const events = framesOf(text).map(({ event, data }) => {
    const json = JSON.parse(data)
    assert.equal(json.type, event)
    return json
  })
  assert.deepEqual(
    [events[0]?.type, events.at(-2)?.type, events.at(-1)?.type],
    ['message_start', 'message_delta', 'message_stop'],
  )
  const { message } = events[0]
  let open: { block: Json; json: string } | undefined
  for (const event of events.slice(1, -2)) {
    if (event.type === 'ping') continue
    if (event.type === 'content_block_start') {
      assert.equal(open, undefined, 'one block at a time')
      assert.equal(event.index, message.content.length)
      open = { block: event.content_block, json: '' }
      message.content.push(open.block)
      continue
    }
    assert.ok(open, `${event.type} outside of a block`)
    assert.equal(event.index, message.content.length - 1)
    if (event.type === 'content_block_stop') {
      if (open.block.type === 'tool_use' && open.json !== '') open.block.input = JSON.parse(open.json)
      open = undefined
      continue
    }
    assert.equal(event.type, 'content_block_delta')
    addDelta(open, event.delta)
  }
  assert.equal(open, undefined, 'the last block is closed')
  const { delta, usage } = events.at(-2)
  return { ...message, ...delta, usage }
}

function addDelta(open: { block: Json; json: string }, delta: Json): void {
  const { block } = open
  switch (delta.type) {
    case 'text_delta':
      assert.equal(block.type, 'text')
      block.text += delta.text
      return
    case 'thinking_delta':
      assert.equal(block.type, 'thinking')
      block.thinking += delta.thinking
      return
    case 'signature_delta':
      assert.equal(block.type, 'thinking')
      block.signature = delta.signature
      return
    case 'citations_delta':
      assert.equal(block.type, 'text')
      block.citations = [...(block.citations ?? []), delta.citation]
      return
    default:
      assert.equal(delta.type, 'input_json_delta')
      assert.equal(block.type, 'tool_use')
      open.json += delta.partial_json
  }
}

/** An OpenAI-style stream put together, after a look at its order; members of deltas that are lists are joined. */
export function completionOf(text: string): Json {
  const datas = framesOf(text).map(({ data }) => data)
  assert.equal(datas.indexOf('[DONE]'), datas.length - 1, '[DONE] stands once, at the end')
  const chunks = datas.slice(0, -1).map((data) => JSON.parse(data))
  const message: Json = {}
  let finishReason: Json = null
  let usage: Json
  assert.equal(chunks[0]?.choices[0]?.delta.role, 'assistant')
  for (const chunk of chunks) {
    assert.deepEqual(
      [chunk.id, chunk.object, chunk.created, chunk.model],
      [chunks[0].id, 'chat.completion.chunk', chunks[0].created, chunks[0].model],
    )
    if (chunk.usage) usage = chunk.usage
    for (const { index, delta, finish_reason: reason } of chunk.choices) {
      assert.equal(index, 0)
      assert.equal(finishReason, null, 'nothing behind the finish reason')
      addChatDelta(message, delta)
      finishReason = reason
    }
  }
  assert.notEqual(finishReason, null)
  return { id: chunks[0].id, model: chunks[0].model, message, finish_reason: finishReason, usage }
}

function addChatDelta(message: Json, delta: Json): void {
  for (const member of ['content', 'reasoning_content', 'refusal'])
    if (typeof delta[member] === 'string') message[member] = (message[member] ?? '') + delta[member]
  for (const member of ['reasoning_details', 'annotations'])
    if (delta[member]) message[member] = [...(message[member] ?? []), ...delta[member]]
  for (const { index, ...call } of delta.tool_calls ?? []) {
    message.tool_calls ??= []
    const known = message.tool_calls[index]
    if (known) known.function.arguments += call.function.arguments
    else {
      assert.equal(index, message.tool_calls.length)
      message.tool_calls.push(call)
    }
  }
}

/** The events of a stream, without its comments and without `[DONE]`; each is named by its type, if it has a name. */
export function eventsOf(text: string): Json[] {
  return framesOf(text)
    .filter(({ data }) => data !== '[DONE]')
    .map(({ event, data }) => {
      const json = JSON.parse(data)
      if (event !== undefined) assert.equal(json.type, event)
      return json
    })
}

/** The frames of a stream that are no comments. */
function framesOf(text: string): { event: string | undefined; data: string }[] {
  assert.ok(text.endsWith('\n\n'))
  return text
    .slice(0, -2)
    .split('\n\n')
    .map(readFrame)
    .filter(({ data }) => data !== '')
}

/** The protocol of the line; the caller speaks the other one. */
export type LineProtocol = 'openai' | 'anthropic'

/** A line's stream as a relay translated it. */
interface Relayed {
  /** Everything the caller gets, the tail included. */
  readonly text: string
  /** The text that was written before the end. */
  readonly flowed: string
  readonly end: 'complete' | 'failed'
  /** The description of a failure. */
  readonly detail: string | null
  readonly skipped: number
  readonly usage: unknown
  readonly estimated: number
}

interface RelayOptions {
  /** Where the bytes are cut; modulo their length. */
  readonly cuts?: readonly number[]
  /** Every event is read with care: nothing is learned that others are recognised by. */
  readonly careful?: boolean
  /** The translation to use in place of the one between the two protocols. */
  readonly passage?: Pick<Translation, 'stream'>
  /** The caller's request. */
  readonly request?: Record<string, unknown>
}

const BETWEEN: Record<LineProtocol, Pick<Translation, 'stream'>> = {
  anthropic: { stream: (context) => new MessageAsChatStream(context) },
  openai: { stream: (context) => new ChatAsMessageStream(context) },
}

/** Relays a line's stream to a caller of the other protocol. */
export function relayTranslated(
  line: LineProtocol,
  stream: string,
  { cuts = [], careful = false, request = {}, passage = BETWEEN[line] }: RelayOptions = {},
): Relayed {
  const reader = readerOf(line)
  const context = { request, created: 5, estimatedInputTokens: 9 }
  const translator = passage.stream(context)
  if (careful) {
    const read = reader.read.bind(reader)
    reader.read = (event) => ({ ...read(event), textMember: undefined })
  }
  const written: Buffer[] = []
  const relay = new StreamRelay(reader, '', new TranslatedEvents(translator, () => reader.usage))
  const bytes = Buffer.from(stream)
  const edges = [0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].sort((a, b) => a - b)
  let end: ReturnType<StreamRelay['push']>
  for (let i = 1; i < edges.length && !end; i++) {
    const chunk = bytes.subarray(edges[i - 1], edges[i])
    if (chunk.length > 0) end = relay.push(Buffer.from(chunk))
    written.push(...relay.take())
  }
  const last = end ?? relay.finish()
  written.push(...relay.take())
  const flowed = Buffer.concat(written).toString()
  return {
    text: flowed + (last.kind === 'complete' ? last.tail.toString() : ''),
    flowed,
    end: last.kind,
    detail: last.kind === 'failed' ? last.failure.detail : null,
    skipped: translator.skipped,
    usage: reader.usage,
    estimated: reader.estimatedOutput,
  }
}

function readerOf(line: LineProtocol): StreamReader {
  return line === 'anthropic'
    ? new MessageStreamReader()
    : new ChatStreamReader({ answers: 1, relayUsage: false })
}

const LINE = { protocol: 'openai', endpoints: new Set(['chat/completions']) } as const

/** Translates the chunks of such a line for callers of messages, or of responses. */
export function translator(from = messages, request: Body = {}) {
  const made = translationOf(from, LINE)?.stream({ request, created: 5, estimatedInputTokens: 9 })
  assert.ok(made)
  return made
}

export const chunk = (delta: unknown, more: Body = {}) => ({ choices: [{ index: 0, delta, ...more }] })

/** The message that a caller of messages gets for these chunks. */
export function ofChunks(chunks: readonly object[], request: Body = {}) {
  const stream = translator(messages, request)
  const text =
    chunks.map((one) => stream.push(one)).join('') + stream.end({ inputTokens: 7, outputTokens: 4 })
  return { ...messageOf(text), skipped: stream.skipped }
}
export const ofDeltas = (...deltas: unknown[]) => ofChunks(deltas.map((delta) => chunk(delta)))
/** A piece of a tool call. */
export const piece = (members: object) => ({ tool_calls: [members] })

const words = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 12 }),
  fc.constantFrom(
    ' the',
    '\n\n',
    '"content":"',
    '"finish_reason":"stop"',
    'data: x',
    '\\',
    '😀',
    '中文',
    '\ud83d',
  ),
)
export const textPieces = fc.array(words, { maxLength: 6 })
export const wellFormed = (pieces: readonly string[]) => pieces.map((piece) => piece.toWellFormed())

/** JSON as providers print it: compact, or with a space behind colons and commas. */
export const jsonText = (json: unknown, spaced: boolean): string =>
  spaced ? JSON.stringify(json, null, 1).replace(/\n */g, ' ') : JSON.stringify(json)

/** A text in pieces. */
const inPieces = (text: fc.Arbitrary<string>) =>
  fc.tuple(text, fc.array(fc.nat(), { maxLength: 4 })).map(([whole, cuts]) => {
    const edges = [0, ...cuts.map((cut) => cut % (whole.length + 1)), whole.length].sort((a, b) => a - b)
    return edges.slice(1).map((edge, i) => whole.slice(edges[i], edge))
  })

const input = fc.dictionary(
  fc.string({ maxLength: 6 }).filter((name) => name !== '__proto__'),
  fc.jsonValue({ maxDepth: 2 }),
  { maxKeys: 3 },
)
export const toolCall = fc.record({
  name: fc.stringMatching(/^[a-z_]{1,12}$/),
  json: inPieces(input.map((value) => JSON.stringify(value))),
  /** Whether the stream sends no arguments at all. */
  bare: fc.boolean(),
})

export type Tool = { name: string; json: string[]; bare: boolean }
export const inputOf = ({ json, bare }: Tool): unknown => (bare ? {} : JSON.parse(json.join('')))

/** The two properties of any translated stream: the same however it is cut, and whichever way it is read. */
export function testRelayPaths(line: LineProtocol, source: fc.Arbitrary<string>): void {
  const same = (stream: string, options: RelayOptions) => {
    const { text: whole, ...facts } = relayTranslated(line, stream)
    const { text, ...others } = relayTranslated(line, stream, options)
    assert.equal(text, whole)
    assert.deepEqual({ ...others, flowed: '' }, { ...facts, flowed: '' })
  }

  it('give the same however they are cut', () => {
    fc.assert(
      fc.property(source, fc.array(fc.nat(), { maxLength: 30 }), (stream, cuts) => same(stream, { cuts })),
      { numRuns: 80 },
    )
  })

  it('come out the same by the fast path as by the careful one', () => {
    fc.assert(
      fc.property(source, (stream) => same(stream, { careful: true })),
      { numRuns: 80 },
    )
  })
}
