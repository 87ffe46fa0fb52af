import assert from 'node:assert/strict'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { createServer as createTcp, type Socket } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { envelopeOf } from '../../support/answer-bodies.ts'
import { bytesOf, byteUpstream } from '../../support/byte-upstream.ts'
import { forwardGateway } from '../../support/forward-gateway.ts'
import { type OwnAuthority, ownAuthority } from '../../support/own-authority.ts'
import { until } from '../../support/until.ts'

const BODY = Buffer.alloc(300_000, 'x')
const rules = [{ path: '/v1/files', lines: ['line-0', 'line-1'] }]

/** A server that takes connections and never says a word. */
async function silentServer(t: TestContext): Promise<string> {
  const sockets = new Set<Socket>()
  const server = createTcp((socket) => void sockets.add(socket.on('error', () => {})))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return `https://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** A server that says how many bytes came. */
async function tlsServer(t: TestContext, authority: OwnAuthority): Promise<string> {
  const { cert, key } = authority.certify('server', ['127.0.0.1'])
  const server = createServer({ cert, key }, async (req, res) => {
    res.end(`${(await bytesOf(req)).length} bytes`)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return `https://127.0.0.1:${(server.address() as AddressInfo).port}`
}

describe('a line that is passed on to over TLS', () => {
  it('is trusted for its own authority, and not without it', async (t) => {
    const authority = ownAuthority(t)
    const url = await tlsServer(t, authority)
    const trusted = await forwardGateway(t, { lines: [{ url, tls: { ca: authority.ca } }] })
    const answer = await trusted.ask('/v1/files', { method: 'POST', body: BODY })
    assert.equal(await answer.text(), '300000 bytes')
    const stranger = await forwardGateway(t, { lines: [url] })
    const refused = await stranger.ask('/v1/files', { method: 'POST', body: BODY })
    assert.equal((await envelopeOf(refused)).error.code, 'upstream_error')
  })

  it('has a connection for each request, which ends with it', async (t) => {
    const known = getCACertificates('default')
    t.after(() => setDefaultCACertificates(known))
    const authority = ownAuthority(t)
    setDefaultCACertificates([authority.ca])
    const { cert, key } = authority.certify('server', ['127.0.0.1'])
    const connections = new Set<Socket>()
    let closed = 0
    const server = createServer({ cert, key }, async (req, res) => {
      connections.add(req.socket.once('close', () => closed++))
      await bytesOf(req)
      res.end(req.headers.connection)
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    t.after(() => {
      server.close()
      server.closeAllConnections()
    })
    const gateway = await forwardGateway(t, {
      lines: [`https://127.0.0.1:${(server.address() as AddressInfo).port}`],
    })
    for (const count of [1, 2]) {
      const answer = await gateway.ask('/v1/files', { method: 'POST', body: BODY })
      assert.equal(await answer.text(), 'close')
      await until(() => closed === count, 'the end of the connection')
      assert.equal(connections.size, count)
    }
  })

  it('gives way to the next while it has not agreed on keys, with the whole body', async (t) => {
    const next = await byteUpstream(
      t,
      async (req, res) => void res.end(`${(await bytesOf(req)).length} bytes`),
    )
    const silent = { url: await silentServer(t), timeouts: { connectMs: 300 } }
    const gateway = await forwardGateway(t, { lines: [silent, next.url], rules })
    const answer = await gateway.ask('/v1/files', { method: 'POST', body: BODY })
    assert.equal(await answer.text(), '300000 bytes')
    const { routing } = await gateway.entry(answer.headers.get('x-request-id'))
    assert.deepEqual(
      routing?.attempts.map(({ line, timeout_phase }) => [line, timeout_phase]),
      [
        ['line-0', 'connect'],
        ['line-1', null],
      ],
    )
  })
})
