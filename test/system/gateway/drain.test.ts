import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import express from 'express'
import { Connections } from '../../../examples/gateway/connections.ts'
import { Readiness } from '../../../examples/gateway/readiness.ts'
import { drainServer } from '../../../examples/gateway/shutdown.ts'
import { upgradeOf } from '../../../lib/core/call/index.ts'
import { upgradeHandler } from '../../../lib/middleware/begin-call/index.ts'
import { rawClient, recordingLogger } from '../../support/app-server.ts'
import { until } from '../../support/until.ts'

async function webSocketServer() {
  const app = express()
  app.use((req) => {
    const socket = upgradeOf(req)?.socket
    socket?.on('error', () => {}).write('HTTP/1.1 101 Switching Protocols\r\n\r\n')
  })
  const upgrades = upgradeHandler(app)
  const server = createServer(app).on('upgrade', upgrades.handle)
  const connections = new Connections(server)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const client = rawClient(
    (server.address() as AddressInfo).port,
    'GET /x HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
  )
  await client.until('101')
  const readiness = new Readiness(async () => {})
  return { draining: { server, connections, upgrades, readiness, logger: recordingLogger() }, client }
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
