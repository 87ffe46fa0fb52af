import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { describe, it, type TestContext } from 'node:test'
import fc from 'fast-check'
import type { ProxiedExchange } from '../../../lib/middleware/forward/proxied-exchange.ts'
import {
  closeFrame,
  FrameBounds,
  RelayedSocket,
  watchUnread,
} from '../../../lib/middleware/forward/relayed-socket.ts'
import type { Failure } from '../../../lib/routing/attempt/failure.ts'
import { until } from '../../support/until.ts'
import { relayed, Side, turn } from './support/relay-sides.ts'

describe('a relayed socket', () => {
  const REFUSED = Buffer.from([0x88, 5, 0x03, 0xf0, ...Buffer.from('why')])
  const GOING_AWAY = Buffer.from([0x88, 0x82, 0, 0, 0, 0, 0x03, 0xe9])
  const FRAME = Buffer.from([0x82, 1, 0x61])

  describe('a WebSocket that is relayed', () => {
    it('hears the handshake first, and then each side what the other says', async (t) => {
      const { caller, line, say, begun } = await relayed(t, {
        handshake: 'HTTP/1.1 101 é\r\n\r\n',
        head: '!',
      })
      assert.equal(begun(), 'relaying')
      await say(line, 'hello')
      await say(caller, 'there')
      assert.equal(caller.text, 'HTTP/1.1 101 é\r\n\r\nhello')
      assert.equal(line.text, '!there')
    })

    it('has no timeout of its own, sends at once, and is probed', async (t) => {
      const settings = [
        ['timeout', 0],
        ['noDelay', true],
        ['keepAlive', true, 30_000],
      ]
      const { caller, line } = await relayed(t)
      assert.deepEqual([caller.settings, line.settings], [settings, settings])
    })

    it('is relayed over a stream that is no socket', async (t) => {
      const { caller, line, say } = await relayed(t, {
        before: ({ line }) => {
          for (const name of ['setTimeout', 'setNoDelay', 'setKeepAlive'] as const)
            delete (line as Partial<Side>)[name]
        },
      })
      await say(caller, 'hello')
      assert.equal(line.text, 'hello')
    })
  })

  describe('the idle time of a WebSocket', () => {
    it('is the time since the last message of either side', async (t) => {
      const { session, line, say, pass } = await relayed(t)
      await pass(700)
      assert.equal(session.idleMs, 700)
      await say(line, FRAME)
      assert.equal(session.idleMs, 0)
      await pass(1)
      assert.equal(session.idleMs, 1)
    })

    it('begins 5 s after the caller has spoken: the line may think about it', async (t) => {
      const { session, caller, line, say, pass } = await relayed(t)
      await say(caller, FRAME)
      await pass(4999)
      assert.equal(session.idleMs, 0)
      await pass(1)
      assert.equal(session.idleMs, 5000)
      await say(caller, FRAME)
      await pass(10)
      assert.equal(session.idleMs, 0)
      await say(line, FRAME)
      await pass(10)
      assert.equal(session.idleMs, 10)
    })

    it('is none in the middle of a frame', async (t) => {
      for (const speaker of ['caller', 'line'] as const) {
        const relay = await relayed(t)
        await relay.say(relay[speaker], FRAME.subarray(0, 2))
        await relay.pass(60_000)
        assert.equal(relay.session.idleMs, 0, speaker)
        await relay.say(relay[speaker], FRAME.subarray(2))
        await relay.pass(6000)
        assert.equal(relay.session.idleMs, 6000, speaker)
        t.mock.timers.reset()
        t.mock.restoreAll()
      }
    })
  })

  describe('a WebSocket that the gateway closes', () => {
    it('closes the caller’s side with the reason, and the line’s side as left by the caller', async (t) => {
      const { session, caller, line, say, ends } = await relayed(t)
      await say(line, FRAME)
      session.close(1008, 'why')
      await say(caller, 'nobody')
      assert.deepEqual(Buffer.concat(caller.heard), Buffer.concat([FRAME, REFUSED]))
      assert.deepEqual(Buffer.concat(line.heard), GOING_AWAY)
      assert.deepEqual([caller.writableEnded, line.writableEnded], [true, true])
      await say(line, 'else')
      for (const side of [caller, line]) await say(side, null)
      assert.deepEqual(Buffer.concat(line.heard), GOING_AWAY, 'nothing is passed on any more')
      assert.deepEqual(ends(), ['complete'])
    })

    it('is closed once', async (t) => {
      const { session, caller } = await relayed(t)
      session.close(1008, 'why')
      session.close(1011, 'again')
      await turn()
      assert.deepEqual(Buffer.concat(caller.heard), REFUSED)
    })

    it('sends the line no frame into one that the caller has begun', async (t) => {
      const { session, caller, line, say } = await relayed(t)
      await say(caller, FRAME.subarray(0, 2))
      session.close(1008, 'why')
      await turn()
      assert.deepEqual(Buffer.concat(line.heard), FRAME.subarray(0, 2))
      assert.deepEqual(Buffer.concat(caller.heard), REFUSED)
      assert.equal(line.writableEnded, true)
    })

    it('passes the frame on that the line has begun, and nothing behind it', async (t) => {
      const { session, caller, line, say, pass } = await relayed(t)
      await say(line, FRAME.subarray(0, 1))
      session.close(1008, 'why')
      await say(line, FRAME.subarray(1, 2))
      await pass(999)
      assert.equal(caller.writableEnded, false)
      await say(line, Buffer.concat([FRAME.subarray(2), FRAME]))
      await say(line, FRAME)
      assert.deepEqual(Buffer.concat(caller.heard), Buffer.concat([FRAME, REFUSED]))
      await pass(1000)
      assert.deepEqual(Buffer.concat(line.heard), GOING_AWAY)
      assert.deepEqual([caller.errors, line.errors], [[], []], 'nothing is sent behind the end')
    })

    it('is ended without a word after a second where that frame does not come whole', async (t) => {
      const { session, caller, line, say, pass } = await relayed(t)
      await say(line, FRAME.subarray(0, 1))
      session.close(1008, 'why')
      await pass(999)
      assert.deepEqual([caller.writableEnded, line.writableEnded], [false, false])
      await pass(1)
      assert.deepEqual([caller.writableEnded, line.writableEnded], [true, true])
      assert.deepEqual(Buffer.concat(caller.heard), FRAME.subarray(0, 1))
      assert.deepEqual(Buffer.concat(line.heard), GOING_AWAY)
    })

    it('is no failure of the line, even if that resets then', async (t) => {
      const { session, caller, line, ends } = await relayed(t)
      session.close(1008, 'why')
      line.destroy(new Error('reset'))
      caller.destroy()
      await turn()
      assert.deepEqual(ends(), ['complete'])
    })
  })

  describe('the end of one side of a WebSocket', () => {
    for (const [one, other] of [
      ['caller', 'line'],
      ['line', 'caller'],
    ] as const) {
      it(`ends the other, after the bytes on their way to it: ${one}`, async (t) => {
        const relay = await relayed(t)
        const [ended, left] = [relay[one], relay[other]]
        left.takes = false
        await relay.say(ended, 'last words')
        await relay.say(ended, null)
        assert.equal(left.writableFinished, false)
        left.takeAll()
        await turn()
        assert.equal(left.text, 'last words')
        assert.equal(left.writableFinished, true)
        assert.deepEqual(relay.ends(), [], 'the other has not closed')
        await relay.say(left, null)
        assert.deepEqual(relay.ends(), ['complete'])
        assert.equal(relay.isOver(), false)
        relay.over.resolve()
        await relay.relaying
      })

      it(`cuts the other half a second after its last byte: ${one}`, async (t) => {
        const relay = await relayed(t, { closesItself: false })
        const left = relay[other]
        await relay.say(relay[one], null)
        assert.equal(left.writableFinished, true)
        await relay.pass(499)
        assert.equal(left.destroyed, false)
        await relay.pass(1)
        assert.equal(left.destroyed, true)
      })

      it(`cuts the other after 5 s where it does not take its last bytes: ${one}`, async (t) => {
        const relay = await relayed(t)
        const left = relay[other]
        left.takes = false
        await relay.say(relay[one], 'last words')
        await relay.say(relay[one], null)
        await relay.pass(4999)
        assert.equal(left.destroyed, false)
        await relay.pass(1)
        assert.equal(left.destroyed, true)
      })

      it(`that breaks ends the other, and so does one that was closed before: ${one}`, async (t) => {
        const relay = await relayed(t)
        relay[one].destroy()
        await turn()
        assert.equal(relay[other].writableEnded, true)
        t.mock.timers.reset()
        t.mock.restoreAll()
        const late = await relayed(t, { before: (sides) => sides[one].destroy() })
        assert.equal(late[other].writableEnded, true)
        late[other].destroy()
        await turn()
        assert.deepEqual(late.ends(), ['complete'])
      })
    }

    it('is a failure where the line breaks, which is reported for the first error only', async (t) => {
      const { caller, line, ends } = await relayed(t)
      line.destroy(Object.assign(new Error('first'), { code: 'ECONNRESET', syscall: 'read' }))
      await turn()
      line.emit('error', Object.assign(new Error('second'), { code: 'EPIPE', syscall: 'write' }))
      caller.destroy()
      await turn()
      const [failure, ...more] = ends() as Failure[]
      assert.deepEqual(more, [])
      assert.deepEqual(
        [failure?.code, failure?.retryable, failure?.fault],
        ['upstream_error', false, 'model'],
      )
      assert.match(failure?.detail ?? '', /ECONNRESET/)
    })

    it('is none of the line that breaks once its caller has gone', async (t) => {
      const { caller, line, say, ends } = await relayed(t)
      await say(caller, null)
      line.destroy(new Error('reset'))
      caller.destroy()
      await turn()
      assert.deepEqual(ends(), ['complete'])
    })
  })
})

