import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'
import { type FirstEvent, readFirstEvent } from '../../../lib/middleware/forward/relayed-answer.ts'

const LONGEST = 64 * 1024
const EVENT = 'event: made\ndata: {"id":"é"}\n\n'
const DATA = '{"id":"é"}'
const REST = 'data: rest\n\n'

/** A stream of events of a line, which a test sends. */
function streaming(headers: Record<string, string> = {}) {
  let paused = 0
  let progress = 0
  const over = Promise.withResolvers<void>()
  const events = new EventEmitter()
  const response = Object.assign(events, {
    headers,
    pause: () => void paused++,
  }) as unknown as IncomingMessage
  const exchange = { ended: over.promise, noteProgress: () => void progress++ }
  let read: FirstEvent | undefined
  const reading = readFirstEvent(exchange, response).then((event) => {
    read = event
    return event
  })
  return {
    ...{ over, reading },
    counts: () => ({ paused, progress }),
    listeners: () => events.listenerCount('data'),
    async isRead(): Promise<boolean> {
      await new Promise(setImmediate)
      return read !== undefined
    },
    send: (piece: string | Buffer) => void events.emit('data', Buffer.from(piece as string)),
    end: () => void events.emit('end'),
  }
}

describe('the first event of a stream', () => {
  const whole: readonly (readonly [what: string, text: string, data: string])[] = [
    ['an event', EVENT, DATA],
    ['without a name', `data: ${DATA}\n\n`, DATA],
    ['of several lines', 'data: a\ndata: b\n\n', 'a\nb'],
    ['behind comments', `: ping\n\n: ping\n\n${EVENT}`, DATA],
    ['behind one without data', `event: begin\n\n${EVENT}`, DATA],
    ['behind a byte order mark', `\ufeff${EVENT}`, DATA],
    ['with other line ends', EVENT.replaceAll('\n', '\r\n'), DATA],
    ['behind comments with other line ends', `: ping\r\n\r\n${EVENT.replaceAll('\n', '\r\n')}`, DATA],
  ]
  for (const [what, text, data] of whole)
    it(`is read no further than its end, in whatever pieces it comes: ${what}`, async () => {
      const bytes = Buffer.from(text)
      for (let cut = 1; cut < bytes.length; cut++) {
        const { send, reading, isRead, counts, listeners } = streaming()
        send(bytes.subarray(0, cut))
        assert.equal(await isRead(), false, `at ${cut}`)
        send(Buffer.concat([bytes.subarray(cut), Buffer.from(REST)]))
        const event = await reading
        assert.deepEqual([String(event.data), String(event.bytes)], [data, text + REST], `at ${cut}`)
        assert.deepEqual([counts(), listeners()], [{ paused: 1, progress: 2 }, 0])
      }
      const { send, reading } = streaming()
      for (const byte of bytes) send(Buffer.from([byte]))
      assert.equal(String((await reading).data), data)
    })

  it('may end without an empty line, or never come', async () => {
    for (const [text, data] of [
      [EVENT.trimEnd(), DATA],
      [`: ping\n\n${EVENT.trimEnd()}`, DATA],
      [': ping\n\n', ''],
      ['event: made\n', ''],
      ['', ''],
    ] as const) {
      const { send, end, reading } = streaming()
      if (text) send(text)
      end()
      const event = await reading
      assert.deepEqual([String(event.data), String(event.bytes)], [data, text])
    }
  })

  it('is not waited for once the exchange has ended', async () => {
    const { send, over, reading } = streaming()
    send('data: half')
    over.resolve()
    assert.equal(String((await reading).data), 'half')
  })

  it('is read up to 64 KiB, and passes unread beyond', async () => {
    const { send, isRead, reading, counts } = streaming()
    send(`: ${'x'.repeat(LONGEST - 3)}`)
    assert.equal(await isRead(), false)
    send('x')
    const long = await reading
    assert.deepEqual([String(long.data), long.bytes.length, counts().paused >= 1], ['', LONGEST, true])
    const last = streaming()
    last.send(`data: ${'x'.repeat(LONGEST - 9)}`)
    assert.equal(await last.isRead(), false)
    last.send('\n\n')
    assert.equal((await last.reading).data.length, LONGEST - 9)
  })

  it('is decoded where the line compresses unasked, and its bytes stay as they came', async () => {
    const packed = gzipSync(EVENT + REST)
    const { send, end, reading } = streaming({ 'content-encoding': 'gzip' })
    send(packed.subarray(0, 5))
    send(packed.subarray(5))
    end()
    const event = await reading
    assert.equal(String(event.data), DATA)
    assert.deepEqual(event.bytes, packed)
  })

  it('passes unread where it cannot be decoded, or is too long for its bytes', async () => {
    const broken = streaming({ 'content-encoding': 'gzip' })
    broken.send('no gzip at all')
    assert.deepEqual(await broken.reading, { bytes: Buffer.from('no gzip at all'), data: Buffer.alloc(0) })
    const bomb = streaming({ 'content-encoding': 'gzip' })
    const packed = gzipSync(`: ${'x'.repeat(LONGEST)}`)
    bomb.send(packed)
    const event = await bomb.reading
    assert.deepEqual([event.data.length, event.bytes, bomb.counts().paused >= 1], [0, packed, true])
  })
})
