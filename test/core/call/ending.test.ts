import assert from 'node:assert/strict'
import { before, beforeEach, describe, it } from 'node:test'
import type { Response as ExpressResponse, RequestHandler } from 'express'
import type { CallOutcome } from '../../../lib/core/call/index.ts'
import { GatewayError } from '../../../lib/core/errors/index.ts'
import { eventually, rawClient } from '../../support/app-server.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { GET, LEFT, type ObservedApp, serveObserved, settleDown } from './observed-app.ts'

let app: ObservedApp
const cleanUp = cleaningUp()
before(async () => {
  app = await serveObserved(['first given back', 'second given back'])
  cleanUp.after(() => app.close())
})
beforeEach(() => app.reset())

const GIVEN_BACK = ['second given back', 'first given back']

describe('a call ends once, with all its resources released,', () => {
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
      'by a refusal of another handler’s',
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
      app.handler = run
      const res = await fetch(app.url)
      await res.arrayBuffer()
      await app.ended()
      await settleDown()
      assert.deepEqual(app.happened, GIVEN_BACK)
      assert.deepEqual(app.calls[0]?.outcome, outcome)
      assert.equal(app.calls[0]?.left, false)
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
      app.handler = (_req, res) => run(res)
      await rawClient(app.port, GET).end()
      await app.ended()
      await settleDown()
      assert.deepEqual(app.happened, ['left', ...GIVEN_BACK])
      assert.deepEqual(app.calls[0]?.outcome, outcome)
      assert.equal(app.calls[0]?.left, true)
    })
  }

  it('by an error after the first byte: it is interrupted, with the status that was sent', async () => {
    app.handler = (_req, res, next) => {
      res.write('part')
      next(new GatewayError('upstream_error'))
    }
    await rawClient(app.port, GET).end()
    await app.ended()
    assert.deepEqual(app.happened, ['left', ...GIVEN_BACK])
    assert.deepEqual(app.calls[0]?.outcome, {
      status: 200,
      errorCode: 'upstream_error',
      finish: 'interrupted',
    })
  })

  for (const [when, run] of [
    ['before the headers', () => {}],
    ['between headers and body', (res: ExpressResponse) => res.flushHeaders()],
    ['in mid-body', (res: ExpressResponse) => void res.write('part')],
    [
      'with more to be sent than the caller reads',
      (res: ExpressResponse) => void res.write('x'.repeat(20_000_000)),
    ],
    ['with a whole answer that is unread', (res: ExpressResponse) => void res.end('x'.repeat(20_000_000))],
  ] as [string, (res: ExpressResponse) => void][]) {
    it(`by a caller that leaves ${when}`, async () => {
      app.handler = (_req, res) => run(res)
      const client = rawClient(app.port)
      client.socket.pause()
      client.socket.write(GET)
      await eventually(() => app.calls.length === 1)
      await settleDown()
      assert.deepEqual(app.happened, [])
      client.socket.destroy()
      await app.ended()
      await settleDown()
      assert.deepEqual(app.happened, ['left', ...GIVEN_BACK])
      assert.deepEqual(app.calls[0]?.outcome, LEFT)
    })
  }

  it('by a caller that leaves while it still sends its body', async () => {
    app.handler = (req) => void req.resume()
    const client = rawClient(app.port, 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf')
    await eventually(() => app.calls.length === 1)
    client.socket.destroy()
    await app.ended()
    assert.deepEqual(app.happened, ['left', ...GIVEN_BACK])
  })

  it('by a caller that resets the connection', async () => {
    app.handler = (_req, res) => void res.write('part')
    const client = rawClient(app.port, GET)
    await client.until('part')
    client.socket.resetAndDestroy()
    await app.ended()
    assert.deepEqual(app.happened, ['left', ...GIVEN_BACK])
  })

  it('a write to a caller that has gone does no harm', async () => {
    let written = false
    app.handler = (_req, res) => {
      app.calls[0]?.onEnd('writer', () => {
        res.write('more')
        res.end('end')
        written = true
      })
    }
    const client = rawClient(app.port, GET)
    await eventually(() => app.calls.length === 1)
    client.socket.destroy()
    await app.ended()
    await settleDown()
    assert.equal(written, true)
    assert.deepEqual(app.calls[0]?.outcome, LEFT)
  })
})
