import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import express, { type RequestHandler } from 'express'
import { loadConfig } from '../../../lib/core/config/index.ts'
import { errorEnvelope } from '../../../lib/middleware/error-envelope/index.ts'
import { forward } from '../../../lib/middleware/forward/index.ts'
import { relayPath } from '../../../lib/middleware/forward/request-path.ts'
import { UpstreamResources } from '../../../lib/middleware/references/index.ts'
import { envelopeIn, envelopeOf } from '../../support/answer-bodies.ts'
import { rawClient, recordingLogger, serveApp } from '../../support/app-server.ts'
import { byteUpstream } from '../../support/byte-upstream.ts'
import { forwardGateway } from '../../support/forward-gateway.ts'
import { KEY } from '../../support/gateway.ts'

describe('a path that an upstream could read as another', () => {
  const PATHS = [
    '/v1/files/../chat/completions',
    '/v1/files/%2e%2e/chat/completions',
    '/v1/files/.%2E/admin',
    '/v1/files/./x',
    '/v1/files/a%2f..%2fadmin',
    '/v1/files/a%5c..%5cadmin',
    '/v1/files/%252e%252e/admin',
    '/v1/files/%25252e%25252e/admin',
    '/v1/files/..;/admin',
    '/v1/files/%2e%2e;x=1/admin',
    '/v1/files/..%3b/admin',
    '/v1/files/x%00/y',
    '/v1/files/..%0d%0a/admin',
    '/v1/files/..\\admin',
    '/v1/files/x#/../admin',
    '/v1/files/%ff',
    'http://elsewhere.example/v1/files/x',
  ]
  for (const path of PATHS) {
    it(`is refused: ${path}`, async (t) => {
      const upstream = await byteUpstream(t, (_req, res) => void res.end())
      const gateway = await forwardGateway(t, { lines: [upstream.url] })
      const client = rawClient(
        gateway.port,
        `GET ${path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer ${KEY}\r\n\r\n`,
      )
      const received = await client.end()
      assert.match(received, /^HTTP\/1\.1 (?:404|400)/)
      assert.equal(upstream.requests.length, 0)
    })
  }

  it('is refused with a method that would show the key', async (t) => {
    const upstream = await byteUpstream(t, (_req, res) => void res.end())
    const gateway = await forwardGateway(t, { lines: [upstream.url] })
    const client = rawClient(
      gateway.port,
      `TRACE /v1/files HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer ${KEY}\r\n\r\n`,
    )
    assert.match(await client.end(), /^HTTP\/1\.1 404/)
    assert.equal(upstream.requests.length, 0)
  })
})

describe('a request that a rule passes on', () => {
  it('is nothing that it does not list, and nothing of strangers', async (t) => {
    const upstream = await byteUpstream(t, (_req, res) => void res.end())
    const gateway = await forwardGateway(t, { lines: [upstream.url] })
    const unlisted = await gateway.ask('/v1/batches')
    assert.equal(unlisted.status, 404)
    assert.equal((await envelopeOf(unlisted)).error.code, 'not_found')
    const stranger = await gateway.ask('/v1/files', { headers: { authorization: 'Bearer sk-none' } })
    assert.equal((await envelopeOf(stranger)).error.code, 'invalid_credential')
    assert.equal(upstream.requests.length, 0)
  })

  it('is no request with an Idempotency-Key, because no parser reads its content', async (t) => {
    const upstream = await byteUpstream(t, (_req, res) => void res.end())
    const gateway = await forwardGateway(t, { lines: [upstream.url] })
    const headers = { 'idempotency-key': 'k1' }
    const keyed = await gateway.ask('/v1/files', { method: 'POST', body: 'x', headers })
    assert.equal(keyed.status, 400)
    const { error } = await envelopeOf(keyed)
    assert.deepEqual([error.code, error.param], ['invalid_request', 'Idempotency-Key'])
    assert.equal(upstream.requests.length, 0)
    assert.equal((await gateway.ask('/v1/files', { headers })).status, 200, 'reading repeats nothing')
    assert.equal(upstream.requests[0]?.headers['idempotency-key'], undefined)
  })

  it('goes to the lines of its model, for keys that may use that', async (t) => {
    const upstream = await byteUpstream(t, (_req, res) => void res.end('said'))
    const options = {
      lines: [{ url: upstream.url, models: { voice: 'upstream-voice' } }],
      rules: [{ path: '/v1/audio/*rest', model: 'voice' }],
    }
    const gateway = await forwardGateway(t, options)
    const response = await gateway.ask('/v1/audio/speech', { method: 'POST', body: '{"model":"mine"}' })
    assert.equal(await response.text(), 'said')
    const { model, routing } = await gateway.entry(response.headers.get('x-request-id'))
    assert.deepEqual([model, routing?.attempts[0]?.upstream_model], ['voice', 'upstream-voice'])

    const denied = await forwardGateway(t, { ...options, key: { allowModels: ['chat-*'] } })
    assert.equal((await envelopeOf(await denied.ask('/v1/audio/speech'))).error.code, 'model_not_allowed')
    assert.equal(upstream.requests.length, 1)
  })

  it('goes to no line that is switched off or in a region the account does not allow', async (t) => {
    const upstream = await byteUpstream(t, (_req, res) => void res.end())
    const lines = [
      { url: upstream.url, enabled: false, region: 'eu' },
      { url: upstream.url, region: 'us' },
    ]
    const rules = [{ path: '/v1/files', lines: ['line-0', 'line-1'] }]
    const gateway = await forwardGateway(t, { lines, rules, account: { lineRegions: ['eu'] } })
    const response = await gateway.ask('/v1/files')
    const { error, request_id } = envelopeIn(await response.json())
    assert.equal(error.code, 'region_denied')
    const { routing } = await gateway.entry(request_id)
    assert.deepEqual(
      routing?.eliminated.map(({ line, reason }) => [line, reason]),
      [
        ['line-0', 'disabled'],
        ['line-1', 'region'],
      ],
    )
    assert.equal(upstream.requests.length, 0)
  })
})

