import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import type { ServerResponse } from 'node:http'
import { describe, it } from 'node:test'
import { bytesOf, sendMost } from '../../../lib/core/call/last-bytes.ts'

const LAST = 16 * 1024

/** A response that notes what is written, and its headers. */
function responseWith(members: object = {}, headers: Record<string, unknown> = {}) {
  const written: number[] = []
  const res = Object.assign(new EventEmitter(), {
    ...{ statusCode: 200, headersSent: false, writableNeedDrain: false, destroyed: false },
    hasHeader: (name: string) => name in headers,
    setHeader: (name: string, value: unknown) => {
      headers[name] = value
    },
    ...members,
  }) as unknown as ServerResponse
  const write = ((bytes: Uint8Array) => written.push(bytes.byteLength)) as unknown as ServerResponse['write']
  return { res, headers, written, send: (...given: unknown[]) => sendMost(res, write, given as never) }
}

describe('an answer that ends', () => {
  it('is kept whole where it is no more than the last bytes', () => {
    for (const given of [Buffer.alloc(LAST), 'x'.repeat(LAST), '', undefined]) {
      const { send, written, headers } = responseWith()
      const { rest, flowing } = send(given)
      assert.deepEqual([rest, flowing, written, headers], [[given], undefined, [], {}])
    }
  })

  it('is sent but for these, with its length and its callback', () => {
    const callback = () => {}
    for (const given of [
      [Buffer.alloc(LAST + 5), callback],
      ['x'.repeat(LAST + 5), 'latin1', callback],
    ]) {
      const { send, written, headers } = responseWith()
      const [last, behind] = send(...given).rest as unknown as [Uint8Array, unknown]
      assert.deepEqual([written, last.byteLength, behind], [[5], LAST, callback])
      assert.deepEqual(headers, { 'content-length': LAST + 5 })
    }
  })

  const undeclared: [what: string, members: object, headers: Record<string, unknown>][] = [
    ['is said', {}, { 'content-length': 7 }],
    ['is sent in chunks', {}, { 'transfer-encoding': 'chunked' }],
    ['has begun', { headersSent: true }, {}],
    ['has no body by its status', { statusCode: 204 }, {}],
    ['is not modified', { statusCode: 304 }, {}],
    ['is provisional', { statusCode: 199 }, {}],
  ]
  for (const [what, members, headers] of undeclared)
    it(`is given no length where it ${what}`, () => {
      const before = { ...headers }
      const { send } = responseWith(members, headers)
      send(Buffer.alloc(LAST + 5))
      assert.deepEqual(headers, before)
    })

  for (const event of ['drain', 'close'])
    it(`waits for the caller to take what was sent, or to leave: ${event}`, async () => {
      const { res, send } = responseWith({ writableNeedDrain: true })
      let isOver = false
      const waits = send(Buffer.alloc(LAST + 5)).flowing?.then(() => {
        isOver = true
      })
      await new Promise(setImmediate)
      assert.equal(isOver, false)
      res.emit(event)
      await waits
      assert.deepEqual([isOver, res.listenerCount('drain'), res.listenerCount('close')], [true, 0, 0])
    })

  it('waits for nobody where the caller has left', async () => {
    const { send } = responseWith({ writableNeedDrain: true, destroyed: true })
    await send(Buffer.alloc(LAST + 5)).flowing
  })
})

describe('the bytes that a response was given', () => {
  const rows: [given: unknown[], bytes: number[]][] = [
    [['é'], [0xc3, 0xa9]],
    [['é', 'latin1'], [0xe9]],
    [['ff', 'hex', () => {}], [0xff]],
    [
      ['é', () => {}],
      [0xc3, 0xa9],
    ],
    [[new Uint8Array([1, 2])], [1, 2]],
    [[() => {}], []],
    [[], []],
  ]
  for (const [given, bytes] of rows)
    it(`are [${bytes}] of ${JSON.stringify(given)}`, () => assert.deepEqual([...bytesOf(given)], bytes))
})
