import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request } from 'node:http'
import { describe, it } from 'node:test'
import { bytesOf, byteUpstream } from '../../support/byte-upstream.ts'
import { forwardGateway } from '../../support/forward-gateway.ts'
import { KEY } from '../../support/gateway.ts'
import { until } from '../../support/until.ts'

const SESSION_MS = 600
const RULES = ['/v1/files', '/v1/files/*rest'].map((path) => ({
  path,
  lines: ['line-0'],
  price: { perRequest: '0.01' },
  sessionMs: SESSION_MS,
}))

describe('a call that takes longer than its path allows', { concurrency: true }, () => {
  it('is cut off in a download, and what was delivered is charged', async (t) => {
    const upstream = await byteUpstream(t, (_req, res) => {
      res.writeHead(200, { 'content-length': '1000000' })
      const timer = setInterval(() => res.write('piece'), 50)
      res.on('close', () => clearInterval(timer))
    })
    const gateway = await forwardGateway(t, { lines: [upstream.url], rules: RULES })
    const begun = performance.now()
    const response = await gateway.ask('/v1/files/f1/content')
    await assert.rejects(response.arrayBuffer())
    // A timer that is set late in a turn of the event loop counts from the beginning of the turn.
    assert.ok(performance.now() - begun >= SESSION_MS * 0.8)
    await until(() => upstream.connections.size === 0, 'the end of the upstream')
    const { outcome, error_code, billing } = await gateway.entry(String(response.headers.get('x-request-id')))
    assert.deepEqual([outcome, error_code, billing?.charged], ['interrupted', 'upstream_timeout', '0.01'])
  })

  it('is refused in an upload, and charged nothing', async (t) => {
    const upstream = await byteUpstream(t, (req) => void req.resume())
    const gateway = await forwardGateway(t, { lines: [upstream.url], rules: RULES })
    const upload = request(`${gateway.url}/v1/files`, {
      method: 'POST',
      headers: { authorization: `Bearer ${KEY}`, 'transfer-encoding': 'chunked' },
    })
    upload.on('error', () => {})
    const timer = setInterval(() => upload.write('piece'), 50)
    t.after(() => clearInterval(timer))
    const [response] = await once(upload, 'response')
    assert.equal(response.statusCode, 504)
    assert.match(String(await bytesOf(response)), /upstream_timeout/)
    await gateway.entry(String(response.headers['x-request-id']))
    await until(() => upstream.connections.size === 0, 'the end of the upstream')
    assert.deepEqual(await gateway.books(), { spent: '0', charges: 0 })
  })
})