const decoding: RequestHandler = (req, _res, next) => {
  req.setEncoding('utf8')
  next()
}

for (const [what, before, told] of [
  ['read', express.json(), /the body has been read already/],
  ['decoded', decoding, /setEncoding\(\)/],
] as const)
  for (const kept of [undefined, new UpstreamResources()])
    it(`a body that was ${what} before it could be passed on, ${kept ? 'and is checked' : 'unread'}: an error of the app, and nothing is sent`, async (t) => {
      const upstream = await byteUpstream(t, (_req, res) => void res.end())
      const { catalog } = loadConfig({
        models: [{ id: 'm', kind: 'chat' }],
        lines: [{ id: 'l', provider: 'p', protocol: 'openai', baseUrl: `${upstream.url}/v1`, models: {} }],
      })
      const logger = recordingLogger()
      const app = await serveApp((app) => {
        app.post(
          '/v1/files',
          before,
          forward({ catalog, rule: { lines: ['l'] }, ...(kept && { resources: kept }) }),
        )
        app.use(errorEnvelope({ logger }))
      })
      t.after(() => app.close())
      const headers = { 'content-type': 'application/json' }
      const response = await fetch(`${app.url}/v1/files`, { method: 'POST', headers, body: '{}' })
      assert.equal((await envelopeOf(response)).error.code, 'internal_error')
      assert.match(String(logger.lines[0]?.fields.err), told)
      assert.equal(upstream.requests.length, 0)
    })

describe('forward, put together wrongly', () => {
  const { catalog } = loadConfig({
    models: [{ id: 'm', kind: 'chat' }],
    lines: [{ id: 'l', provider: 'p', protocol: 'openai', baseUrl: 'http://x/v1', models: {} }],
  })
  for (const [name, options, told] of [
    ['no line of that name', { catalog, rule: { lines: ['none'] } }, /no line "none"/],
    ['neither lines nor a model', { catalog, rule: {} }, /either "lines" or "model"/],
    ['no attempt', { catalog, rule: { lines: ['l'] }, maxAttempts: 0 }, /"maxAttempts"/],
  ] as const) {
    it(`says so at once: ${name}`, () => assert.throws(() => forward(options), told))
  }
})

/** Three lines of a rule: here first, then those of others and of another region. */
async function gatewayWith(t: TestContext) {
  const upstream = await byteUpstream(t, (req, res) => {
    req.resume().on('end', () => res.end(String(req.headers.authorization)))
  })
  const { url } = upstream
  const gateway = await forwardGateway(t, {
    lines: [
      { url, region: 'us' },
      { url, provider: 'other', region: 'us' },
      { url, provider: 'third', region: 'eu' },
    ],
    rules: [
      { path: '/v1/audio/speech', lines: ['line-0', 'line-1', 'line-2'], price: { perRequest: '0.01' } },
    ],
  })
  const ask = (constraint?: string) =>
    gateway.ask('/v1/audio/speech', {
      method: 'POST',
      body: 'hello',
      headers: constraint === undefined ? {} : { 'x-gateway-provider': constraint },
    })
  return { gateway, upstream, ask }
}

