import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http'
import { describe, it, type TestContext } from 'node:test'
import { gzipSync } from 'node:zlib'
import { loadConfig } from '../../../lib/core/config/index.ts'
import {
  answerHeaders,
  handshakeHeaders,
  handshakeText,
  hasBody,
  lineHeaders,
  requestHeaders,
} from '../../../lib/middleware/forward/relay-headers.ts'
import { failureOfRelayed, relayModeOf } from '../../../lib/middleware/forward/relayed-answer.ts'
import { UpstreamResources } from '../../../lib/middleware/references/index.ts'
import { bytesOf, byteUpstream } from '../../support/byte-upstream.ts'
import { forwardGateway } from '../../support/forward-gateway.ts'
import { KEY } from '../../support/gateway.ts'

describe('the data that a line is sent', () => {
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

describe('the data that a caller gets', () => {
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

const asking = (headers: IncomingHttpHeaders, method = 'GET') => ({ headers, method }) as IncomingMessage
const each = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, `of ${name}`]))

describe('the head of a request that is passed on', () => {
  const KEPT = [
    'accept',
    'accept-encoding',
    'accept-language',
    'content-disposition',
    'content-encoding',
    'content-language',
    'content-length',
    'content-md5',
    'content-type',
    'if-match',
    'if-modified-since',
    'if-none-match',
    'if-range',
    'if-unmodified-since',
    'openai-beta',
    'range',
  ]
  const LEFT_BEHIND = [
    'authorization',
    'x-api-key',
    'cookie',
    'connection',
    'expect',
    'te',
    'upgrade',
    'host',
    'user-agent',
    'x-request-id',
    'idempotency-key',
    'sec-websocket-key',
  ]

  it('is what describes the body and the answer that is wanted, and nothing else', () => {
    assert.deepEqual(requestHeaders(asking(each([...KEPT, ...LEFT_BEHIND]))), each(KEPT))
  })

  it('says how long the body is: in pieces, as the caller said, or nothing', () => {
    assert.deepEqual(requestHeaders(asking({ 'transfer-encoding': 'gzip, chunked' }, 'POST')), {
      'transfer-encoding': 'chunked',
    })
    assert.deepEqual(
      requestHeaders(asking({ 'transfer-encoding': 'chunked', 'content-length': '7' }, 'POST')),
      { 'transfer-encoding': 'chunked' },
    )
    assert.deepEqual(requestHeaders(asking({ 'content-length': '7' }, 'POST')), { 'content-length': '7' })
    for (const method of ['POST', 'PUT', 'DELETE'])
      assert.deepEqual(requestHeaders(asking({}, method)), { 'content-length': '0' })
    for (const method of ['GET', 'HEAD']) assert.deepEqual(requestHeaders(asking({}, method)), {})
    assert.deepEqual(requestHeaders(asking({ 'content-length': '7' }, 'GET')), { 'content-length': '7' })
  })

  it('has a header that came several times as one', () => {
    const headers = { 'openai-beta': ['a=1', 'b=2'] } as unknown as IncomingHttpHeaders
    assert.deepEqual(requestHeaders(asking(headers)), { 'openai-beta': 'a=1, b=2' })
  })

  it('says whether a body follows', () => {
    const rows: [IncomingHttpHeaders, boolean][] = [
      [{}, false],
      [{ 'content-length': '0' }, false],
      [{ 'content-length': '1' }, true],
      [{ 'transfer-encoding': 'chunked' }, true],
      [{ 'transfer-encoding': 'chunked', 'content-length': '0' }, true],
    ]
    for (const [headers, has] of rows) assert.equal(hasBody(asking(headers)), has, JSON.stringify(headers))
  })

  it('has the line’s own headers over the gateway’s, and those of the call over both', () => {
    const { catalog } = loadConfig({
      models: [{ id: 'm', kind: 'chat' }],
      lines: [
        {
          id: 'l',
          provider: 'p',
          protocol: 'openai',
          baseUrl: 'http://x/v1',
          apiKey: 'upstream',
          models: {},
          headers: { 'x-one': 'line', 'x-two': 'line', 'User-Agent': 'line' },
        },
      ],
    })
    const [line] = catalog.lines.values()
    assert.ok(line)
    assert.deepEqual(lineHeaders(line, {}, { 'x-two': 'call' }), {
      'user-agent': 'line',
      authorization: 'Bearer upstream',
      'x-one': 'line',
      'x-two': 'call',
    })
    const plain = { ...line, headers: {} }
    assert.equal(lineHeaders(plain, {}, {})['user-agent'], 'express-model-gateway')
  })
})

describe('the head of a WebSocket’s handshake that is passed on', () => {
  const ASKED = { connection: 'Upgrade', upgrade: 'websocket' }
  const KEPT = ['openai-beta', 'sec-websocket-extensions', 'sec-websocket-key', 'sec-websocket-version']

  it('is the handshake, and nothing that says who calls', () => {
    const headers = { ...each([...KEPT, 'authorization', 'origin', 'cookie', 'accept', 'content-length']) }
    assert.deepEqual(handshakeHeaders(asking(headers)), { ...each(KEPT), ...ASKED })
  })

  it('offers the subprotocols without those that say who calls', () => {
    const offered = (names: string) =>
      handshakeHeaders(asking({ 'sec-websocket-protocol': names }))['sec-websocket-protocol']
    assert.equal(
      offered('realtime, openai-insecure-api-key.sk-1 ,openai-beta.realtime-v1,,OpenAI-Organization.o'),
      'realtime, openai-beta.realtime-v1',
    )
    assert.equal(offered('openai-project.p, realtime'), 'realtime')
    assert.equal(offered('openai-insecure-api-key.sk-1'), undefined)
    assert.equal(offered(' , '), undefined)
    assert.equal(offered('x-openai-project.p'), 'x-openai-project.p')
  })

  it('comes back as the line’s part of it over what the gateway has set', () => {
    const text = handshakeText(
      {
        'sec-websocket-accept': 'a',
        'sec-websocket-extensions': 'e',
        'sec-websocket-protocol': 'p',
        'set-cookie': ['c=1'],
        server: 'theirs',
      },
      { 'x-request-id': 'req_1', 'sec-websocket-accept': 'mine', connection: 'close' },
    )
    const [status, ...lines] = text.split('\r\n')
    assert.equal(status, 'HTTP/1.1 101 Switching Protocols')
    assert.deepEqual(lines.slice(0, -2).sort(), [
      'connection: Upgrade',
      'sec-websocket-accept: a',
      'sec-websocket-extensions: e',
      'sec-websocket-protocol: p',
      'upgrade: websocket',
      'x-request-id: req_1',
    ])
    assert.deepEqual(lines.slice(-2), ['', ''])
  })
})

describe('the head of an answer that is passed back', () => {
  const KEPT = [
    'accept-ranges',
    'age',
    'cache-control',
    'content-digest',
    'content-disposition',
    'content-encoding',
    'content-language',
    'content-length',
    'content-md5',
    'content-range',
    'content-type',
    'etag',
    'expires',
    'last-modified',
    'repr-digest',
    'vary',
  ]

  it('is what describes the body, and nothing of the line itself', () => {
    const own = [
      'set-cookie',
      'server',
      'location',
      'x-request-id',
      'x-ratelimit-limit-requests',
      'openai-organization',
      'connection',
      'transfer-encoding',
      'www-authenticate',
    ]
    assert.deepEqual(answerHeaders(each([...KEPT, ...own])), each(KEPT))
  })

  it('comes with its body, without it, or not at all', () => {
    const rows: [string, number[]][] = [
      ['whole', [200, 201, 206, 299]],
      ['bare', [304, 412, 416]],
      ['error', [100, 199, 300, 303, 305, 400, 404, 411, 413, 415, 417, 500]],
    ]
    for (const [manner, statuses] of rows)
      for (const status of statuses) assert.equal(relayModeOf(status), manner, String(status))
  })
})

describe('an answer that is no success', () => {
  it('is, of what the caller chose, the caller’s own fault', () => {
    const rows: [number, string][] = [
      [404, 'not_found'],
      [405, 'not_found'],
      [410, 'not_found'],
      [409, 'conflict'],
      [411, 'invalid_request'],
      [414, 'invalid_request'],
      [415, 'invalid_request'],
      [428, 'invalid_request'],
      [431, 'invalid_request'],
    ]
    for (const [status, code] of rows)
      assert.deepEqual(failureOfRelayed(status, {}, undefined), {
        code,
        retryable: false,
        fault: null,
        detail: `status ${status}`,
      })
  })

  it('counts against nothing where it leads elsewhere, or forbids', () => {
    for (const status of [300, 302, 399, 403])
      assert.deepEqual(failureOfRelayed(status, {}, undefined), {
        code: 'upstream_error',
        retryable: false,
        fault: null,
        detail: `status ${status}`,
      })
  })

  it('is else the line’s, whose text is not kept: it may quote what was not read', () => {
    for (const status of [400, 401, 500, 503]) {
      const failure = failureOfRelayed(status, {}, { error: { message: 'the prompt', code: 'x' } })
      assert.equal(failure.detail, `status ${status}`)
    }
    assert.equal(failureOfRelayed(500, {}, undefined).fault, 'model')
    const { code, retryAfterMs } = failureOfRelayed(429, { 'retry-after': '7' }, undefined)
    assert.deepEqual([code, retryAfterMs], ['upstream_rate_limited', 7000])
  })
})

const BATCH = '{"id":"batch_1","output_file_id":null}'

/** A gateway before a line that answers with a batch. */
async function batches(t: TestContext, compresses: boolean) {
  const upstream = await byteUpstream(t, ({ method }, res) => {
    const body = compresses ? gzipSync(BATCH) : Buffer.from(BATCH)
    const encoding = compresses ? { 'content-encoding': 'gzip' } : {}
    res.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length, ...encoding })
    res.end(method === 'HEAD' ? undefined : body)
  })
  const resources = new UpstreamResources()
  t.after(() => resources.close())
  const rules = ['/v1/batches', '/v1/batches/*rest'].map((path) => ({ path, lines: ['line-0'] }))
  return forwardGateway(t, { lines: [upstream.url], rules, resources })
}

describe('the head of an answer that is read before it is sent', () => {
  it('does not say that the body is compressed, which it no longer is', async (t) => {
    const gateway = await batches(t, true)
    const made = await gateway.ask('/v1/batches', { method: 'POST' })
    assert.equal(made.headers.get('content-encoding'), null)
    assert.equal(await made.text(), BATCH)
    assert.equal(await (await gateway.ask('/v1/batches/batch_1')).text(), BATCH)
  })

  it('is that of the line where nothing but the head is asked for', async (t) => {
    const gateway = await batches(t, false)
    await gateway.ask('/v1/batches', { method: 'POST' })
    const head = await gateway.ask('/v1/batches/batch_1', { method: 'HEAD' })
    assert.equal(head.status, 200)
    assert.equal(head.headers.get('content-length'), String(BATCH.length))
  })
})
