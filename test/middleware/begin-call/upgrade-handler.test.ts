import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, IncomingMessage, type Server } from 'node:http'
import { type AddressInfo, Socket } from 'node:net'
import { PassThrough } from 'node:stream'
import { describe, it, type TestContext } from 'node:test'
import express, { type Express } from 'express'
import { type Call, callOf, upgradeOf } from '../../../lib/core/call/index.ts'
import {
  beginCall,
  isWebSocketRequest,
  type UpgradeHandler,
  upgradeHandler,
} from '../../../lib/middleware/begin-call/index.ts'
import { errorEnvelope, unknownPath } from '../../../lib/middleware/error-envelope/index.ts'
import { envelopeIn } from '../../support/answer-bodies.ts'
import { rawClient } from '../../support/app-server.ts'
import { until } from '../../support/until.ts'

interface Upgraded {
  readonly server: Server
  readonly port: number
  readonly upgrades: UpgradeHandler
  readonly calls: readonly Call[]
}

async function serve(
  t: TestContext,
  build: (app: Express) => void,
  options: Parameters<typeof createServer>[0] = {},
): Promise<Upgraded> {
  const app = express()
  const calls: Call[] = []
  app.set('trust proxy', true)
  app.use(beginCall({ onBegin: (call) => void calls.push(call) }))
  build(app)
  app.use(unknownPath(), errorEnvelope())
  const upgrades = upgradeHandler(app)
  const server = createServer(options, app).on('upgrade', upgrades.handle)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.after(() => {
    upgrades.cutOff()
    server.close()
    server.closeAllConnections()
  })
  return { server, port: (server.address() as AddressInfo).port, upgrades, calls }
}

const asking = (path: string, headers = '', method = 'GET', protocol = 'websocket'): string =>
  `${method} ${path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: ${protocol}\r\n${headers}\r\n`

describe('upgradeHandler', () => {
  it('closes what is no socket, and asks the app nothing', () => {
    let asked = 0
    const upgrades = upgradeHandler(() => asked++)
    const stream = new PassThrough()
    upgrades.handle(new IncomingMessage(new Socket()), stream, Buffer.alloc(0))
    assert.deepEqual([stream.destroyed, asked, upgrades.size], [true, 0, 0])
  })

  it('runs the chain, whose call answers on the socket and knows the address that the app trusts', async (t) => {
    const { port, calls } = await serve(t, (app) => {
      app.get('/echo', (req) => {
        const upgrade = upgradeOf(req)
        upgrade?.socket.end(`HTTP/1.1 101 Switching Protocols\r\n\r\n${upgrade.head.toString()}`)
      })
    })
    const client = rawClient(port, `${asking('/echo', 'X-Forwarded-For: 10.9.8.7\r\n')}first`)
    assert.match(await client.end(), /101 Switching Protocols\r\n\r\nfirst$/)
    const [call] = calls
    await until(() => call?.ended === true)
    assert.deepEqual(call?.outcome, { status: 101, errorCode: null, finish: 'completed' })
    assert.equal(call?.clientIp, '10.9.8.7')
  })

  it('answers what the chain refuses in its envelope, and closes behind it', async (t) => {
    const { port, upgrades, calls } = await serve(t, () => {})
    const received = await rawClient(port, asking('/none')).end()
    assert.match(received, /^HTTP\/1\.1 404 Not Found\r\n/)
    assert.match(received, /connection: close/i)
    const body = JSON.parse(received.slice(received.indexOf('\r\n\r\n')))
    assert.equal(body.error.code, 'not_found')
    assert.equal(body.request_id, calls[0]?.id)
    await until(() => upgrades.size === 0)
    assert.deepEqual(calls[0]?.outcome, { status: 404, errorCode: 'not_found', finish: 'refused' })
  })

  it('answers with what an ordinary handler answers, however much it is', async (t) => {
    const text = 'x'.repeat(5_000_000)
    const { port, upgrades, calls } = await serve(t, (app) => {
      app.get('/page', (_req, res) => {
        res.write(text)
        res.once('drain', () => res.end('the end'))
      })
    })
    const received = await rawClient(port, asking('/page')).end()
    assert.match(received, /^HTTP\/1\.1 200 OK/)
    assert.match(received, /the end/)
    assert.equal(/x-request-id: (\S+)/i.exec(received)?.[1], calls[0]?.id)
    await until(() => upgrades.size === 0 && calls[0]?.ended === true)
    assert.deepEqual(calls[0]?.outcome, { status: 200, errorCode: null, finish: 'completed' })
  })

  it('ends the call of a caller that goes away, and lives on', async (t) => {
    const { port, upgrades, calls } = await serve(t, (app) => void app.get('/wait', () => {}))
    const client = rawClient(port, asking('/wait'))
    await until(() => calls.length === 1)
    client.socket.resetAndDestroy()
    await until(() => calls[0]?.ended === true && upgrades.size === 0)
    assert.equal(calls[0]?.outcome?.errorCode, 'client_closed_request')
  })

  it('refuses other upgrades, whose body has not been read', async (t) => {
    const { port, calls } = await serve(
      t,
      (app) => {
        app.post('/echo', (_req, res) => void res.end())
      },
      { shouldUpgradeCallback: () => true },
    )
    const received = await rawClient(port, asking('/echo', 'Content-Length: 2\r\n', 'POST', 'h2c')).end()
    assert.match(received, /^HTTP\/1\.1 400/)
    const [head = '', body = ''] = received.split('\r\n\r\n')
    assert.match(head, /\r\ncontent-type: application\/json; charset=utf-8/i)
    assert.match(head, /\r\nx-request-id: req_/i)
    assert.match(head, /\r\nconnection: close/i)
    const { error } = envelopeIn(JSON.parse(body.slice(body.indexOf('{'), body.lastIndexOf('}') + 1)))
    assert.deepEqual([error.code, error.param], ['invalid_request', 'Upgrade'])
    assert.equal(calls.length, 0)
  })

  it('leaves other upgrades to the app where the server asks isWebSocketRequest', async (t) => {
    const { port } = await serve(
      t,
      (app) => {
        app.post('/echo', express.text(), (req, res) => void res.send(`${callOf(req).method} ${req.body}`))
      },
      { shouldUpgradeCallback: isWebSocketRequest },
    )
    const headers = 'Content-Length: 2\r\nContent-Type: text/plain\r\n'
    const client = rawClient(port, `${asking('/echo', headers, 'POST', 'h2c')}hi`)
    await client.until('POST hi')
    client.socket.destroy()
  })
})