const SERVED = [
  [undefined, 0],
  ['{}', 0],
  ['{"only":["other"]}', 1],
  ['{"only":["third","other"]}', 1],
  ['{"order":["third"]}', 2],
  ['{"ignore":["p","other"]}', 2],
  ['{"region":"eu"}', 2],
  ['{"region":"us","ignore":["p"]}', 1],
  ['{"max_price":{"request":0.01}}', 0],
  ['{"sort":"price","order":["other"]}', 1],
] as const

describe('a provider constraint of a call that is passed on', () => {
  for (const [constraint, line] of SERVED)
    it(`chooses the line: ${constraint}`, async (t) => {
      const { gateway, ask } = await gatewayWith(t)
      const response = await ask(constraint)
      assert.equal(response.status, 200)
      assert.equal(await response.text(), `Bearer upstream-key-${line}`)
      assert.deepEqual(await gateway.books(), { spent: '0.01', charges: 1 })
    })

  for (const [constraint, code, status] of [
    ['{"only":["nobody"]}', 'no_candidate', 503],
    ['{"region":"mars"}', 'no_candidate', 503],
    ['{"max_price":{"request":0.009}}', 'no_candidate', 503],
    ['{"only"', 'invalid_request', 400],
    ['{"only":"other"}', 'invalid_request', 400],
    ['[]', 'invalid_request', 400],
  ] as const)
    it(`that no line meets, or that is none, is refused: ${constraint}`, async (t) => {
      const { gateway, upstream, ask } = await gatewayWith(t)
      const response = await ask(constraint)
      assert.equal(response.status, status)
      assert.equal((await envelopeOf(response)).error.code, code)
      assert.equal(upstream.requests.length, 0)
      assert.deepEqual(await gateway.books(), { spent: '0', charges: 0 })
      if (code !== 'no_candidate') return
      const { routing } = await gateway.entry(response.headers.get('x-request-id'))
      const reason = constraint.includes('max_price') ? 'price_ceiling' : 'provider_constraint'
      assert.deepEqual(new Set(routing?.eliminated.map((one) => one.reason)), new Set([reason]))
    })
})

describe('the path that a line is asked for', () => {
  it('is what stands behind the version, with the query', () => {
    const rows: [url: string, path: string][] = [
      ['/v1/files', '/files'],
      ['/v1/files?limit=1&after=/../x', '/files?limit=1&after=/../x'],
      ['/v1/files?', '/files?'],
      ['/api/v3/files/1', '/files/1'],
      ['/llm/v1/files', '/files'],
      ['/llm/API/V3/files', '/files'],
      ['/V1/files', '/files'],
      ['/v1/v1/files', '/v1/files'],
      ['/v10/files', '/v10/files'],
      ['/v1', '/v1'],
      ['/v1/a.b/..c/...', '/a.b/..c/...'],
      ['/v1/%20a%25b', '/%20a%25b'],
      ['/v1/a;b', '/a;b'],
      ['/v1/files/', '/files/'],
    ]
    for (const [url, path] of rows) assert.equal(relayPath(url), path, url)
  })

  it('is none where an upstream could read another place in it', () => {
    const urls = [
      '',
      'v1/files',
      'http://x/v1/files',
      '/v1/files#x',
      '/v1/files\\x',
      '/v1/files?a=\\',
      '/v1/.',
      '/v1/..',
      '/v1/../admin',
      '/v1/./files',
      '/v1/..;/admin',
      '/v1/.;a=b/admin',
      '/v1/%2e%2e/admin',
      '/v1/%2E/files',
      '/v1/a%2fb',
      '/v1/a%2Fb',
      '/v1/a%5cb',
      '/v1/files%3fpurpose=batch',
      '/v1/files%23a',
      '/v1/files%253f',
      '/v1/a%252fb',
      '/v1/a%25252eb',
      '/v1/a%255cb',
      '/v1/a%00',
      '/v1/a%0ab',
      '/v1/a%1fb',
      '/v1/a%7f',
      '/v1/a%',
      '/v1/a%c3%28',
    ]
    for (const url of urls) assert.equal(relayPath(url), undefined, url)
  })
})
