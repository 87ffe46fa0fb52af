import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { ChatStreamReader } from '../../../../lib/core/operations/chat/chat-stream.ts'
import { chatCompletions, messages, type StreamReader } from '../../../../lib/core/operations/index.ts'
import { MessageStreamReader } from '../../../../lib/core/operations/messages/messages-stream.ts'
import { type Translation, translationsOf } from '../../../../lib/core/translate/index.ts'
import { StreamRelay } from '../../../../lib/middleware/route/relay/stream-relay.ts'
import { TranslatedEvents } from '../../../../lib/middleware/route/relay/translated-events.ts'
import { eventsOf } from '../../../support/exchange.ts'
import { chatChunk, messageEvent } from '../../../support/scripted-upstream.ts'

const ROWS = [
  {
    name: 'messages as chat',
    translation: translationsOf(chatCompletions)[0] as Translation,
    reader: () => new MessageStreamReader(),
    mode: { protocol: 'anthropic', stream: true },
    odd: messageEvent('weather_report', { sun: true }),
    last: 'data: [DONE]\n\n',
  },
  {
    name: 'chat as messages',
    translation: translationsOf(messages)[0] as Translation,
    reader: () => new ChatStreamReader({ answers: 1, relayUsage: false }),
    mode: { protocol: 'openai', stream: true },
    odd: chatChunk({ audio: { id: 'a', data: 'AAAA' } }),
    last: 'event: message_stop\ndata: {"type":"message_stop"}\n\n',
  },
] as const

/** Relays a stream in some pieces, and says what was written of it, in which writes. */
function relayed(
  { translation, reader: newReader }: (typeof ROWS)[number],
  pieces: readonly Buffer[],
  careful = false,
) {
  const reader: StreamReader = newReader()
  const read = reader.read.bind(reader)
  if (careful) reader.read = (event) => ({ ...read(event), textMember: undefined })
  const context = { request: {}, created: 1, estimatedInputTokens: 5 }
  const translator = translation.stream(context)
  const usage = { inputTokens: 7, cachedInputTokens: 0, cacheWriteTokens: 0, outputTokens: 2 }
  const events = new TranslatedEvents(translator, () => ({ ...usage, source: 'measured' }))
  const writes: string[] = []
  const relay = new StreamRelay(reader, 'never sent', events)
  let end: ReturnType<StreamRelay['push']>
  for (const piece of pieces) {
    end ??= relay.push(piece)
    writes.push(...relay.take().map(String))
  }
  const last = end ?? relay.finish()
  writes.push(...relay.take().map(String))
  // Made up anew for each stream.
  const anonymous = (text: string) => text.replace(/"(chatcmpl-|msg_)[^"]*"/g, '"id"')
  return {
    writes: writes.map(anonymous),
    flowed: anonymous(writes.join('')),
    tail: last.kind === 'complete' ? anonymous(`${last.tail}`) : String(last.failure.detail),
    skipped: events.skipped,
    estimated: reader.estimatedOutput,
  }
}

const cutAt = (bytes: Buffer, cuts: readonly number[]) => {
  const edges = [0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].sort((a, b) => a - b)
  return edges.slice(1).map((edge, i) => bytes.subarray(edges[i], edge))
}

const words = fc.array(
  fc.oneof(
    fc.string({ unit: 'grapheme', minLength: 1, maxLength: 8 }),
    fc.constantFrom('"', '\\', '\n\n', 'é😀'),
  ),
  { minLength: 1, maxLength: 9 },
)

for (const row of ROWS) {
  describe(`a stream that is translated: ${row.name}`, () => {
    it('says the same however it is cut, and whether its events are recognised or read', () => {
      fc.assert(
        fc.property(words, fc.array(fc.nat(), { maxLength: 20 }), fc.nat(), (texts, cuts, at) => {
          const events = eventsOf(row.mode, texts)
          // Behind the first of its words: what is held before has another order of writes only.
          events.splice(events.length - 3 - (at % texts.length), 0, row.odd)
          const bytes = Buffer.from(events.join(''))
          const { writes: _, ...whole } = relayed(row, [bytes])
          const { writes: __, ...cut } = relayed(row, cutAt(bytes, cuts))
          const { writes: ___, ...careful } = relayed(row, [bytes], true)
          assert.deepEqual(cut, whole)
          assert.deepEqual(careful, whole)
          assert.ok(whole.tail.endsWith(row.last), whole.tail)
        }),
        { numRuns: 50 },
      )
    })

    it('is written in one piece for each that came, and its end is held', () => {
      const events = eventsOf(row.mode, ['Once', ' upon', ' a', ' time'])
      const first = events.findIndex((event) => event.includes('Once'))
      const cut = events.findIndex((event) => event.includes(' upon'))
      const end = events.findIndex((event) => event.includes(' time')) + 1
      const pieces = [
        events.slice(0, first),
        events.slice(first, cut),
        events.slice(cut, end),
        events.slice(end),
      ]
      const { writes, tail } = relayed(
        row,
        pieces.map((piece) => Buffer.from(piece.join(''))),
      )
      const last = writes.at(-1) ?? ''
      assert.match(last, / upon[\s\S]* a[\s\S]* time/)
      assert.match(writes.slice(0, -1).join(''), /Once/)
      assert.doesNotMatch(writes.join(''), /"finish_reason":"|"stop_reason":"end_turn"|DONE|message_stop/)
      assert.match(tail, /"finish_reason":"stop"|"stop_reason":"end_turn"/)
    })

    it('fails where an event or its end cannot be translated', () => {
      const failing = (member: 'push' | 'end') => ({
        ...row,
        translation: {
          ...row.translation,
          stream: (...given: Parameters<Translation['stream']>) =>
            Object.assign(row.translation.stream(...given), {
              [member]: () => {
                throw new SyntaxError('no counterpart')
              },
            }),
        },
      })
      const bytes = Buffer.from(eventsOf(row.mode, ['Hi']).join(''))
      for (const member of ['push', 'end'] as const) {
        const { tail } = relayed(failing(member) as (typeof ROWS)[number], [bytes])
        assert.equal(tail, 'the stream cannot be translated: no counterpart', member)
      }
    })
  })
}
