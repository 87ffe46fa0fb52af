import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, IncomingMessage } from 'node:http'
import { type AddressInfo, Socket } from 'node:net'
import { describe, it } from 'node:test'
import { upgradeOf } from '../../../lib/core/call/index.ts'
import { isWebSocketRequest, upgradeHandler } from '../../../lib/middleware/begin-call/index.ts'
import { rawClient } from '../../support/app-server.ts'
import { until } from '../../support/until.ts'

/** A request for a WebSocket, or for what the headers say. */
function requestOf(headers: Record<string, string> = { upgrade: 'websocket' }, method = 'GET') {
  return Object.assign(new IncomingMessage(new Socket()), { method, headers, url: '/' })
}

/** An upgradeHandler with sessions on which nothing was said for so long; one without a time is no session yet. */
function opened(idle: readonly (number | undefined)[]) {
  const closed: [idleMs: number, code: number, reason: string][] = []
  const upgrades = upgradeHandler(() => {})
  const sockets = idle.map((idleMs) => {
    const socket = new Socket()
    const req = requestOf()
    upgrades.handle(req, socket, Buffer.alloc(0))
    const upgrade = upgradeOf(req)
    assert.ok(upgrade)
    if (idleMs !== undefined)
      upgrade.session = { idleMs, close: (code, reason) => void closed.push([idleMs, code, reason]) }
    return socket
  })
  return { upgrades, sockets, closed }
}

describe('isWebSocketRequest', () => {
  for (const [method, headers, expected] of [
    ['GET', { upgrade: 'websocket' }, true],
    ['GET', { upgrade: 'WebSocket' }, true],
    ['GET', { upgrade: 'h2c' }, false],
    ['GET', { upgrade: 'websocket2' }, false],
    ['GET', { upgrade: '' }, false],
    ['GET', {}, false],
    ['POST', { upgrade: 'websocket' }, false],
    ['get', { upgrade: 'websocket' }, false],
  ] as const)
    it(`is ${expected} for ${method} with ${JSON.stringify(headers)}`, () => {
      assert.equal(isWebSocketRequest(requestOf(headers, method)), expected)
    })
})

describe('the connections of an upgradeHandler', () => {
  it('are counted until they are closed, each once', async () => {
    const { upgrades, sockets } = opened([undefined, 5, undefined])
    assert.equal(upgrades.size, 3)
    for (const [i, socket] of sockets.entries()) {
      socket.destroy()
      await once(socket, 'close')
      assert.equal(upgrades.size, 2 - i)
    }
  })

  it('are closed if nothing has been said for so long: WebSockets, and no other', () => {
    const { upgrades, sockets, closed } = opened([999, 1000, undefined, 1001, 0])
    upgrades.closeIdle(1000)
    assert.deepEqual(closed, [
      [1000, 1001, 'shutdown'],
      [1001, 1001, 'shutdown'],
    ])
    assert.ok(sockets.every(({ destroyed }) => !destroyed))
  })

  it('are all ended at a cut-off: WebSockets with a close frame, others at once', () => {
    const { upgrades, sockets, closed } = opened([0, undefined, 5])
    upgrades.cutOff()
    assert.deepEqual(closed, [
      [0, 1001, 'shutdown'],
      [5, 1001, 'shutdown'],
    ])
    assert.deepEqual(
      sockets.map(({ destroyed }) => destroyed),
      [false, true, false],
    )
  })
})

describe('the answer to an upgrade', () => {
  const ask = 'GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'

  it('reports each drain to its handler until all is sent, and then no more', async (t) => {
    let drained = 0
    let socketOf: Socket | undefined
    const upgrades = upgradeHandler((req, res) => {
      socketOf = req.socket
      res.on('drain', () => drained++)
      res.write('begun')
      socketOf.emit('drain')
      socketOf.emit('drain')
      res.once('finish', () => socketOf?.emit('drain'))
      res.end('done')
    })
    const server = createServer().on('upgrade', upgrades.handle).listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.after(() => server.close().closeAllConnections())
    const received = await rawClient((server.address() as AddressInfo).port, ask).end()
    assert.match(received, /begun[\s\S]*done/)
    assert.match(received, /\r\nconnection: close\r\n/i)
    assert.equal(drained, 2)
    await until(() => upgrades.size === 0)
    assert.equal(socketOf?.listenerCount('drain'), 0)
  })

  it('that refuses another upgrade says so, with the length of its body, and asks no app', async (t) => {
    let asked = 0
    const upgrades = upgradeHandler(() => asked++)
    const server = createServer({ shouldUpgradeCallback: () => true }).on('upgrade', upgrades.handle)
    await once(server.listen(0, '127.0.0.1'), 'listening')
    t.after(() => server.close().closeAllConnections())
    const { port } = server.address() as AddressInfo
    const received = await rawClient(port, ask.replace('websocket', 'h2c')).end()
    const [head = '', body = ''] = received.split('\r\n\r\n')
    assert.match(head, /^HTTP\/1\.1 400 /)
    const { error, request_id: id } = JSON.parse(body)
    assert.match(error.message, /^Only WebSockets can be upgraded to\./)
    assert.match(head, new RegExp(`\\r\\nx-request-id: ${id}(\\r\\n|$)`, 'i'))
    assert.match(head, new RegExp(`\\r\\ncontent-length: ${body.length}(\\r\\n|$)`, 'i'))
    assert.equal(asked, 0)
    await until(() => upgrades.size === 0)
  })
})
