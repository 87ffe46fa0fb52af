import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import type { Server } from 'node:http'
import { createServer } from 'node:net'
import { it, type TestContext } from 'node:test'
import { cutStalledCallers } from '../../../lib/middleware/begin-call/index.ts'

/** A server on the clock of the test, and callers of which the test says what they have taken. */
function served(t: TestContext, options?: { afterMs?: number }) {
  let now = 0
  t.mock.timers.enable({ apis: ['setInterval'] })
  t.mock.method(performance, 'now', () => now)
  const server = createServer()
  cutStalledCallers(server as Server, options)
  return {
    server,
    /** @param handle without one, the system tells nothing of the running write. */
    connect(handle: { writeQueueSize: number } | null = { writeQueueSize: 0 }) {
      const socket = Object.assign(new EventEmitter(), {
        bytesWritten: 0,
        writableLength: 0,
        _handle: handle,
        cut: false,
        destroy() {
          this.cut = true
        },
      })
      server.emit('connection', socket)
      return socket
    },
    pass(ms: number) {
      for (let i = 0; i < ms; i += 50) {
        now += 50
        t.mock.timers.tick(50)
      }
    },
  }
}

for (const [options, afterMs, lookMs] of [
  [{ afterMs: 1000 }, 1000, 250],
  [{ afterMs: 10_000 }, 10_000, 2500],
  [{}, 60_000, 5000],
  [undefined, 60_000, 5000],
] as const) {
  it(`a caller is cut that has taken no byte for ${afterMs} ms, and no other`, (t) => {
    const { connect, pass } = served(t, options)
    const idle = connect()
    const [stalled, stalledInOneWrite, slow, slowInOneWrite, later] = Array.from({ length: 5 }, () =>
      connect(),
    )
    const unknown = connect(null)
    for (const each of [stalled, slow, unknown])
      Object.assign(each!, { bytesWritten: 9000, writableLength: 9000 })
    for (const each of [stalledInOneWrite, slowInOneWrite]) each!._handle!.writeQueueSize = 9000
    pass(lookMs)
    for (let passed = lookMs; passed < afterMs; passed += lookMs) {
      slow!.writableLength -= 1
      slowInOneWrite!._handle!.writeQueueSize -= 1
      pass(lookMs)
      assert.equal(stalled!.cut, false, `${passed}`)
    }
    later!.writableLength = 10
    pass(lookMs)
    assert.deepEqual(
      [idle, stalled, stalledInOneWrite, unknown, slow, slowInOneWrite, later].map((each) => each!.cut),
      [false, true, true, true, false, false, false],
    )
    pass(lookMs)
    assert.equal(later!.cut, false, 'its time has begun when it was first seen to wait')
    slow!.writableLength = 0
    pass(afterMs - lookMs)
    assert.deepEqual([slow!.cut, slowInOneWrite!.cut, later!.cut], [false, true, true])
  })
}

it('nobody is looked at who has gone, or whose server is closed', (t) => {
  const { connect, pass, server } = served(t, { afterMs: 1000 })
  const [gone, here] = [connect(), connect()]
  for (const each of [gone, here]) each.writableLength = 5
  pass(500)
  gone.emit('close')
  pass(5000)
  assert.deepEqual([gone.cut, here.cut], [false, true])
  const later = connect()
  later.writableLength = 5
  server.emit('close')
  pass(5000)
  assert.equal(later.cut, false)
})

it('a caller has its whole time from when it was first seen to wait, if only for one byte', (t) => {
  const { connect, pass } = served(t, { afterMs: 1000 })
  pass(100_000)
  const [first, second, none] = [connect(), connect(), connect()]
  Object.assign(first, { bytesWritten: 1, writableLength: 1 })
  second._handle!.writeQueueSize = 1
  pass(1000)
  assert.deepEqual([first.cut, second.cut], [false, false])
  pass(250)
  assert.deepEqual([first.cut, second.cut, none.cut], [true, true, false])
})

it('a connection whose handle is gone is looked at like any other', (t) => {
  const { connect, pass } = served(t, { afterMs: 1000 })
  const socket = connect({} as { writeQueueSize: number })
  pass(5000)
  assert.equal(socket.cut, false)
  socket.writableLength = 5
  pass(1500)
  assert.equal(socket.cut, true)
})

it('a time that is none is a mistake', () => {
  for (const afterMs of [0, -1, Number.NaN])
    assert.throws(
      () => cutStalledCallers(new EventEmitter() as Server, { afterMs }),
      /"afterMs" must be above 0/,
    )
})
