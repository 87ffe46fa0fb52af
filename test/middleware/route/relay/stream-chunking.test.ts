import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { ChatStreamReader } from '../../../../lib/core/operations/chat/chat-stream.ts'
import type { StreamReader } from '../../../../lib/core/operations/index.ts'
import { MessageStreamReader } from '../../../../lib/core/operations/messages/messages-stream.ts'
import { StreamRelay } from '../../../../lib/middleware/route/relay/stream-relay.ts'

interface Relayed {
  /** Everything the caller gets, the tail included. */
  text: string
  /** The text that was written before the end. */
  flowed: string
  kind: string
  usage: unknown
  estimated: number
  substance: string
}

type NewReader = () => StreamReader

const DONE = 'data: [DONE]\n\n'
const STOP = 'event: message_stop\ndata: {"type":"message_stop"}\n\n'
const chatReader: NewReader = () => new ChatStreamReader({ answers: 1, relayUsage: false })
const messageReader: NewReader = () => new MessageStreamReader()

/** The same reader, with every event read with care: nothing is learned that others are recognised by. */
function careful(newReader: NewReader): NewReader {
  return () => {
    const reader = newReader()
    const read = reader.read.bind(reader)
    reader.read = (event) => ({ ...read(event), textMember: undefined })
    return reader
  }
}

function relay(newReader: NewReader, terminator: string, bytes: Buffer, cuts: readonly number[]): Relayed {
  const written: Buffer[] = []
  const reader = newReader()
  const stream = new StreamRelay(reader, terminator)
  let end: ReturnType<StreamRelay['push']>
  const edges = [0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].sort((a, b) => a - b)
  for (let i = 1; i < edges.length && !end; i++) {
    const chunk = bytes.subarray(edges[i - 1], edges[i])
    if (chunk.length > 0) end = stream.push(Buffer.from(chunk))
    written.push(...stream.take())
  }
  const last = end ?? stream.finish()
  written.push(...stream.take())
  const flowed = Buffer.concat(written).toString()
  return {
    text: flowed + (last.kind === 'complete' ? last.tail.toString() : ''),
    flowed,
    kind: last.kind,
    usage: reader.usage,
    estimated: reader.estimatedOutput,
    substance: reader.substance,
  }
}

const words = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 12 }),
  fc.constantFrom(' the', '\n\n', '"finish_reason":"stop"', '"usage":{}', 'data: x', '\\', '😀', '中文', ''),
)
/** JSON as providers print it: compact, or with a space behind colons and commas. */
const printed = (json: unknown, spaced: boolean): string =>
  spaced ? JSON.stringify(json, null, 1).replace(/\n */g, ' ') : JSON.stringify(json)

const chatDelta = fc.oneof(
  { weight: 5, arbitrary: words.map((content) => ({ content })) },
  words.map((reasoning_content) => ({ content: null, reasoning_content })),
  words.map((content) => ({ role: 'assistant', content })),
  words.map((text) => ({ tool_calls: [{ index: 0, function: { arguments: text } }] })),
  words.map((content) => ({ content, reasoning: 'also' })),
)
const chatEvent = fc
  .record({
    deltas: fc.array(chatDelta, { minLength: 1, maxLength: 2 }),
    spaced: fc.boolean(),
    prefix: fc.constantFrom('data: ', 'data:', ': comment\ndata: ', 'id: 7\ndata: '),
    extra: fc.constantFrom({}, { usage: null }, { service_tier: 'default', obfuscation: 'abc' }),
  })
  .map(({ deltas, spaced, prefix, extra }) => {
    const choices = deltas.map((delta, index) => ({ index, delta, logprobs: null, finish_reason: null }))
    return `${prefix}${printed({ id: 'c', object: 'chat.completion.chunk', choices, ...extra }, spaced)}\n\n`
  })
const chatEnd = (done: boolean): string => {
  const finish = { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }
  const usage = { choices: [], usage: { prompt_tokens: 11, completion_tokens: 5 } }
  return `data: ${JSON.stringify(finish)}\n\ndata: ${JSON.stringify(usage)}\n\n${done ? DONE : ''}`
}
const chatStream = fc
  .record({
    events: fc.array(fc.oneof(chatEvent, fc.constant(': ping\n\n')), { maxLength: 12 }),
    done: fc.boolean(),
  })
  .map(
    ({ events, done }) =>
      `data: {"choices":[{"delta":{"content":"!"}}]}\n\n${events.join('')}${chatEnd(done)}`,
  )

