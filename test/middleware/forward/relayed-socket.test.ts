import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Failure } from '../../../lib/routing/attempt/failure.ts'
import { relayed, type Side, turn } from './relay-sides.ts'

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
  it('is how long nobody has spoken', async (t) => {
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
  it('is told why at the caller’s end, and that the caller goes at the line’s', async (t) => {
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

  it('is a failure where the line breaks, which is told of the first error only', async (t) => {
    const { caller, line, ends } = await relayed(t)
    line.destroy(Object.assign(new Error('first'), { code: 'ECONNRESET', syscall: 'read' }))
    await turn()
    line.emit('error', Object.assign(new Error('second'), { code: 'EPIPE', syscall: 'write' }))
    caller.destroy()
    await turn()
    const [failure, ...more] = ends() as Failure[]
    assert.deepEqual(more, [])
    assert.deepEqual([failure?.code, failure?.retryable, failure?.fault], ['upstream_error', false, 'model'])
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
