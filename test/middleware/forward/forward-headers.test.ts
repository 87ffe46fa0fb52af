import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request } from 'node:http'
import { describe, it } from 'node:test'
import { bytesOf, byteUpstream } from '../../support/byte-upstream.ts'
import { forwardGateway } from '../../support/forward-gateway.ts'
import { KEY } from '../../support/gateway.ts'

describe('what a line is sent', () => {
  it("is its own key, also of a caller that waits for 100 Continue, and never the caller's", async (t) => {
    const upstream = await byteUpstream(t, async (req, res) => {
      await bytesOf(req)
      res.end('ok')
    })
    const gateway = await forwardGateway(t, { lines: [upstream.url] })
    const upload = request(`${gateway.url}/v1/files`, {
      method: 'POST',
      headers: { authorization: `Bearer ${KEY}`, expect: '100-continue', 'content-length': 3 },
    })
    upload.flushHeaders()
    await once(upload, 'continue')
    upload.end('abc')
    const [response] = await once(upload, 'response')
    assert.equal(String(await bytesOf(response)), 'ok')
    const [received] = upstream.requests
    assert.equal(received?.headers.authorization, 'Bearer upstream-key-0')
    assert.doesNotMatch(received?.rawHeaders.join('\n') ?? '', new RegExp(KEY))
  })

  it('is the key where the protocol of the line wants it', async (t) => {
    const upstream = await byteUpstream(t, (_req, res) => void res.end())
    const gateway = await forwardGateway(t, { lines: [{ url: upstream.url, protocol: 'anthropic' }] })
    await gateway.ask('/v1/files', { headers: { 'anthropic-beta': 'files-api-2025-04-14' } })
    const headers = upstream.requests[0]?.headers
    assert.equal(headers?.['x-api-key'], 'upstream-key-0')
    assert.equal(headers?.authorization, undefined)
    assert.equal(headers?.['anthropic-version'], '2023-06-01')
    assert.equal(headers?.['anthropic-beta'], 'files-api-2025-04-14')
  })

  it('is of the caller only what the request needs', async (t) => {
    const upstream = await byteUpstream(t, (_req, res) => void res.end())
    const gateway = await forwardGateway(t, {
      lines: [{ url: upstream.url, headers: { 'X-Extra': 'mine', 'user-agent': 'ours' } }],
    })
    const asking = request(`${gateway.url}/v1/files`, {
      headers: {
        authorization: `Bearer ${KEY}`,
        'x-api-key': KEY,
        accept: 'application/json',
        'accept-encoding': 'br',
        range: 'bytes=0-1',
        cookie: 'session=1',
        connection: 'keep-alive, x-secret-hop',
        'x-secret-hop': 'hop',
        'keep-alive': 'timeout=5',
        te: 'trailers',
        'proxy-authorization': 'Basic eA==',
        'x-gateway-provider': '{}',
        'x-forwarded-for': '10.1.2.3',
        'x-forwarded-host': 'inside',
        forwarded: 'for=10.1.2.3',
        via: '1.1 inside',
        'x-real-ip': '10.1.2.3',
        'x-request-id': 'theirs',
        'x-extra': 'theirs',
        'openai-organization': 'org-of-the-caller',
        origin: 'https://inside.example',
        referer: 'https://inside.example/page',
        'user-agent': 'theirs',
      },
    }).end()
    await once(asking, 'response')
    const headers = { ...upstream.requests[0]?.headers }
    assert.equal(headers.host, new URL(upstream.url).host)
    delete headers.host
    assert.deepEqual(headers, {
      accept: 'application/json',
      'accept-encoding': 'br',
      authorization: 'Bearer upstream-key-0',
      connection: 'close',
      range: 'bytes=0-1',
      'user-agent': 'ours',
      'x-extra': 'mine',
    })
  })
})

describe('what a caller gets', () => {
  it("is the answer's own headers, and nothing of who gave it", async (t) => {
    const upstream = await byteUpstream(t, (_req, res) => {
      res.writeHead(200, 'Upstream words', {
        'content-type': 'audio/wav',
        'content-disposition': 'attachment; filename="a.wav"',
        'cache-control': 'private',
        'last-modified': 'Thu, 01 Jan 2026 00:00:00 GMT',
        'set-cookie': ['a=1', 'b=2'],
        server: 'cloud',
        'x-request-id': 'upstream-id',
        'request-id': 'upstream-id',
        'x-ratelimit-limit-requests': '9',
        'openai-organization': 'org-secret',
        'openai-processing-ms': '12',
        'cf-ray': 'x',
        via: '1.1 upstream',
        'x-powered-by': 'upstream',
        'keep-alive': 'timeout=99',
      })
      res.end('bytes')
    })
    const gateway = await forwardGateway(t, { lines: [upstream.url], key: { limits: { rpm: 50 } } })
    const response = await gateway.ask('/v1/files/f1/content')
    assert.equal(await response.text(), 'bytes')
    assert.equal(response.statusText, 'OK')
    const headers = Object.fromEntries(response.headers)
    assert.match(headers['x-request-id'] ?? '', /^req_/)
    assert.equal(headers['x-ratelimit-limit-requests'], '50')
    for (const name of ['date', 'x-request-id', 'x-ratelimit-reset-requests']) delete headers[name]
    assert.deepEqual(headers, {
      'cache-control': 'private',
      connection: 'keep-alive',
      'content-disposition': 'attachment; filename="a.wav"',
      'content-type': 'audio/wav',
      'keep-alive': 'timeout=5',
      'last-modified': 'Thu, 01 Jan 2026 00:00:00 GMT',
      'transfer-encoding': 'chunked',
      'x-ratelimit-limit-requests': '50',
      'x-ratelimit-remaining-requests': '49',
    })
  })
})
