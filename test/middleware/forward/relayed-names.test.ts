import assert from 'node:assert/strict'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { describe, it } from 'node:test'
import { loadConfig } from '../../../lib/core/config/index.ts'
import {
  answerHeaders,
  handshakeHeaders,
  handshakeText,
  hasBody,
  lineHeaders,
  requestHeaders,
} from '../../../lib/middleware/forward/relay-headers.ts'
import { failureOfRelayed, relayModeOf } from '../../../lib/middleware/forward/relay-status.ts'

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

  it('tells whether a body follows', () => {
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

  it('is nobody’s fault where it leads elsewhere, or forbids', () => {
    for (const status of [300, 302, 399, 403])
      assert.deepEqual(failureOfRelayed(status, {}, undefined), {
        code: 'upstream_error',
        retryable: false,
        fault: null,
        detail: `status ${status}`,
      })
  })

  it('is else the line’s, whose words are not kept: they may quote what nobody has read', () => {
    for (const status of [400, 401, 500, 503]) {
      const failure = failureOfRelayed(status, {}, { error: { message: 'the prompt', code: 'x' } })
      assert.equal(failure.detail, `status ${status}`)
    }
    assert.equal(failureOfRelayed(500, {}, undefined).fault, 'model')
    const { code, retryAfterMs } = failureOfRelayed(429, { 'retry-after': '7' }, undefined)
    assert.deepEqual([code, retryAfterMs], ['upstream_rate_limited', 7000])
  })
})