describe('the frame that a line has begun when its WebSocket is closed', () => {
  const PIECE = 1000
  const PIECES = 8
  /** A binary frame, whose length stands in two bytes. */
  const HEAD = Buffer.from([0x82, 126, (PIECE * PIECES) >> 8, (PIECE * PIECES) & 0xff])
  const GOING_AWAY = Buffer.from([0x88, 2, 0x03, 0xe9])
  const piece = (i: number) => Buffer.alloc(PIECE, i)

  /** A WebSocket between the two sides of a relay, whose caller takes a write when the test lets it. */
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

describe('a socket that is not read yet', () => {
  it('is closed when its caller ends it', async () => {
    for (const said of ['', 'words', 'w'.repeat(100_000)]) {
      const side = new Side(false)
      watchUnread(side)
      if (said) side.push(said)
      side.push(null)
      await turn()
      assert.ok(side.destroyed, said)
      side.destroy()
    }
  })

  it('is closed if its caller has ended it before', async () => {
    const side = new Side(false)
    side.push(null)
    side.resume()
    await turn()
    assert.equal(side.readableEnded, true)
    watchUnread(side)
    assert.equal(side.destroyed, true)
  })

  it('keeps what has come, and is not watched once it is read', async () => {
    const side = new Side(false)
    const stop = watchUnread(side)
    side.push('words')
    await turn()
    stop()
    assert.equal(String(side.read()), 'words')
    side.push(null)
    side.resume()
    await turn()
    assert.equal(side.destroyed, false)
    for (const event of ['readable', 'end']) assert.equal(side.listenerCount(event), 0, event)
    side.destroy()
  })
})

/** A frame with a payload of that many bytes. */
function frame(length: number, masked: boolean): Buffer {
  const bit = masked ? 0x80 : 0
  const head =
    length < 126
      ? Buffer.from([0x82, bit + length])
      : length < 65_536
        ? Buffer.from([0x82, bit + 126, length >> 8, length & 0xff])
        : Buffer.from([0x82, bit + 127, 0, 0, 0, 0, 0, length >> 16, (length >> 8) & 0xff, length & 0xff])
  return Buffer.concat([head, Buffer.alloc(masked ? 4 : 0, 0x81), Buffer.alloc(length, 0x82)])
}

const frames = fc.array(fc.tuple(fc.oneof(fc.nat(300), fc.nat(70_000)), fc.boolean()), { maxLength: 6 })

describe('the bounds of frames', () => {
  it('are found in pieces of any size', () => {
    fc.assert(
      fc.property(frames, fc.array(fc.integer({ min: 1, max: 40_000 })), (list, cuts) => {
        const whole = list.map(([length, masked]) => frame(length, masked))
        const ends = new Set([0])
        let end = 0
        for (const { length } of whole) {
          end += length
          ends.add(end)
        }
        const bytes = Buffer.concat(whole)
        const bounds = new FrameBounds()
        let at = 0
        for (const cut of [...cuts, bytes.length]) {
          bounds.follow(bytes.subarray(at, at + cut))
          at = Math.min(at + cut, bytes.length)
          assert.equal(bounds.between, ends.has(at), `at ${at}`)
        }
      }),
      { numRuns: 80 },
    )
  })

  it('are where a begun frame ends', () => {
    const bounds = new FrameBounds()
    const bytes = Buffer.concat([frame(200, true), frame(10, false)])
    bounds.follow(bytes.subarray(0, 3))
    assert.equal(bounds.finish(bytes.subarray(3)), frame(200, true).length - 3)
    assert.equal(bounds.between, true)
    assert.equal(bounds.finish(bytes), 0)
  })
})

describe('a close frame', () => {
  it('has its code and reason, and a mask for a server', () => {
    assert.deepEqual(closeFrame(1008, 'why', false), Buffer.from([0x88, 5, 3, 0xf0, ...Buffer.from('why')]))
    assert.deepEqual(closeFrame(1001, '', true), Buffer.from([0x88, 0x82, 0, 0, 0, 0, 3, 0xe9]))
  })
})
