import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'
import { readAnswer, readError } from '../../../lib/middleware/forward/relayed-answer.ts'
import type { Failure } from '../../../lib/routing/attempt/failure.ts'

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
