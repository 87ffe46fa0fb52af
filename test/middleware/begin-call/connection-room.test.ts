import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import express from 'express'
import { Connections } from '../../../lib/middleware/begin-call/index.ts'
import { type RawClient, rawClient } from '../../support/app-server.ts'
import { until } from '../../support/until.ts'

const MOST = 20
const REQUEST = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n'

const answers = ({ received }: RawClient): number => received.match(/HTTP\/1\.1 200/g)?.length ?? 0

/** A server that may have some connections, all of one address as those of a balancer. It answers no request of `/never`. */
async function smallServer(t: TestContext): Promise<number> {
  const connections = new Connections({ most: MOST })
  const app = express().use(
    connections.inTurn,
    ({ path }, res) => void (path === '/never' || res.end('whole')),
  )
  const server = createServer(app)
  connections.watch(server)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.after(() => {
    connections.close()
    server.closeAllConnections()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

/** The same with as many idle connections. */
async function fullServer(t: TestContext) {
  const port = await smallServer(t)
  const idle = Array.from({ length: MOST }, () => rawClient(port, REQUEST))
  await until(() => idle.every((client) => answers(client) === 1), 'all are answered once')
  return { port, idle }
}

describe('room for new connections', () => {
  for (const coming of [1, 10, 50])
    it(`costs no request that has arrived: ${coming} new`, async (t) => {
      const { port, idle } = await fullServer(t)
      const next = Array.from({ length: coming }, () => rawClient(port, REQUEST))
      // They connect first, so that the server notices them first.
      process.nextTick(() => {
        for (const { socket } of idle) socket.write(REQUEST)
      })
      const whole = () => idle.every((client) => answers(client) === 2 || client.socket.closed)
      await until(() => whole() && next.every((client) => answers(client) === 1), 'all are answered')
      assert.deepEqual(idle.map(answers), Array(MOST).fill(2))
    })

  it('is made of idle connections first, then of those on which a request has begun', async (t) => {
    const { port, idle } = await fullServer(t)
    const [begun, ...others] = idle as [RawClient, ...RawClient[]]
    begun.socket.write(REQUEST.slice(0, 20))
    await new Promise((resolve) => setTimeout(resolve, 50))
    const next = Array.from({ length: MOST - 1 }, () => rawClient(port, REQUEST))
    await until(() => [...others, ...next].every((client) => answers(client) === 1), 'all are answered')
    await until(() => others.every(({ socket }) => socket.closed), 'the idle ones are closed')
    begun.socket.write(REQUEST.slice(20))
    await until(() => answers(begun) === 2, 'the request is answered')
  })

  it('is made of connections with pipelined requests before new ones', async (t) => {
    const port = await smallServer(t)
    const greedy = Array.from({ length: MOST }, () =>
      rawClient(port, REQUEST.replace('/', '/never') + REQUEST),
    )
    await until(() => greedy.every(({ socket }) => !socket.connecting), 'they are connected')
    for (let i = 0; i < 5; i++) {
      const client = rawClient(port, REQUEST)
      await until(() => answers(client) === 1 || client.socket.closed, 'it is answered or closed')
      assert.equal(answers(client), 1)
    }
  })
})
