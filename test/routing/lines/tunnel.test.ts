import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { UnsentError } from '../../../lib/routing/attempt/failure.ts'
import { openTunnel } from '../../../lib/routing/lines/line-connect.ts'

/** A proxy whose answer a test sets, and the requests that it got. */
async function proxyOf(t: TestContext, answer: (socket: Socket) => void) {
  const asked: IncomingMessage[] = []
  const server: Server = createServer()
  const sockets = new Set<Socket>()
  server.on('connection', (socket) => sockets.add(socket))
  server.on('connect', (req, socket) => {
    asked.push(req)
    answer(socket as Socket)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { asked, at: (credentials = '') => `http://${credentials}127.0.0.1:${port}` }
}

const opens = (socket: Socket) => void socket.write('HTTP/1.1 200 OK\r\n\r\n')
const END = { hostname: 'line.example', port: 443 }

describe('a tunnel through a proxy', () => {
  const hosts: [hostname: string, path: string][] = [
    ['line.example', 'line.example:443'],
    ['10.0.0.7', '10.0.0.7:443'],
    ['::1', '[::1]:443'],
    ['[::1]', '[::1]:443'],
  ]
  for (const [hostname, path] of hosts)
    it(`is requested for the host and its port: ${hostname}`, async (t) => {
      const proxy = await proxyOf(t, opens)
      const socket = await openTunnel({ hostname, port: 443 }, { proxy: proxy.at(), timeoutMs: 5000 })
      socket.destroy()
      const [asked] = proxy.asked
      assert.deepEqual([asked?.url, asked?.headers.host], [path, path])
      assert.equal(asked?.headers['proxy-authorization'], undefined)
    })

  const credentials: [given: string, sent: string][] = [
    ['ann:secret@', 'ann:secret'],
    ['ann@', 'ann:'],
    ['ann%40corp:p%3Aq@', 'ann@corp:p:q'],
  ]
  for (const [given, sent] of credentials)
    it(`is requested with the credentials of the proxy: ${given}`, async (t) => {
      const proxy = await proxyOf(t, opens)
      const socket = await openTunnel(END, { proxy: proxy.at(given), timeoutMs: 5000 })
      socket.destroy()
      assert.equal(
        proxy.asked[0]?.headers['proxy-authorization'],
        `Basic ${Buffer.from(sent).toString('base64')}`,
      )
    })

  it('is open if the proxy answered in time, even if this process stood still until the limit', async (t) => {
    const proxy = await proxyOf(t, (socket) => {
      opens(socket)
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1600)
    })
    const socket = await openTunnel(END, { proxy: proxy.at(), timeoutMs: 500 })
    assert.equal(socket.destroyed, false)
    socket.destroy()
  })

  it('passes bytes on in both directions', async (t) => {
    const proxy = await proxyOf(t, (socket) => {
      opens(socket)
      socket.pipe(socket)
    })
    const socket = await openTunnel(END, { proxy: proxy.at(), timeoutMs: 5000 })
    socket.write('hello')
    const [echoed] = (await once(socket, 'data')) as [Buffer]
    assert.equal(echoed.toString(), 'hello')
    socket.destroy()
  })

  for (const status of [300, 304, 403, 407, 502])
    it(`fails if the proxy answers ${status}`, async (t) => {
      const proxy = await proxyOf(t, (socket) => void socket.end(`HTTP/1.1 ${status} No\r\n\r\n`))
      await assert.rejects(openTunnel(END, { proxy: proxy.at(), timeoutMs: 5000 }), (error) => {
        assert.ok(error instanceof UnsentError && !error.late)
        assert.match(error.message, /^the proxy answered \d{3}$/)
        return true
      })
    })

  it('is open for any 2xx answer', async (t) => {
    for (const status of [201, 299]) {
      const proxy = await proxyOf(t, (socket) => void socket.write(`HTTP/1.1 ${status} Yes\r\n\r\n`))
      const socket = await openTunnel(END, { proxy: proxy.at(), timeoutMs: 5000 })
      socket.destroy()
    }
  })

  it('fails if the proxy takes too long, or cannot be reached', async (t) => {
    const silent = await proxyOf(t, () => {})
    await assert.rejects(openTunnel(END, { proxy: silent.at(), timeoutMs: 20 }), (error) => {
      assert.ok(error instanceof UnsentError && error.late)
      assert.equal(error.message, 'the proxy took too long')
      return true
    })
    const server = createServer()
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const { port } = server.address() as AddressInfo
    await new Promise((resolve) => server.close(resolve))
    await assert.rejects(openTunnel(END, { proxy: `http://127.0.0.1:${port}`, timeoutMs: 5000 }), (error) => {
      assert.ok(error instanceof UnsentError && !error.late)
      assert.equal(error.message, 'the proxy cannot be reached (ECONNREFUSED)')
      return true
    })
  })
})
