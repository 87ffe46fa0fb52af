import assert from 'node:assert/strict'
import { AsyncLocalStorage } from 'node:async_hooks'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import express, { type Response } from 'express'
import { upgradeOf } from '../../../lib/core/call/index.ts'
import {
  beginCall,
  Connections,
  refuseUnparsed,
  serverRefusals,
  upgradeHandler,
} from '../../../lib/middleware/begin-call/index.ts'
import { errorEnvelope } from '../../../lib/middleware/error-envelope/index.ts'
import { rawClient } from '../../support/app-server.ts'
import { until } from '../../support/until.ts'

const asking = (path: string, headers = ''): string =>
  `GET ${path} HTTP/1.1\r\nhost: x\r\nx-path: ${path}\r\n${headers}\r\n`

/** A server whose answers a test gives. Where it is not watched, the app is as if it were mounted in another. */
async function serve(t: TestContext, isWatched: boolean) {
  const connections = new Connections()
  const begun: { readonly path: string; readonly of: unknown; readonly res: Response }[] = []
  const storage = new AsyncLocalStorage()
  const app = express()
  app.use((req, _res, next) => storage.run(req.headers['x-path'], next))
  app.use(connections.inTurn, beginCall())
  app.use((req, res) => {
    if (upgradeOf(req)) upgradeOf(req)?.socket.destroy()
    else begun.push({ path: req.path, of: storage.getStore(), res })
  })
  app.use(errorEnvelope())
  const refused = express().use(connections.inTurn, beginCall(), refuseUnparsed(), errorEnvelope())
  const server = createServer()
  for (const [event, listener] of Object.entries(serverRefusals(app, refused))) server.on(event, listener)
  server.on('upgrade', upgradeHandler(app).handle)
  if (isWatched) connections.watch(server)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.after(() => {
    connections.close()
    server.close().closeAllConnections()
  })
  return { port: (server.address() as AddressInfo).port, begun }
}

for (const isWatched of [true, false])
  describe(`a connection of a server that is ${isWatched ? '' : 'not '}watched`, () => {
    it('has one request at a time, in the context of its own', async (t) => {
      const { port, begun } = await serve(t, isWatched)
      const client = rawClient(port, ['/a', '/b', '/c'].map((path) => asking(path)).join(''))
      for (const [i, path] of ['/a', '/b', '/c'].entries()) {
        await until(() => begun.length > i, path)
        await new Promise((resolve) => setTimeout(resolve, 30))
        assert.deepEqual(
          begun.slice(i).map((each) => [each.path, each.of]),
          [[path, path]],
        )
        begun[i]?.res.end(path)
        await client.until(`\r\n\r\n${path}`)
      }
      client.socket.destroy()
    })

    it('begins no request whose caller has left before its turn', async (t) => {
      const { port, begun } = await serve(t, isWatched)
      const client = rawClient(port, asking('/a') + asking('/b'))
      await until(() => begun.length === 1)
      client.socket.resetAndDestroy()
      await once(begun[0]?.res as Response, 'close')
      await new Promise((resolve) => setTimeout(resolve, 30))
      assert.equal(begun.length, 1)
    })

    for (const [what, said] of [
      ['an upgrade', asking('/ws', 'connection: upgrade\r\nupgrade: websocket\r\n')],
      ['a tunnel', 'CONNECT x:443 HTTP/1.1\r\nhost: x\r\n\r\n'],
    ] as const)
      it(`is cut by ${what} before the answer, and others go on`, async (t) => {
        const { port, begun } = await serve(t, isWatched)
        assert.equal(await rawClient(port, asking('/a') + said).end(), '')
        const other = rawClient(port, asking('/b', 'connection: close\r\n'))
        await until(() => begun.some(({ path }) => path === '/b'))
        begun.at(-1)?.res.end('fine')
        assert.match(await other.end(), /fine/)
      })
  })
