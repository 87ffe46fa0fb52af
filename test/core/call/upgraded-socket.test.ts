import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { before, beforeEach, describe, it } from 'node:test'
import { callOf, type OpenCall, openCall } from '../../../lib/core/call/index.ts'
import { authenticate, memoryKeyDirectory } from '../../../lib/middleware/authenticate/index.ts'
import { type AppServer, eventually, rawClient, serveApp } from '../../support/app-server.ts'
import { cleaningUp } from '../../support/clean-up.ts'

const keys = memoryKeyDirectory({
  accounts: [{ id: 'acme' }],
  keys: [{ id: 'k1', account: 'acme', secret: 'sk-1' }],
})
let app: AppServer
let call: OpenCall | undefined
let happened: string[] = []
let serve: (socket: Duplex, call: OpenCall) => void

const cleanUp = cleaningUp()
before(async () => {
  app = await serveApp(() => {})
  cleanUp.after(() => app.close())
  app.server.on('upgrade', (req: IncomingMessage, socket) => {
    const opened = openCall(req, socket)
    assert.equal(callOf(req), opened)
    opened.onEnd('slot', () => void happened.push('slot'))
    opened.onLeave(() => void happened.push('left'))
    authenticate({ keys })(req as never, socket as never, (error?: unknown) => {
      happened.push(error ? String((error as { code?: unknown }).code) : 'admitted')
      call = opened
      socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n')
      serve(socket, opened)
    })
  })
})
beforeEach(() => {
  call = undefined
  happened = []
})

const upgrade = (headers = 'Authorization: Bearer sk-1\r\n') =>
  rawClient(
    app.port,
    `GET /v1/realtime HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n${headers}\r\n`,
  )

describe('a call on an upgraded socket', () => {
  it('runs the chain, and ends completed when the gateway closes it', async () => {
    serve = (socket) => socket.end('bye')
    const received = await upgrade().end()
    assert.match(received, /^HTTP\/1\.1 101/)
    await eventually(() => call?.ended === true)
    assert.deepEqual(happened, ['admitted', 'slot'])
    assert.deepEqual(call?.outcome, { status: 101, errorCode: null, finish: 'completed' })
    assert.equal(call?.clientIp, '127.0.0.1')
    assert.equal(call?.principal?.keyId, 'k1')
  })

  it('refuses a bad key as it does elsewhere', async () => {
    serve = (socket) => socket.end()
    await upgrade('Authorization: Bearer sk-2\r\n').end()
    await eventually(() => call?.ended === true)
    assert.deepEqual(happened, ['invalid_credential', 'slot'])
  })

  it('ends when the caller closes its side and the gateway follows', async () => {
    serve = (socket) => void socket.resume().on('end', () => socket.end())
    const client = upgrade()
    await client.until('101')
    client.socket.end()
    await eventually(() => call?.ended === true)
    assert.deepEqual(happened, ['admitted', 'slot'])
  })

  it('ends when the caller resets it, and the process lives on without an error listener', async () => {
    serve = (socket) => assert.equal(socket.listenerCount('error'), 1)
    const client = upgrade()
    await client.until('101')
    client.socket.resetAndDestroy()
    await eventually(() => call?.ended === true)
    assert.deepEqual(happened, ['admitted', 'left', 'slot'])
    assert.equal(call?.outcome?.errorCode, 'client_closed_request')
  })

  it('ends when it was closed before the call was opened', async () => {
    const late: string[] = []
    app.server.prependOnceListener('upgrade', (_req, socket) => void socket.destroy())
    serve = (_socket, opened) => opened.onEnd('late', () => void late.push('late'))
    const client = upgrade()
    await once(client.socket, 'close')
    await eventually(() => call?.ended === true)
    assert.deepEqual(late, ['late'])
  })
})
