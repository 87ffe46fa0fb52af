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
      call.onEnd('first', () => void happened.push('first given back'))
      call.onEnd('second', () => void happened.push('second given back'))
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
const GIVEN_BACK = ['second given back', 'first given back']
const LEFT: CallOutcome = { status: 499, errorCode: 'client_closed_request', finish: 'interrupted' }

/** Waits a few turns more: what would happen twice would have by then. */
const settleDown = async () => {
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve))
}

describe('a call ends once, with everything given back,', () => {
  const answers: [string, RequestHandler, CallOutcome][] = [
    [
      'by a whole answer',
      (_req, res) => void res.json({}),
      { status: 200, errorCode: null, finish: 'completed' },
    ],
    [
      'by an empty answer',
      (_req, res) => void res.status(204).end(),
      { status: 204, errorCode: null, finish: 'completed' },
    ],
    [
      'by a stream that ends',
      (_req, res) => {
        res.write('a')
        setImmediate(() => res.end('b'))
      },
      { status: 200, errorCode: null, finish: 'completed' },
    ],
    [
      'by an answer of another’s that refuses',
      (_req, res) => void res.status(404).end(),
      { status: 404, errorCode: null, finish: 'refused' },
    ],
    [
      'by a refusal',
      (_req, _res, next) => next(new GatewayError('key_expired')),
      { status: 403, errorCode: 'key_expired', finish: 'refused' },
    ],
    [
      'by an exception',
      () => {
        throw new Error('broken')
      },
      { status: 500, errorCode: 'internal_error', finish: 'failed' },
    ],
    [
      'by a rejection',
      () => Promise.reject(new Error('broken')),
      { status: 500, errorCode: 'internal_error', finish: 'failed' },
    ],
  ]
  for (const [how, run, outcome] of answers) {
    it(how, async () => {
      handler = run
      const res = await fetch(app.url)
      await res.arrayBuffer()
      await ended()
      await settleDown()
      assert.deepEqual(happened, GIVEN_BACK)
      assert.deepEqual(calls[0]?.outcome, outcome)
      assert.equal(calls[0]?.left, false)
    })
  }

  const breaks: [string, (res: ExpressResponse) => void, CallOutcome][] = [
    ['by a destroyed response before the headers', (res) => void res.destroy(), LEFT],
    ['by a destroyed response with an error', (res) => void res.destroy(new Error('gone')), LEFT],
    [
      'by a destroyed response in mid-body',
      (res) => {
        res.write('part')
        setImmediate(() => res.destroy())
      },
      LEFT,
    ],
    ['by a destroyed socket', (res) => void res.socket?.destroy(), LEFT],
    ['by a reset socket', (res) => void res.socket?.resetAndDestroy(), LEFT],
  ]
  for (const [how, run, outcome] of breaks) {
    it(how, async () => {
      handler = (_req, res) => run(res)
      await rawClient(app.port, GET).end()
      await ended()
      await settleDown()
      assert.deepEqual(happened, ['left', ...GIVEN_BACK])
      assert.deepEqual(calls[0]?.outcome, outcome)
      assert.equal(calls[0]?.left, true)
    })
  }

  it('by an error after the first byte: it is interrupted, with the status that was sent', async () => {
    handler = (_req, res, next) => {
      res.write('part')
      next(new GatewayError('upstream_error'))
    }
    await rawClient(app.port, GET).end()
    await ended()
    assert.deepEqual(happened, ['left', ...GIVEN_BACK])
    assert.deepEqual(calls[0]?.outcome, { status: 200, errorCode: 'upstream_error', finish: 'interrupted' })
  })

  for (const [when, run] of [
    ['before the headers', () => {}],
    ['between headers and body', (res: ExpressResponse) => res.flushHeaders()],
    ['in mid-body', (res: ExpressResponse) => void res.write('part')],
    ['with more to be sent than it reads', (res: ExpressResponse) => void res.write('x'.repeat(20_000_000))],
    ['with a whole answer unread', (res: ExpressResponse) => void res.end('x'.repeat(20_000_000))],
  ] as [string, (res: ExpressResponse) => void][]) {
    it(`by a caller that leaves ${when}`, async () => {
      handler = (_req, res) => run(res)
      const client = rawClient(app.port)
      client.socket.pause()
      client.socket.write(GET)
      await eventually(() => calls.length === 1)
      await settleDown()
      assert.deepEqual(happened, [])
      client.socket.destroy()
      await ended()
      await settleDown()
      assert.deepEqual(happened, ['left', ...GIVEN_BACK])
      assert.deepEqual(calls[0]?.outcome, LEFT)
    })
  }

  it('by a caller that leaves while it still sends its body', async () => {
    handler = (req) => void req.resume()
    const client = rawClient(app.port, 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf')
    await eventually(() => calls.length === 1)
    client.socket.destroy()
    await ended()
    assert.deepEqual(happened, ['left', ...GIVEN_BACK])
  })

  it('by a caller that resets the connection', async () => {
    handler = (_req, res) => void res.write('part')
    const client = rawClient(app.port, GET)
    await client.until('part')
    client.socket.resetAndDestroy()
    await ended()
    assert.deepEqual(happened, ['left', ...GIVEN_BACK])
  })

  it('writing to a caller that has gone does no harm', async () => {
    let written = false
    handler = (_req, res) => {
      calls[0]?.onEnd('writer', () => {
        res.write('more')
        res.end('end')
        written = true
      })
    }
    const client = rawClient(app.port, GET)
    await eventually(() => calls.length === 1)
    client.socket.destroy()
    await ended()
    await settleDown()
    assert.equal(written, true)
    assert.deepEqual(calls[0]?.outcome, LEFT)
  })
})
