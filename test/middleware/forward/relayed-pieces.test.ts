import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { describe, it } from 'node:test'
import { readError, relayAnswer } from '../../../lib/middleware/forward/relayed-answer.ts'

/** An answer of a line, its exchange, the caller's response, and what happened to them. */
function relayed({ takes = () => true }: { takes?: (text: string) => boolean } = {}) {
  const log: string[] = []
  const over = Promise.withResolvers<void>()
  const exchange = {
    ended: over.promise,
    noteProgress: () => void log.push('progress'),
    received: (piece: Buffer) => void log.push(`received ${piece}`),
    complete: () => void log.push('complete'),
    pauseClocks: () => void log.push('clocks stand'),
    resumeClocks: () => void log.push('clocks run'),
  }
  const response = Object.assign(new EventEmitter(), {
    complete: true,
    pause: () => void log.push('pause'),
    resume: () => void log.push('resume'),
  })
  const res = Object.assign(new EventEmitter(), {
    write(piece: Buffer) {
      log.push(`write ${piece}`)
      return takes(String(piece))
    },
  })
  const [answer, caller] = [response as unknown as IncomingMessage, res as unknown as ServerResponse]
  return { log, over, exchange, response, res, answer, caller }
}

describe('an answer that is passed on', () => {
  it('goes to the caller piece by piece, and is complete at its end', async () => {
    const { log, over, exchange, response, res, answer, caller } = relayed()
    const relaying = relayAnswer(exchange, answer, caller)
    assert.deepEqual(log, ['clocks run'])
    response.emit('data', Buffer.from('a'))
    response.emit('end')
    assert.deepEqual(log.slice(1), ['received a', 'write a', 'complete'])
    over.resolve()
    await relaying
    res.emit('drain')
    assert.equal(log.length, 4, 'nothing any more')
  })

  it('waits for a caller who is slower, whose silence is not the line’s', async () => {
    const { log, exchange, response, res, answer, caller } = relayed({ takes: () => false })
    void relayAnswer(exchange, answer, caller)
    response.emit('data', Buffer.from('a'))
    assert.deepEqual(log.slice(1), ['received a', 'write a', 'pause', 'clocks stand'])
    res.emit('drain')
    assert.deepEqual(log.slice(5), ['clocks run', 'resume'])
  })

  it('that broke off is not complete', () => {
    const { log, exchange, response, answer, caller } = relayed()
    void relayAnswer(exchange, answer, caller)
    response.complete = false
    response.emit('end')
    assert.deepEqual(log, ['clocks run'])
  })
})

describe('what an upstream says of its error', () => {
  const LONGEST = 64 * 1024
  const text = (length: number) => JSON.stringify({ a: 'x'.repeat(length - '{"a":""}'.length) })

  const said = async (...pieces: string[]) => {
    const { log, exchange, response, answer } = relayed()
    const reading = readError(exchange, answer)
    for (const piece of pieces) response.emit('data', Buffer.from(piece))
    response.emit('end')
    assert.equal(log.filter((line) => line === 'progress').length, pieces.length)
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
    const long = relayed()
    const reading = readError(long.exchange, long.answer)
    long.response.emit('data', Buffer.from('{}'))
    long.response.emit('data', Buffer.alloc(LONGEST))
    assert.deepEqual(await reading, {})
    const broken = relayed()
    const partly = readError(broken.exchange, broken.answer)
    broken.response.emit('data', Buffer.from('{"a":1}'))
    broken.over.resolve()
    assert.deepEqual(await partly, { a: 1 })
  })
})
