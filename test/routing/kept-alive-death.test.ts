import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { describe, it } from 'node:test'
import { exchange, gatewayFor } from '../support/exchange.ts'
import { startRawServer } from '../support/raw-server.ts'

const BODY = JSON.stringify({ choices: [{ message: { content: 'Hello' }, finish_reason: 'stop' }] })
const ANSWER = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${BODY.length}\r\n\r\n${BODY}`

const later = (ms: number, then: () => void) => void setTimeout(then, ms)

describe('a request that may have reached the upstream is not sent again', () => {
  for (const [what, dies, resent] of [
    ['closed at once', (socket: Socket) => socket.destroy(), true],
    ['reset at once', (socket: Socket) => socket.resetAndDestroy(), true],
    ['closed after 300 ms', (socket: Socket) => later(300, () => socket.destroy()), false],
    ['reset after 300 ms', (socket: Socket) => later(300, () => socket.resetAndDestroy()), false],
    [
      'closed behind an interim answer',
      (socket: Socket) =>
        void socket.write('HTTP/1.1 102 Processing\r\n\r\n', () => later(5, () => socket.destroy())),
      false,
    ],
    [
      'closed behind part of a head',
      (socket: Socket) => void socket.write('HTTP/1.1 2', () => later(5, () => socket.destroy())),
      false,
    ],
  ] as const) {
    it(`${what}: ${resent ? 'sent once more, and the trace says so' : 'an outcome'}`, async (t) => {
      const server = await startRawServer((socket, request) => {
        if (request === 0 || server.connections > 1) socket.write(ANSWER)
        else dies(socket)
      })
      t.after(() => server.close())
      const gateway = await gatewayFor(t, { lines: [{ url: server.url }] })
      assert.equal((await exchange(gateway)).status, 200)
      const got = await exchange(gateway)
      assert.equal(got.status, resent ? 200 : 502)
      assert.equal(server.connections, resent ? 2 : 1)
      const { routing } = await gateway.entry(got.requestId)
      const [attempt] = routing?.attempts ?? []
      assert.equal(routing?.attempts.length, 1)
      if (resent) assert.match(attempt?.detail ?? '', /sent again over a fresh connection/)
      else assert.doesNotMatch(attempt?.detail ?? '', /sent again/)
    })
  }

  it('not even over a fresh connection that dies at once', async (t) => {
    let served = false
    const server = await startRawServer((socket) => {
      if (served) socket.destroy()
      else socket.write(ANSWER)
      served = true
    })
    t.after(() => server.close())
    const gateway = await gatewayFor(t, { lines: [{ url: server.url }] })
    await exchange(gateway)
    assert.equal((await exchange(gateway)).status, 502)
    assert.equal(server.connections, 2)
  })
})

describe('an interim answer that nobody asked for', () => {
  const interim = (status: string) => `HTTP/1.1 ${status}\r\n\r\n`
  for (const heads of [
    ['100 Continue'],
    ['102 Processing'],
    ['103 Early Hints'],
    ['100 Continue', '100 Continue'],
    ['103 Early Hints', '100 Continue', '102 Processing'],
  ]) {
    for (const size of [1, 7, 10_000]) {
      it(`${heads.join(', ')} in pieces of ${size} is ignored`, async (t) => {
        const server = await startRawServer((socket) => {
          socket.setNoDelay(true)
          const bytes = heads.map(interim).join('') + ANSWER
          const write = (at: number): void => {
            if (at < bytes.length)
              socket.write(bytes.slice(at, at + size), () => setImmediate(write, at + size))
          }
          write(0)
        })
        t.after(() => server.close())
        const gateway = await gatewayFor(t, { lines: [{ url: server.url }] })
        for (let i = 0; i < 2; i++) assert.equal((await exchange(gateway)).status, 200)
        assert.equal(server.connections, 1)
      })
    }
  }
})
