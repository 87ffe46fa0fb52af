import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { cleaningUp } from '../../support/clean-up.ts'
import { ANTHROPIC, answer, exchange, gatewayFor, MODES, modeName, OPENAI } from '../../support/exchange.ts'
import { KEY } from '../../support/gateway.ts'
import { type ScriptedUpstream, startUpstream } from '../../support/scripted-upstream.ts'

/** Headers that a caller may send and no upstream may see. */
const CALLERS = {
  cookie: 'session=secret',
  'x-api-key': KEY,
  'proxy-authorization': 'Basic abc',
  'idempotency-key': 'idem-1',
  'x-gateway-provider': '{"only":["line-0"]}',
  'x-gateway-anything': '1',
  'x-forwarded-for': '10.0.0.1',
  'x-forwarded-host': 'example.org',
  'x-forwarded-proto': 'https',
  'x-real-ip': '10.0.0.1',
  forwarded: 'for=10.0.0.1',
  via: '1.1 proxy',
  te: 'trailers',
  'x-request-id': 'mine',
  'user-agent': 'caller/1.0',
  'openai-organization': 'org-1',
  origin: 'https://example.org',
  referer: 'https://example.org/',
  'accept-language': 'de',
  'x-stainless-lang': 'js',
}

const UPSTREAMS = {
  'set-cookie': 'up=1',
  server: 'upstream',
  'x-powered-by': 'upstream',
  'openai-organization': 'org-ours',
  'openai-processing-ms': '12',
  'x-ratelimit-limit-requests': '77',
  'x-ratelimit-remaining-tokens': '77',
  'anthropic-ratelimit-requests-limit': '77',
  'anthropic-organization-id': 'org-ours',
  'request-id': 'req_upstream',
  'x-request-id': 'req_upstream',
  'cf-ray': 'abc',
  'retry-after': '9',
  'x-should-retry': 'true',
  'access-control-allow-origin': '*',
  'strict-transport-security': 'max-age=1',
  etag: 'W/"up"',
}

describe('headers', () => {
  let upstream: ScriptedUpstream
  const cleanUp = cleaningUp()
  before(async () => {
    upstream = await startUpstream()
    cleanUp.after(() => upstream.close())
  })

  for (const mode of MODES) {
    it(`of the caller are not sent, except those that the protocol needs (${modeName(mode)})`, async (t) => {
      const { protocol } = mode
      const gateway = await gatewayFor(t, { lines: [{ url: upstream.url, protocol }] })
      upstream.script = (res) => answer(res, mode)
      const got = await exchange(gateway, mode, {}, { headers: CALLERS })
      assert.equal(got.status, 200)
      const { headers, path, method, raw } = upstream.requests.at(-1) ?? assert.fail()
      assert.equal(method, 'POST')
      assert.equal(path, protocol === 'openai' ? '/v1/chat/completions' : '/v1/messages')
      const { host, connection, 'content-length': length, ...sent } = headers
      assert.equal(host, upstream.url.slice('http://'.length))
      assert.equal(Number(length), raw.length)
      assert.ok(connection === undefined || connection === 'keep-alive')
      assert.deepEqual(sent, {
        'content-type': 'application/json',
        accept: mode.stream ? 'text/event-stream' : 'application/json',
        'accept-encoding': 'identity',
        'user-agent': 'express-model-gateway',
        ...(protocol === 'openai'
          ? { authorization: 'Bearer upstream-key-0' }
          : { 'x-api-key': 'upstream-key-0', 'anthropic-version': '2023-06-01' }),
      })
    })

    it(`of the upstream are not sent (${modeName(mode)})`, async (t) => {
      const { protocol } = mode
      const gateway = await gatewayFor(t, { lines: [{ url: upstream.url, protocol }] })
      upstream.script = (res) => {
        for (const [name, value] of Object.entries(UPSTREAMS)) res.setHeader(name, value)
        return answer(res, mode)
      }
      const got = await exchange(gateway, mode)
      const names = [...got.headers.keys()].filter(
        (name) => !['date', 'connection', 'keep-alive'].includes(name),
      )
      assert.deepEqual(names.sort(), [
        ...(mode.stream ? ['cache-control'] : ['content-length']),
        'content-type',
        ...(protocol === 'anthropic' ? ['request-id'] : []),
        ...(mode.stream ? ['transfer-encoding', 'x-accel-buffering'] : []),
        'x-request-id',
      ])
      assert.match(got.requestId, /^req_/)
      assert.notEqual(got.requestId, 'req_upstream')
      if (protocol === 'anthropic') assert.equal(got.headers.get('request-id'), got.requestId)
    })
  }

  it('anthropic-version and anthropic-beta are passed on', async (t) => {
    const gateway = await gatewayFor(t, { lines: [{ url: upstream.url, protocol: 'anthropic' }] })
    upstream.script = (res) => answer(res, ANTHROPIC)
    const sent = { 'anthropic-version': '2024-01-01', 'anthropic-beta': 'one-2024,two-2025' }
    await exchange(gateway, ANTHROPIC, {}, { headers: sent })
    const { headers } = upstream.requests.at(-1) ?? assert.fail()
    assert.equal(headers['anthropic-version'], '2024-01-01')
    assert.equal(headers['anthropic-beta'], 'one-2024,two-2025')
  })

  it('anthropic-beta of the line are added to those of the caller, each name once', async (t) => {
    const lines = [
      { url: upstream.url, protocol: 'anthropic', headers: { 'Anthropic-Beta': 'own-1, two-2025' } } as const,
    ]
    const gateway = await gatewayFor(t, { lines })
    upstream.script = (res) => answer(res, ANTHROPIC)
    const rows = [
      [{ 'anthropic-beta': 'one-2024,two-2025' }, 'own-1,two-2025,one-2024'],
      [{ 'anthropic-beta': '' }, 'own-1,two-2025'],
      [{}, 'own-1,two-2025'],
    ] as const
    for (const [headers, sent] of rows) {
      await exchange(gateway, ANTHROPIC, {}, { headers })
      assert.equal(upstream.requests.at(-1)?.headers['anthropic-beta'], sent)
    }
    // A translated call has none of its own.
    await exchange(gateway, OPENAI, {}, { headers: { 'anthropic-beta': 'one-2024' } })
    assert.equal(upstream.requests.at(-1)?.headers['anthropic-beta'], 'own-1,two-2025')
  })

  it('of the line are sent with every request, and replace the gateway’s own', async (t) => {
    upstream.script = (res) => answer(res, OPENAI)
    const gateway = await gatewayFor(t, {
      lines: [{ url: upstream.url, headers: { 'X-Extra': 'value', 'User-Agent': 'operator/2.0' } }],
    })
    await exchange(gateway, OPENAI, {}, { headers: { 'x-extra': 'of the caller' } })
    const { headers } = upstream.requests.at(-1) ?? assert.fail()
    assert.equal(headers['x-extra'], 'value')
    assert.equal(headers['user-agent'], 'operator/2.0')
  })

  it('contain no credential if the line has no key', async (t) => {
    upstream.script = (res) => answer(res, OPENAI)
    const gateway = await gatewayFor(t, { lines: [{ url: upstream.url, apiKey: undefined }] })
    await exchange(gateway)
    const { headers } = upstream.requests.at(-1) ?? assert.fail()
    assert.equal('authorization' in headers || 'x-api-key' in headers, false)
  })
})
