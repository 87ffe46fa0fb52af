import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import express from 'express'
import { Readiness } from '../../../examples/gateway/serving/readiness.ts'
import { drainServer } from '../../../examples/gateway/serving/shutdown.ts'
import { upgradeOf } from '../../../lib/core/call/index.ts'
import { memoryKeyDirectory } from '../../../lib/middleware/authenticate/index.ts'
import { Connections, upgradeHandler } from '../../../lib/middleware/begin-call/index.ts'
import { rawClient, recordingLogger } from '../../support/app-server.ts'
import { beginSession, sessionGateway } from '../../support/session-gateway.ts'
import { endlessUpstream } from '../../support/session-upstream.ts'
import { until } from '../../support/until.ts'

async function webSocketServer() {
  const app = express()
  app.use((req) => {
    const socket = upgradeOf(req)?.socket
    socket?.on('error', () => {}).write('HTTP/1.1 101 Switching Protocols\r\n\r\n')
  })
  const upgrades = upgradeHandler(app)
  const server = createServer(app).on('upgrade', upgrades.handle)
  const connections = new Connections()
  connections.watch(server)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const client = rawClient(
    (server.address() as AddressInfo).port,
    'GET /x HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
  )
  await client.until('101')
  const readiness = new Readiness(async () => {})
  return {
    draining: {
      server,
      connections,
      upgrades,
      readiness,
      noticeMs: 250,
      abortCalls: () => {},
      logger: recordingLogger(),
    },
    client,
  }
}

describe('a WebSocket while its gateway is drained', () => {
  it('lives on until it ends by itself', async () => {
    const { draining, client } = await webSocketServer()
    const { server, upgrades } = draining
    const drained = drainServer(draining)
    await until(() => !server.listening, 'the door to close')
    assert.equal(upgrades.size, 1)
    assert.equal(client.socket.destroyed, false)
    // Longer than connections on which nothing comes are kept.
    await sleep(1200)
    assert.equal(client.socket.destroyed, false)
    client.socket.resetAndDestroy()
    assert.equal(await drained, true)
  })

  it('is cut off when the time is up', async () => {
    const { draining, client } = await webSocketServer()
    assert.equal(await drainServer(draining, 1200), false)
    await client.end()
    await until(() => draining.upgrades.size === 0)
  })
})

describe('WebSockets that are passed on', () => {
  it('end with a close frame: idle ones during the notice, busy ones when the time is up', async (t) => {
    const cleanUp = { after: (end: () => unknown) => t.after(async () => void (await end())) }
    const upstream = await endlessUpstream(t)
    const gateway = await sessionGateway(cleanUp, {
      upstream: upstream.url,
      keys: memoryKeyDirectory,
      config: { accounts: [{ id: 'a' }], keys: [{ id: 'key', account: 'a', secret: 'sk-a' }] },
    })
    const { server, upgrades } = gateway
    const [idle, busy] = await Promise.all([
      beginSession(gateway, 'websocket', 'sk-a'),
      beginSession(gateway, 'websocket', 'sk-a'),
    ])
    const talking = setInterval(() => busy.socket?.send('and more'), 100)
    const readiness = new Readiness(async () => {})
    const logger = recordingLogger()
    const connections = new Connections()
    connections.watch(server)
    const from = performance.now()
    const drained = drainServer(
      { server, connections, upgrades, readiness, noticeMs: 3000, abortCalls: () => {}, logger },
      1000,
    )
    assert.equal(await idle.ended(), '1001 shutdown')
    assert.ok(performance.now() - from < 3000 && server.listening, 'the notice is not over')
    assert.equal(busy.over, false)
    // A new one may still come.
    const late = await beginSession(gateway, 'websocket', 'sk-a')
    assert.equal(await late.ended(), '1001 shutdown')
    assert.equal(await busy.ended(), '1001 shutdown')
    clearInterval(talking)
    assert.equal(await drained, false)
    await until(() => gateway.open.size === 0, 'the end of all calls')
    const entries = await gateway.entriesOf('key')
    assert.deepEqual(
      entries.map(({ status, outcome }) => [status, outcome]),
      Array(3).fill([101, 'completed']),
    )
  })
})
