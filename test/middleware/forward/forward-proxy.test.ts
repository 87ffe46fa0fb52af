import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, it } from 'node:test'
import { envelopeOf } from '../../support/answer-bodies.ts'
import { bytesOf, byteUpstream } from '../../support/byte-upstream.ts'
import { connectProxy } from '../../support/connect-proxy.ts'
import { forwardGateway } from '../../support/forward-gateway.ts'

const HOST = 'line.example'

describe('a request that is passed on to a line behind a proxy', () => {
  it('goes through a tunnel to the host of the line, whole, and so does the answer', async (t) => {
    const sent = randomBytes(300_000)
    const upstream = await byteUpstream(t, async (req, res) => {
      res.writeHead(201).end(await bytesOf(req))
    })
    const port = Number(new URL(upstream.url).port)
    const proxy = await connectProxy(t, () => port)
    const gateway = await forwardGateway(t, { lines: [{ url: `http://${HOST}:${port}`, proxy: proxy.url }] })
    for (let asked = 1; asked <= 2; asked++) {
      const response = await gateway.ask('/v1/files', { method: 'POST', body: sent })
      assert.equal(response.status, 201)
      assert.deepEqual(Buffer.from(await response.arrayBuffer()), sent)
      assert.deepEqual(
        proxy.asked.map(({ to }) => to),
        Array(asked).fill(`${HOST}:${port}`),
      )
    }
    assert.equal(upstream.requests[0]?.headers.host, `${HOST}:${port}`)
  })

  it('is not sent past the proxy where that refuses the tunnel, and costs nothing', async (t) => {
    const upstream = await byteUpstream(t, (_req, res) => void res.end('ok'))
    const proxy = await connectProxy(t, () => 0)
    proxy.script = (socket) => void socket.end('HTTP/1.1 403 Forbidden\r\n\r\n')
    const gateway = await forwardGateway(t, { lines: [{ url: upstream.url, proxy: proxy.url }] })
    const response = await gateway.ask('/v1/files', { method: 'POST', body: 'abc' })
    const { error } = await envelopeOf(response)
    assert.deepEqual([response.status, error.code], [502, 'upstream_error'])
    assert.equal(upstream.requests.length, 0)
    assert.equal((await gateway.books()).charges, 0)
  })
})
