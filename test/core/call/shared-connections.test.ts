import assert from 'node:assert/strict'
import { before, beforeEach, describe, it } from 'node:test'
import type { Response as ExpressResponse } from 'express'
import { GatewayError } from '../../../lib/core/errors/index.ts'
import { eventually, rawClient } from '../../support/app-server.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { GET, LEFT, type ObservedApp, serveObserved, settleDown } from './observed-app.ts'

let app: ObservedApp
const cleanUp = cleaningUp()
before(async () => {
  app = await serveObserved(['given back'])
  cleanUp.after(() => app.close())
})
beforeEach(() => app.reset())

describe('calls that share a connection', () => {
  it('end one after the other on a kept-alive connection, and leave no listener behind', async () => {
    app.handler = (_req, res) => void res.end('ok')
    const client = rawClient(app.port)
    let listeners = 0
    app.server.once('connection', (socket) => {
      listeners = socket.listenerCount('close')
      socket.once('close', () => {})
    })
    for (let i = 1; i <= 20; i++) {
      client.socket.write(GET)
      await eventually(() => app.calls.length === i && app.calls.every((call) => call.ended))
    }
    assert.equal(app.happened.filter((what) => what === 'given back').length, 20)
    assert.equal(app.happened.includes('left'), false)
    assert.equal(new Set(app.calls.map(({ id }) => id)).size, 20)
    assert.ok(listeners < 10)
    client.socket.destroy()
  })

  it('end each with its own answer when they are pipelined', async () => {
    const waiting: ExpressResponse[] = []
    app.handler = (_req, res) => void waiting.push(res)
    const client = rawClient(app.port, GET + GET)
    await eventually(() => waiting.length === 2)
    waiting[1]?.end('two')
    await settleDown()
    assert.deepEqual([app.calls[0]?.ended, app.calls[1]?.ended], [false, false])
    waiting[0]?.end('one')
    await client.until('two')
    await app.ended()
    assert.deepEqual(
      app.calls.map(({ outcome }) => outcome?.finish),
      ['completed', 'completed'],
    )
    assert.equal(app.happened.includes('left'), false)
    client.socket.destroy()
  })

  for (const [what, bytes] of [
    ['without bodies', GET + GET + GET],
    ['with bodies that were read', 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}'.repeat(3)],
  ] as const) {
    it(`end all when the caller leaves pipelined requests ${what}`, async () => {
      let read = 0
      app.handler = (req) => void req.resume().on('end', () => read++)
      const client = rawClient(app.port, bytes)
      await eventually(() => read === 3)
      client.socket.destroy()
      await app.ended()
      assert.equal(app.calls.length, 3)
      assert.equal(app.happened.filter((event) => event === 'given back').length, 3)
      assert.equal(app.happened.filter((event) => event === 'left').length, 3)
      for (const call of app.calls) assert.deepEqual(call.outcome, LEFT)
    })
  }

  it('ends a queued answer without its regular end when it broke off', async () => {
    const waiting: { res: ExpressResponse; next: (error: unknown) => void }[] = []
    app.handler = (_req, res, next) => void waiting.push({ res, next })
    const client = rawClient(app.port, GET + GET)
    await eventually(() => waiting.length === 2)
    waiting[1]?.res.write('part')
    waiting[1]?.next(new GatewayError('upstream_error'))
    waiting[0]?.res.end('one')
    const received = await client.end()
    assert.match(received, /one/)
    assert.doesNotMatch(received, /\r\n0\r\n\r\n$/)
    await app.ended()
    assert.equal(app.calls[0]?.outcome?.finish, 'completed')
    assert.equal(app.calls[1]?.outcome?.errorCode, 'upstream_error')
  })
})
