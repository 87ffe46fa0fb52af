import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import express from 'express'
import { HTTP_BOUNDS, httpServer } from '../../../examples/gateway/serving/server.ts'
import type { Call } from '../../../lib/core/call/index.ts'
import { loadConfig } from '../../../lib/core/config/index.ts'
import { beginCall, Connections, refuseUnparsed } from '../../../lib/middleware/begin-call/index.ts'
import { errorEnvelope } from '../../../lib/middleware/error-envelope/index.ts'
import { readRequest } from '../../../lib/middleware/read-request/index.ts'
import { type RawClient, rawClient } from '../../support/app-server.ts'
import { until } from '../../support/until.ts'

const BOUNDS = { headersTimeout: 300, requestTimeout: 600, connectionsCheckingInterval: 20 }
const { catalog } = loadConfig({
  models: [{ id: 'chat', kind: 'chat' }],
  lines: [
    { id: 'l', provider: 'p', protocol: 'openai', baseUrl: 'http://127.0.0.1/v1', models: { chat: 'u' } },
  ],
  accounts: [],
  keys: [],
})

/** The server of the gateway with smaller bounds, and a chain that reads bodies. */
async function serve(t: TestContext) {
  const open = new Set<Call>()
  let served = 0
  const app = express()
  const onBegin = (call: Call): void => {
    open.add(call)
    call.onEnd('test', () => void open.delete(call))
  }
  app.use(beginCall({ onBegin }))
  app.get('/', (_req, res) => void res.end('fine'))
  app.post('/v1/chat/completions', readRequest({ catalog }), (_req, res) => {
    served++
    res.end('served')
  })
  app.use(errorEnvelope())
  const refused = express().use(beginCall(), refuseUnparsed(), errorEnvelope())
  const connections = new Connections()
  const server = httpServer({ app, refused, connections }, { ...HTTP_BOUNDS, ...BOUNDS })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.after(() => {
    connections.close()
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { port, open, served: () => served }
}

/** Sends a byte every few milliseconds for as long as the connection lasts. */
async function trickle({ socket }: RawClient, byte: string): Promise<void> {
  const timer = setInterval(() => socket.write(byte), 10)
  // A byte that was on its way when the server closed makes it a reset, which is an end like any other.
  await new Promise((resolve) => socket.once('close', resolve))
  clearInterval(timer)
}

describe('a slow caller', () => {
  it('that never ends its head is cut off', async (t) => {
    const { port, open } = await serve(t)
    const client = rawClient(port, 'GET / HTTP/1.1\r\nhost: x\r\nx-slow: ')
    await trickle(client, 'x')
    assert.match(client.received, /^HTTP\/1\.1 408 /)
    assert.equal(open.size, 0)
  })

  it('that says nothing at all is cut off', async (t) => {
    const { port } = await serve(t)
    assert.match(await rawClient(port).end(), /^(?:HTTP\/1\.1 408 |$)/)
  })

  it('that never ends its body is cut off, and its call ends', async (t) => {
    const { port, open, served } = await serve(t)
    const head = 'POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\n{"model":"'
    const client = rawClient(port, head)
    await until(() => open.size === 1)
    await trickle(client, 'x')
    await until(() => open.size === 0, 'the end of the call')
    assert.equal(served(), 0)
  })

  it('and a hundred of them keep no other caller from being served', async (t) => {
    const { port } = await serve(t)
    const slow = Array.from({ length: 100 }, () => rawClient(port, 'GET / HTTP/1.1\r\nx-slow: '))
    const answer = await fetch(`http://127.0.0.1:${port}/`)
    assert.equal(await answer.text(), 'fine')
    await Promise.all(slow.map((client) => client.end()))
  })

  it('is given seconds, not minutes, for its head', () => {
    assert.ok(HTTP_BOUNDS.headersTimeout! <= 15_000)
    assert.ok(HTTP_BOUNDS.requestTimeout! <= 600_000)
    assert.ok(HTTP_BOUNDS.connectionsCheckingInterval! <= 5000)
  })
})
