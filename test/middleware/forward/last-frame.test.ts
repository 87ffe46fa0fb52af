import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { describe, it, type TestContext } from 'node:test'
import type { ProxiedExchange } from '../../../lib/middleware/forward/proxied-exchange.ts'
import { RelayedSocket } from '../../../lib/middleware/forward/relayed-socket.ts'
import { until } from '../../support/until.ts'

const PIECE = 1000
const PIECES = 8
/** A binary frame, whose length stands in two bytes. */
const HEAD = Buffer.from([0x82, 126, (PIECE * PIECES) >> 8, (PIECE * PIECES) & 0xff])
const GOING_AWAY = Buffer.from([0x88, 2, 0x03, 0xe9])
const piece = (i: number) => Buffer.alloc(PIECE, i)

/** A WebSocket whose caller takes a write when it is told to, between the two sides of a relay. */
function relayed(t: TestContext) {
  const received: Buffer[] = []
  let isSlow = false
  let take: (() => void) | undefined
  const caller = new Duplex({
    writableHighWaterMark: PIECE / 2,
    read() {},
    write(bytes: Buffer, _encoding, done) {
      received.push(bytes)
      if (isSlow) take = done
      else done()
    },
  })
  const line = new Duplex({
    readableHighWaterMark: PIECE,
    read() {},
    write: (_bytes, _encoding, done) => done(),
  })
  const over = Promise.withResolvers<void>()
  const { promise: ended, resolve: complete } = over
  const exchange = { ended, complete, breakOff: complete, relaying: () => {} }
  const session = new RelayedSocket(
    exchange as unknown as ProxiedExchange,
    { socket: caller as Socket } as never,
    line,
  )
  const relaying = session.relay('', Buffer.alloc(0))
  t.after(async () => {
    for (const side of [caller, line]) side.destroy()
    await relaying
  })
  return {
    ...{ session, caller, line },
    said: () => Buffer.concat(received),
    slow(): void {
      isSlow = true
    },
    /** The caller takes what was written, and all that comes. */
    fast(): void {
      isSlow = false
      take?.()
    },
  }
}

describe('the frame that a line has begun when its WebSocket is closed', () => {
  it('is read no faster than the caller takes it, and goes on when it has', async (t) => {
    const { session, caller, line, said, slow, fast } = relayed(t)
    line.push(Buffer.concat([HEAD, piece(0)]))
    await until(() => said().length === HEAD.length + PIECE, 'the beginning of the frame')
    slow()
    session.close(1001, '')
    line.push(piece(1))
    await until(() => caller.writableLength > 0, 'a piece that the caller does not take')
    for (let i = 2; i < PIECES; i++) line.push(piece(i))
    await new Promise((resolve) => setImmediate(resolve))
    assert.equal(caller.writableLength, PIECE, 'no further piece was read')
    const drained = once(caller, 'drain')
    fast()
    await drained
    await until(() => said().length === HEAD.length + PIECES * PIECE + GOING_AWAY.length, 'the whole frame')
    const frame = Buffer.concat([HEAD, ...Array.from({ length: PIECES }, (_, i) => piece(i))])
    assert.deepEqual(said(), Buffer.concat([frame, GOING_AWAY]))
  })

  it('does not wait for a caller that takes it at once', async (t) => {
    const { session, line, said } = relayed(t)
    const small = Buffer.from([0x82, 3])
    line.push(small)
    await until(() => said().length === small.length, 'the beginning of the frame')
    session.close(1001, '')
    for (const byte of ['a', 'b', 'c']) {
      line.push(byte)
      await new Promise((resolve) => setImmediate(resolve))
    }
    assert.deepEqual(said(), Buffer.concat([small, Buffer.from('abc'), GOING_AWAY]))
  })
})
