import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it } from 'node:test'
import type { Response as ExpressResponse, RequestHandler } from 'express'
import { beginCall } from '../../lib/begin-call/index.ts'
import type { Call, CallOutcome } from '../../lib/call/index.ts'
import { errorEnvelope } from '../../lib/error-envelope/index.ts'
import { GatewayError } from '../../lib/errors/index.ts'
import { type AppServer, eventually, rawClient, serveApp } from '../support/app-server.ts'

let app: AppServer
let handler: RequestHandler
/** What happened, in order. */
let happened: string[] = []
let calls: Call[] = []

before(async () => {
  app = await serveApp((app) => {
    const onBegin = (call: Call) => {
      calls.push(call)
      call.onEnd('first', () => void happened.push('given back'))
      call.onLeave(() => void happened.push('left'))
    }
    app.use(beginCall({ onBegin, logger: { info() {}, warn() {}, error() {} } }))
    app.use((req, res, next) => handler(req, res, next))
    app.use(errorEnvelope())
  })
})
after(() => app.close())
beforeEach(() => {
  happened = []
  calls = []
})

const GET = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'
const ended = () =>
  eventually(() => calls.length > 0 && calls.every((call) => call.ended), 'the end of the call')
const LEFT: CallOutcome = { status: 499, errorCode: 'client_closed_request', finish: 'interrupted' }

/** Waits a few turns more: what would happen twice would have by then. */
const settleDown = async () => {
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve))
}

describe('calls that share a connection', () => {
  it('end one after the other on a kept-alive connection, and leave no listener behind', async () => {
    handler = (_req, res) => void res.end('ok')
    const client = rawClient(app.port)
    let listeners = 0
    app.server.once('connection', (socket) => {
      listeners = socket.listenerCount('close')
      socket.once('close', () => {})
    })
    for (let i = 1; i <= 20; i++) {
      client.socket.write(GET)
      await eventually(() => calls.length === i && calls.every((call) => call.ended))
    }
    assert.equal(happened.filter((what) => what === 'given back').length, 20)
    assert.equal(happened.includes('left'), false)
    assert.equal(new Set(calls.map(({ id }) => id)).size, 20)
    assert.ok(listeners < 10)
    client.socket.destroy()
  })

  it('end each with its own answer when they are pipelined', async () => {
    const waiting: ExpressResponse[] = []
    handler = (_req, res) => void waiting.push(res)
    const client = rawClient(app.port, GET + GET)
    await eventually(() => waiting.length === 2)
    waiting[1]?.end('two')
    await settleDown()
    assert.deepEqual([calls[0]?.ended, calls[1]?.ended], [false, false])
    waiting[0]?.end('one')
    await client.until('two')
    await ended()
    assert.deepEqual(
      calls.map(({ outcome }) => outcome?.finish),
      ['completed', 'completed'],
    )
    assert.equal(happened.includes('left'), false)
    client.socket.destroy()
  })

  for (const [what, bytes] of [
    ['without bodies', GET + GET + GET],
    ['with bodies that were read', 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}'.repeat(3)],
  ] as const) {
    it(`end all when the caller leaves pipelined requests ${what}`, async () => {
      let read = 0
      handler = (req) => void req.resume().on('end', () => read++)
      const client = rawClient(app.port, bytes)
      await eventually(() => read === 3)
      client.socket.destroy()
      await ended()
      assert.equal(calls.length, 3)
      assert.equal(happened.filter((event) => event === 'given back').length, 3)
      assert.equal(happened.filter((event) => event === 'left').length, 3)
      for (const call of calls) assert.deepEqual(call.outcome, LEFT)
    })
  }

  it('ends a queued answer without its regular end when it broke off', async () => {
    const waiting: { res: ExpressResponse; next: (error: unknown) => void }[] = []
    handler = (_req, res, next) => void waiting.push({ res, next })
    const client = rawClient(app.port, GET + GET)
    await eventually(() => waiting.length === 2)
    waiting[1]?.res.write('part')
    waiting[1]?.next(new GatewayError('upstream_error'))
    waiting[0]?.res.end('one')
    const received = await client.end()
    assert.match(received, /one/)
    assert.doesNotMatch(received, /\r\n0\r\n\r\n$/)
    await ended()
    assert.equal(calls[0]?.outcome?.finish, 'completed')
    assert.equal(calls[1]?.outcome?.errorCode, 'upstream_error')
  })
})
