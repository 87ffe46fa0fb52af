import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request } from 'node:http'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { rawClient } from '../../support/app-server.ts'
import { bytesOf, byteUpstream } from '../../support/byte-upstream.ts'
import { forwardGateway } from '../../support/forward-gateway.ts'
import { KEY } from '../../support/gateway.ts'
import { until } from '../../support/until.ts'

const MEGABYTE = Buffer.alloc(1_000_000, 'x')
const get = (path: string): string =>
  `GET ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${KEY}\r\n\r\n`

describe('an upstream that dies in the middle of its answer', () => {
  for (const [name, headers] of [
    ['of a given length', { 'content-length': '2000000' }],
    ['in chunks', {}],
  ] as const) {
    it(`leaves a connection that is cut off, ${name}`, async (t) => {
      const upstream = await byteUpstream(t, (_req, res) => {
        res.writeHead(200, { ...headers })
        res.write('first half', () => res.destroy())
      })
      const gateway = await forwardGateway(t, { lines: [upstream.url] })
      const client = rawClient(gateway.port, get('/v1/files/f1/content'))
      const received = await client.end()
      assert.match(received, /^HTTP\/1\.1 200 OK/)
      assert.match(received, /first half/)
      assert.doesNotMatch(received, /\r\n0\r\n/, 'no regular end')
      const id = /x-request-id: (\S+)/i.exec(received)?.[1] ?? ''
      const { status, outcome, error_code, routing, billing } = await gateway.entry(id)
      assert.deepEqual([status, outcome, error_code], [200, 'interrupted', 'upstream_error'])
      assert.equal(routing?.attempts[0]?.outcome, 'upstream_error')
      assert.equal(billing?.charged, '0.01', 'its head was a success')
    })
  }

  it('leaves an error where it dies in the middle of an upload', async (t) => {
    const upstream = await byteUpstream(t, (req) => void req.once('data', () => req.socket.destroy()))
    const gateway = await forwardGateway(t, { lines: [upstream.url] })
    const upload = request(`${gateway.url}/v1/files`, {
      method: 'POST',
      headers: { authorization: `Bearer ${KEY}`, 'transfer-encoding': 'chunked' },
    })
    upload.on('error', () => {})
    upload.write('first piece')
    const [response] = await once(upload, 'response')
    assert.equal(response.statusCode, 502)
    upload.end('last piece')
    assert.match(String(await bytesOf(response)), /upstream_error/)
    assert.equal((await gateway.entry(String(response.headers['x-request-id']))).outcome, 'failed')
    assert.deepEqual(await gateway.books(), { spent: '0', charges: 0 })
  })
})

describe('a caller that leaves', () => {
  it('in a download closes the upstream at once', async (t) => {
    const upstream = await byteUpstream(t, (_req, res) => {
      const write = (): void => {
        while (!res.destroyed && res.write(MEGABYTE));
      }
      res.on('drain', write)
      write()
    })
    const gateway = await forwardGateway(t, { lines: [upstream.url] })
    const client = rawClient(gateway.port, get('/v1/files/f1/content'))
    await client.until('xxxx')
    const id = /x-request-id: (\S+)/i.exec(client.received)?.[1] ?? ''
    client.socket.destroy()
    await until(() => upstream.connections.size === 0, 'the end of the upstream', 1000)
    const { status, outcome, routing, billing } = await gateway.entry(id)
    assert.deepEqual([status, outcome], [499, 'interrupted'])
    assert.deepEqual(routing?.disconnect, { policy: 'abort', ended: 'aborted' })
    assert.equal(routing?.attempts[0]?.outcome, 'abandoned')
    assert.equal(billing?.charged, '0.01')
    assert.equal(gateway.openCalls.size, 0)
  })

  it('in an upload closes the upstream at once, and pays nothing', async (t) => {
    const upstream = await byteUpstream(t, (req) => void req.resume())
    const gateway = await forwardGateway(t, {
      lines: [upstream.url],
      account: { limits: { concurrency: 1 } },
    })
    const head = `POST /v1/files HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${KEY}\r\ncontent-length: 9999999\r\n\r\n`
    const client = rawClient(gateway.port, `${head}some`)
    await until(() => upstream.requests.length === 1)
    const [call] = gateway.openCalls
    client.socket.destroy()
    await until(() => upstream.connections.size === 0, 'the end of the upstream', 1000)
    const { status, error_code } = await gateway.entry(call?.id ?? '')
    assert.deepEqual([status, error_code], [499, 'client_closed_request'])
    assert.equal(gateway.openCalls.size, 0)
    assert.deepEqual(await gateway.books(), { spent: '0', charges: 0 })
  })

  it('while the upstream is silent closes it at once', async (t) => {
    const upstream = await byteUpstream(t, () => {})
    const gateway = await forwardGateway(t, { lines: [upstream.url] })
    const client = rawClient(gateway.port, get('/v1/files'))
    await until(() => upstream.requests.length === 1)
    client.socket.destroy()
    await until(() => upstream.connections.size === 0, 'the end of the upstream', 1000)
    await until(() => gateway.openCalls.size === 0)
  })
})

describe('a caller that reads slowly', () => {
  it('slows the upstream down, and its silence is not the line’s', async (t) => {
    let written = 0
    const size = 64 * MEGABYTE.length
    const upstream = await byteUpstream(t, (_req, res) => {
      res.writeHead(200, { 'content-length': size })
      const write = (): void => {
        while (written < size) {
          written += MEGABYTE.length
          if (!res.write(MEGABYTE)) return
        }
        res.end()
      }
      res.on('drain', write)
      write()
    })
    const gateway = await forwardGateway(t, { lines: [{ url: upstream.url, timeouts: { idleMs: 1500 } }] })
    const asking = request(`${gateway.url}/v1/files/f1/content`, {
      headers: { authorization: `Bearer ${KEY}` },
    }).end()
    const [response] = await once(asking, 'response')
    response.pause()
    await until(() => written > MEGABYTE.length)
    await sleep(2500)
    assert.ok(written < size, `${written} bytes are out although nobody reads`)
    let bytes = 0
    for await (const chunk of response) bytes += chunk.length
    assert.equal(bytes, size)
    assert.equal((await gateway.entry(String(response.headers['x-request-id']))).outcome, 'completed')
  })
})
