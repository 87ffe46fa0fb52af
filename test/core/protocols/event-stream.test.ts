import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createParser } from 'eventsource-parser'
import fc from 'fast-check'
import { endOfFrame, endOfLastFrame, readFrame } from '../../../lib/core/protocols/index.ts'

interface Event {
  readonly event: string | undefined
  readonly data: string
}

const lineEnd = fc.constantFrom('\n', '\r\n', '\r')
const word = fc.string({
  unit: fc.constantFrom('a', ' ', ':', 'é', '世', '😀', '{', '"', '\u2028'),
  maxLength: 6,
})
const line = fc.oneof(
  { weight: 5, arbitrary: word.map((text) => `data: ${text}`) },
  { weight: 1, arbitrary: word.map((text) => `data:${text}`) },
  { weight: 2, arbitrary: fc.stringMatching(/^[a-z]{1,5}$/).map((name) => `event: ${name}`) },
  { weight: 1, arbitrary: word.map((text) => `:${text}`) },
  {
    weight: 1,
    arbitrary: fc.constantFrom('data', 'event', 'id: 7', 'retry: 10', 'other: x', ' data: x', 'datax: y'),
  },
)

/** A stream whose lines end as `style` says, whole or not. */
const streamWith = (style: fc.Arbitrary<string>) =>
  fc
    .array(fc.tuple(fc.array(fc.tuple(line, style), { minLength: 1, maxLength: 4 }), style), { maxLength: 5 })
    .map((frames) => frames.map(([lines, end]) => lines.flat().join('') + end).join(''))

const stream = fc.oneof(
  streamWith(fc.constant('\n')),
  streamWith(fc.constant('\r\n')),
  streamWith(fc.constant('\r')),
  streamWith(lineEnd),
)

function reference(chunks: readonly string[]): Event[] {
  const events: Event[] = []
  const parser = createParser({ onEvent: ({ event, data }) => events.push({ event, data }) })
  for (const chunk of chunks) parser.feed(chunk)
  return events.filter(({ data }) => data !== '')
}

/** Cuts frames off a stream as they become whole, the way a relay does. */
function ours(chunks: readonly Buffer[]): Event[] {
  const events: Event[] = []
  let rest = Buffer.alloc(0)
  for (const chunk of chunks) {
    rest = Buffer.concat([rest, chunk])
    const text = rest.toString('latin1')
    const end = endOfLastFrame(text)
    if (end < 0) continue
    const whole = text.slice(0, end)
    for (let at = 0; at < end; ) {
      const found = endOfFrame(whole, at, whole.includes('\r'))
      const next = found < 0 ? end : found
      events.push(readFrame(rest.toString('utf8', at, next)))
      at = next
    }
    rest = rest.subarray(end)
  }
  return events.filter(({ data }) => data !== '')
}

function cut(bytes: Buffer, at: readonly number[]): Buffer[] {
  const cuts = [...new Set(at.map((point) => point % (bytes.length + 1)))].sort((a, b) => a - b)
  return [...cuts, bytes.length].map((end, i) => bytes.subarray(i === 0 ? 0 : cuts[i - 1], end))
}

/** The text after the last blank line is no event; a CR at the very end may yet become CR LF. */
const CLOSING = ':\n\n'

describe('reading an event stream', () => {
  it('finds the events that eventsource-parser finds, whatever the line ends and chunk borders', () => {
    fc.assert(
      fc.property(stream, fc.array(fc.nat(), { maxLength: 8 }), (text, at) => {
        const bytes = Buffer.from(text + CLOSING)
        assert.deepEqual(ours(cut(bytes, at)), reference([text + CLOSING]))
      }),
      { numRuns: 200 },
    )
  })

  it('finds them byte by byte as well', () => {
    fc.assert(
      fc.property(stream, (text) => {
        const bytes = Buffer.from(text + CLOSING)
        assert.deepEqual(ours([...bytes].map((byte) => Buffer.from([byte]))), reference([text + CLOSING]))
      }),
      { numRuns: 150 },
    )
  })

  it('never hands over an event before its blank line has come', () => {
    fc.assert(
      fc.property(stream, fc.nat(), (text, at) => {
        const part = Buffer.from(text).subarray(0, at % (text.length + 1))
        const whole = reference([part.toString()])
        assert.ok(ours([part]).length <= whole.length)
      }),
      { numRuns: 150 },
    )
  })

  it('hands over every event whose blank line has come, however its lines end', () => {
    fc.assert(
      fc.property(stream, fc.nat(), (text, at) => {
        // A CR at the very end may be one half of a line end.
        const part = text.slice(0, at % (text.length + 1)).replace(/\r+$/, '')
        assert.deepEqual(ours([Buffer.from(part)]), reference([part]), JSON.stringify(part))
      }),
      { numRuns: 150 },
    )
  })

  it('reads over a byte order mark before the first field, and nowhere else', () => {
    for (const [frame, event, data] of [
      ['\ufeffdata: x', undefined, 'x'],
      ['\ufeffevent: e\ndata: \ufeffx', 'e', '\ufeffx'],
      ['event: e\n\ufeffdata: x', 'e', ''],
      ['\ufeff\ufeffdata: x', undefined, ''],
      ['\ufeff: comment', undefined, ''],
    ] as const)
      assert.deepEqual(readFrame(frame), { event, data }, JSON.stringify(frame))
  })

  it('ends a frame that is nothing but its blank line', () => {
    for (const blank of ['\n\n', '\r\n\r\n', '\n\r\n', '\r\n\n']) {
      assert.equal(endOfLastFrame(`${blank}data: x`), blank.length, JSON.stringify(blank))
      assert.equal(
        endOfFrame(`${blank}data: x`, 0, blank.includes('\r')),
        blank.length,
        JSON.stringify(blank),
      )
    }
  })

  it('finds no end of a frame where there is none', () => {
    for (const text of ['', 'data: x', 'data: x\n', 'data: x\r\n', 'data: x\r\n\r', 'data: x\r\r']) {
      assert.equal(endOfLastFrame(text), -1, JSON.stringify(text))
      assert.equal(endOfFrame(text, 0, text.includes('\r')), -1, JSON.stringify(text))
    }
    assert.equal(endOfFrame('data: x\n', 0, false), -1)
    assert.equal(endOfFrame('data: x\r\n\r\ndata: y', 0, true), 11)
    assert.equal(endOfFrame('data: x\r\n\r\ndata: y\n\n', 11, true), 20)
  })
})
