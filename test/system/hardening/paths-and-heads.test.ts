import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { envelopeIn } from '../../support/answer-bodies.ts'
import { chat, lookUp, post } from '../../support/gateway-process.ts'
import { guardedGateway, KEY, OTHER_KEY, statusesIn } from './guarded-gateway.ts'

const { gateway, upstream, say } = await guardedGateway()

/** Asks for a target just as it stands there: fetch would tidy it up. */
const get = (target: string, lines: readonly string[] = []): Promise<string> =>
  say(
    [
      `GET ${target} HTTP/1.1`,
      'host: x',
      `authorization: Bearer ${KEY}`,
      'connection: close',
      ...lines,
      '',
      '',
    ].join('\r\n'),
  )

const bodyIn = (received: string): unknown => JSON.parse(received.slice(received.indexOf('\r\n\r\n') + 4))

describe('a path', async () => {
  const made = await post(gateway.url, chat('chat'), { authorization: `Bearer ${OTHER_KEY}` })
  const others = String(made.headers.get('x-request-id'))
  await lookUp(gateway.url, others, OTHER_KEY)

  for (const target of [
    '/v1/calls/..%2f..%2fadmin%2faccounts',
    '/v1/calls/../../admin/accounts',
    '/v1/calls/%2e%2e/%2e%2e/admin/accounts',
    '/v1/calls/..%5c..%5cadmin',
    '/v1/calls/%00',
    `/v1/calls/${others}`,
    `/v1/calls/${others}%00`,
    `/v1/calls/${others}%2f`,
    `/v1/calls/${others.toUpperCase()}`,
    `/v1/calls/%${others.charCodeAt(0).toString(16)}${others.slice(1)}`,
    `/v1/calls/%27%20OR%201=1--`,
    '/v1/calls/*',
    '/v1/calls/%25',
    '/v1/calls/req_%0d%0ax-injected:%201',
    '/v1/models/..%2fcalls',
    '/v1/models/chat%00',
    '/v1/models/%2e%2e%2f%2e%2e%2fetc%2fpasswd/routing',
    '/v1/./calls/../../healthz/x',
    '/v1//calls',
    '//v1/calls',
    '/v1\\calls',
    '/admin/..%2fv1%2fmodels',
    `/${'a/'.repeat(4000)}`,
  ]) {
    it(`${target.slice(0, 80)} is not found, and reveals nothing`, async () => {
      const received = await get(target)
      assert.ok([401, 404].includes(statusesIn(received)[0] ?? 0), received.slice(0, 300))
      assert.doesNotMatch(received, /globex|x-injected|root:/i)
      const { error, request_id: id } = envelopeIn(bodyIn(received))
      assert.match(id, /^req_/)
      assert.match(
        String(error.code),
        /^(?:not_found|model_not_found|missing_credential|invalid_credential)$/,
      )
    })
  }

  for (const target of ['/v1/calls/%', '/v1/calls/%ff', '/v1/models/%zz', '/v1/models/%c0%ae']) {
    it(`${target}, which no decoder can read, is the caller’s fault`, async () => {
      const received = await get(target)
      assert.deepEqual(statusesIn(received), [400])
      assert.equal(envelopeIn(bodyIn(received)).error.code, 'invalid_request')
    })
  }

  it('in the form for proxies does not leave the house', async () => {
    for (const target of [`${upstream.url}/v1/models`, 'http://169.254.169.254/latest/meta-data']) {
      const before = upstream.requests.length
      assert.ok([200, 404].includes(statusesIn(await get(target))[0] ?? 0))
      assert.equal(upstream.requests.length, before)
    }
  })

  it('of another account’s call is as much not found as one of a call that never was', async () => {
    const [there, never] = [await get(`/v1/calls/${others}`), await get(`/v1/calls/req_${'0'.repeat(26)}`)]
    const told = (received: string) => ({ ...(bodyIn(received) as object), request_id: null })
    assert.deepEqual(told(there), told(never))
  })
})

describe('a head', () => {
  it('with thousands of headers is read to its end: nothing behind them is lost unseen', async () => {
    const many = Array.from({ length: 2800 }, (_, i) => `${i.toString(36)}:`)
    const wrong = await get('/v1/models', [...many, 'x-api-key: sk-another'])
    assert.deepEqual(statusesIn(wrong), [401], 'two keys that differ')
    assert.deepEqual(statusesIn(await get('/v1/models', many)), [200])
  })

  it('over 16 KiB is refused', async () => {
    const many = Array.from({ length: 20_000 }, (_, i) => `x-${i}: ${i}`)
    assert.deepEqual(statusesIn(await get('/v1/models', many)), [431])
    assert.deepEqual(statusesIn(await get(`/v1/models?${'x'.repeat(20_000)}`)), [431])
  })

  it('is forgotten: the next request is served', async () => {
    assert.deepEqual(statusesIn(await get('/v1/models')), [200])
  })
})
