import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { PassThrough, Readable } from 'node:stream'
import { describe, it, type TestContext } from 'node:test'
import { gzipSync } from 'node:zlib'
import { relayAnswer } from '../../../lib/middleware/forward/proxied-exchange.ts'
import {
  type FirstEvent,
  readAnswer,
  readError,
  readFirstEvent,
} from '../../../lib/middleware/forward/relayed-answer.ts'
import type { Failure } from '../../../lib/routing/attempt/failure.ts'

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

/** An answer of a line, which a test sends, its exchange, the caller's response, and a log of calls to the exchange. */
function relayed(t: TestContext, takes = true) {
  const log: string[] = []
  const over = Promise.withResolvers<void>()
  const exchange = {
    ended: over.promise,
    noteProgress: () => void log.push('progress'),
    complete: () => void log.push('complete'),
    abandon: () => void log.push('abandon'),
    failed: ({ message }: Error) => void log.push(`failed: ${message}`),
    pauseClocks: () => void log.push('clocks stand'),
    resumeClocks: () => void log.push('clocks run'),
  }
  // Like the answer of a connection, it is given bytes when they come, and not when it is read.
  const line = new Readable({ highWaterMark: 10, read() {} })
  const caller = new PassThrough({ highWaterMark: takes ? 1000 : 1 })
  t.after(() => {
    line.destroy()
    caller.destroy()
  })
  const answer = line as unknown as IncomingMessage
  return { log, over, exchange, line, caller, answer, res: caller as unknown as ServerResponse }
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

describe('an answer that is passed on', () => {
  it('goes to the caller piece by piece, is complete at its end, and leaves the response open', async (t) => {
    const { log, exchange, line, caller, answer, res } = relayed(t)
    const relaying = relayAnswer(exchange, answer, res)
    await turn()
    line.push('a')
    await turn()
    assert.equal(String(caller.read()), 'a')
    line.push('b')
    line.push(null)
    await relaying
    assert.equal(String(caller.read()), 'b')
    assert.deepEqual(log.slice(0, 3), ['clocks run', 'progress', 'progress'])
    assert.equal(log.at(-1), 'complete')
    assert.equal(log.filter((line) => line === 'complete').length, 1)
    assert.equal(caller.writableEnded, false)
  })

  it('waits for a caller who is slower, whose silence is not the line’s', async (t) => {
    const { log, exchange, line, caller, answer, res } = relayed(t, false)
    const relaying = relayAnswer(exchange, answer, res)
    await turn()
    for (const piece of ['first', 'second', 'third']) line.push(piece)
    await turn()
    assert.deepEqual(log, ['clocks run', 'progress', 'clocks stand'])
    assert.ok(line.isPaused())
    caller.resume()
    line.push(null)
    await relaying
    assert.deepEqual(log.slice(3, 5), ['clocks run', 'progress'])
    assert.equal(log.at(-1), 'complete')
  })

  it('that broke off is a failure of the line, and the response is left to be cut off', async (t) => {
    const { log, exchange, line, caller, answer, res } = relayed(t)
    const relaying = relayAnswer(exchange, answer, res)
    await turn()
    line.push('a')
    await turn()
    line.destroy(new Error('reset'))
    await relaying
    assert.deepEqual(log, ['clocks run', 'progress', 'failed: reset'])
    assert.deepEqual([caller.destroyed, caller.writableEnded], [false, false])
  })

  it('ends with a caller that leaves, which is no failure of the line', async (t) => {
    const { log, exchange, line, caller, answer, res } = relayed(t, false)
    const relaying = relayAnswer(exchange, answer, res)
    line.push('a')
    await turn()
    caller.destroy()
    await relaying
    assert.equal(log.at(-1), 'abandon')
    assert.ok(line.destroyed)
  })
})

describe('the error body of an upstream', () => {
  const LONGEST = 64 * 1024
  const text = (length: number) => JSON.stringify({ a: 'x'.repeat(length - '{"a":""}'.length) })

  /** An answer whose pieces a test sends. */
  function answering() {
    let progress = 0
    const over = Promise.withResolvers<void>()
    const exchange = { ended: over.promise, noteProgress: () => void progress++ }
    const response = new EventEmitter()
    const reading = readError(exchange, response as unknown as IncomingMessage)
    return { over, response, reading, progress: () => progress }
  }

  const said = async (...pieces: string[]) => {
    const { response, reading, progress } = answering()
    for (const piece of pieces) response.emit('data', Buffer.from(piece))
    response.emit('end')
    assert.equal(progress(), pieces.length)
    return reading
  }

  it('is its JSON, in whatever pieces it comes', async () => {
    assert.deepEqual(await said('{"a"', ':', '[1]}'), { a: [1] })
  })

  it('is nothing where it is no JSON, or none comes', async () => {
    assert.equal(await said('<html>'), undefined)
    assert.equal(await said('{"a":'), undefined)
    assert.equal(await said(), undefined)
  })

  it('is read up to 64 KiB', async () => {
    assert.deepEqual(await said(text(LONGEST)), JSON.parse(text(LONGEST)))
    assert.deepEqual(await said(text(LONGEST).slice(0, 9), text(LONGEST).slice(9)), JSON.parse(text(LONGEST)))
    assert.equal(await said(text(LONGEST + 1)), undefined)
  })

  it('does not have to end where so much has come, or where the exchange is over', async () => {
    const long = answering()
    long.response.emit('data', Buffer.from('{}'))
    long.response.emit('data', Buffer.alloc(LONGEST))
    assert.deepEqual(await long.reading, {})
    const broken = answering()
    broken.response.emit('data', Buffer.from('{"a":1}'))
    broken.over.resolve()
    assert.deepEqual(await broken.reading, { a: 1 })
  })
})

const MIB = 1024 * 1024

/** An answer of a line that a test sends, and what its exchange notes. */
function answering(headers: Record<string, string> = {}) {
  const response = Object.assign(new EventEmitter(), { headers }) as unknown as IncomingMessage
  const over = Promise.withResolvers<void>()
  const broken: Failure[] = []
  let progress = 0
  const exchange = {
    ended: over.promise,
    noteProgress: () => {
      progress++
    },
    breakOff: (failure: Failure) => void broken.push(failure),
  }
  return {
    ...{ response, exchange, broken },
    end: over.resolve,
    progress: () => progress,
    send(...pieces: readonly Buffer[]): void {
      for (const piece of pieces) response.emit('data', piece)
      response.emit('end')
    },
  }
}

describe('an answer that is read before it is sent', () => {
  it('is read whole up to 16 MiB, and broken off beyond', async () => {
    for (const [length, isRead] of [
      [16 * MIB, true],
      [16 * MIB + 1, false],
    ] as const) {
      const { exchange, response, send, broken, progress } = answering()
      const read = readAnswer(exchange, response)
      send(Buffer.alloc(8 * MIB), Buffer.alloc(length - 8 * MIB))
      assert.equal((await read)?.length, isRead ? length : undefined)
      assert.deepEqual([broken.length, progress()], [isRead ? 0 : 1, 2])
    }
  })

  it('is decompressed, or broken off where that fails', async () => {
    const given: [encoding: string, body: Buffer, read: string | undefined][] = [
      ['gzip', gzipSync('hello'), 'hello'],
      ['gzip', Buffer.from('hello'), undefined],
      ['identity', Buffer.from('hello'), 'hello'],
    ]
    for (const [encoding, body, text] of given) {
      const { exchange, response, send, broken } = answering({ 'content-encoding': encoding })
      const read = readAnswer(exchange, response)
      send(body)
      assert.equal((await read)?.toString(), text, encoding)
      assert.equal(broken.length, text === undefined ? 1 : 0)
    }
  })
})

describe('the body of an error', () => {
  it('is read up to 64 KiB, and otherwise nothing', async () => {
    for (const [length, isRead] of [
      [64 * 1024, true],
      [64 * 1024 + 1, false],
    ] as const) {
      const { exchange, response, send } = answering()
      const read = readError(exchange, response)
      const text = `"${'x'.repeat(length - 2)}"`
      send(Buffer.from(text.slice(0, 100)), Buffer.from(text.slice(100)))
      assert.equal((await read) === undefined, !isRead)
    }
  })

  it('is nothing where it is no JSON, or the exchange ends before it', async () => {
    const html = answering()
    const read = readError(html.exchange, html.response)
    html.send(Buffer.from('<html>'))
    assert.equal(await read, undefined)
    const broken = answering()
    const reading = readError(broken.exchange, broken.response)
    broken.response.emit('data', Buffer.from('{"a":'))
    broken.end()
    assert.equal(await reading, undefined)
  })
})