const messageDelta = fc.oneof(
  { weight: 4, arbitrary: words.map((text) => ({ type: 'text_delta', text })) },
  words.map((thinking) => ({ type: 'thinking_delta', thinking })),
  words.map((partial_json) => ({ type: 'input_json_delta', partial_json })),
  fc.constant({ type: 'signature_delta', signature: 'abc' }),
)
const event = (type: string, body: object, spaced = false): string =>
  `event: ${type}\ndata: ${printed({ type, ...body }, spaced)}\n\n`
const messageStream = fc
  .record({
    events: fc.array(
      fc.oneof(
        fc
          .tuple(messageDelta, fc.boolean())
          .map(([delta, spaced]) => event('content_block_delta', { index: 0, delta }, spaced)),
        fc.constant(event('ping', {})),
      ),
      { maxLength: 12 },
    ),
    stops: fc.boolean(),
  })
  .map(({ events, stops }) =>
    [
      event('message_start', {
        message: { usage: { input_tokens: 9, cache_read_input_tokens: 4, output_tokens: 1 } },
      }),
      event('content_block_start', { index: 0, content_block: { type: 'text', text: '!' } }),
      ...events,
      event('message_delta', { delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 5 } }),
      stops ? STOP : '',
    ].join(''),
  )

const cuts = fc.array(fc.nat(), { maxLength: 40 })
const everyByte = (bytes: Buffer): number[] => Array.from({ length: bytes.length }, (_, i) => i)
const lineEnds = fc.constantFrom('\n', '\r\n', '\r')

const PROTOCOLS = [
  { name: 'openai', streams: chatStream, reader: chatReader, terminator: DONE },
  { name: 'anthropic', streams: messageStream, reader: messageReader, terminator: STOP },
] as const

for (const { name, streams, reader, terminator } of PROTOCOLS) {
  describe(`a stream that arrives in pieces (${name})`, () => {
    it('gives the same bytes and the same usage however it is cut', () => {
      fc.assert(
        fc.property(streams, cuts, (text, at) => {
          const bytes = Buffer.from(text)
          const whole = relay(reader, terminator, bytes, [])
          assert.equal(whole.kind, 'complete')
          const { flowed: _, ...expected } = whole
          for (const pieces of [at, everyByte(bytes)]) {
            const { flowed: __, ...got } = relay(reader, terminator, bytes, pieces)
            assert.deepEqual(got, expected)
          }
        }),
        { numRuns: 60 },
      )
    })

    it('is relayed and counted by the fast path as by the careful one', () => {
      fc.assert(
        fc.property(streams, cuts, (text, at) => {
          const bytes = Buffer.from(text)
          assert.deepEqual(
            relay(reader, terminator, bytes, at),
            relay(careful(reader), terminator, bytes, at),
          )
        }),
        { numRuns: 50 },
      )
    })

    it('may end its lines with CR LF or CR and be cut between the two', () => {
      fc.assert(
        fc.property(streams, cuts, lineEnds, (text, at, end) => {
          const bytes = Buffer.from(text.replaceAll('\n', end))
          const plain = relay(reader, terminator, Buffer.from(text), [])
          for (const pieces of [[], at, everyByte(bytes)]) {
            const got = relay(reader, terminator, bytes, pieces)
            assert.equal(got.kind, 'complete')
            // All but the terminator, when it is ours, comes in the line ends of the upstream; a blank line more is none.
            const normal = got.text
              .replace(/\r\n|\r/g, '\n')
              .replace(/\n{3,}/g, '\n\n')
              .trimEnd()
            assert.equal(normal, plain.text.trimEnd())
            assert.deepEqual([got.usage, got.estimated], [plain.usage, plain.estimated])
          }
        }),
        { numRuns: 50 },
      )
    })

    it('lets all but the end flow, whatever passes', () => {
      fc.assert(
        fc.property(streams, cuts, (text, at) => {
          const { flowed, text: all } = relay(reader, terminator, Buffer.from(text), at)
          assert.doesNotMatch(flowed, /"finish_reason": ?"|"stop_reason"|\[DONE\]\n|message_stop/)
          assert.ok(all.startsWith(flowed))
          assert.ok(all.endsWith(terminator))
          assert.equal(all.split(terminator).length, 2, 'the last event stands there once')
        }),
        { numRuns: 60 },
      )
    })
  })
}
