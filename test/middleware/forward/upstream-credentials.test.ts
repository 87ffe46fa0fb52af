import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { gzipSync } from 'node:zlib'
import { UpstreamResources } from '../../../lib/middleware/references/index.ts'
import { byteUpstream } from '../../support/byte-upstream.ts'
import { forwardGateway, OTHER_KEY } from '../../support/forward-gateway.ts'
import { KEY } from '../../support/gateway.ts'

const SECRET = 'ek_0123456789abcdef'

async function gatewayWith(
  t: TestContext,
  answer: { body: string | Buffer; headers?: object },
  rule: object = {},
) {
  const upstream = await byteUpstream(t, (req, res) => {
    req.resume()
    res.writeHead(200, { 'content-type': 'application/json', ...answer.headers }).end(answer.body)
  })
  const resources = new UpstreamResources()
  t.after(() => resources.close())
  const gateway = await forwardGateway(t, {
    lines: [upstream.url],
    rules: ['/v1/realtime/*rest', '/v1/odd'].map((path) => ({
      path,
      lines: ['line-0'],
      price: { perRequest: '0.01' },
      ...rule,
    })),
    resources,
  })
  const ask = async (path: string, key = KEY, method = 'POST') => {
    const response = await gateway.ask(path, { method, headers: { authorization: `Bearer ${key}` } })
    return { status: response.status, text: await response.text() }
  }
  return { ask, upstream, gateway }
}

describe('a credential of the upstream', () => {
  it('is asked for by no caller, in no spelling of its path, and costs nothing', async (t) => {
    const { ask, upstream, gateway } = await gatewayWith(t, { body: `{"value":"${SECRET}"}` })
    for (const path of [
      'client_secrets',
      'sessions',
      'transcription_sessions',
      'Client%5FSecrets/',
      'client%255fsecrets',
      'client_secrets%3Fa=b',
      'client_secrets%2523a',
      'client-secrets.json',
      'Sessions.JSON',
      'upload-url',
    ])
      for (const key of [KEY, OTHER_KEY])
        for (const method of ['POST', 'GET']) {
          const { status, text } = await ask(`/v1/realtime/${path}`, key, method)
          assert.equal(status, 404, path)
          assert.doesNotMatch(text, /secrets.*true|ek_/)
        }
    assert.equal(upstream.requests.length, 0)
    const warnings = gateway.logger.lines.filter(({ message }) => message.includes('"secrets": true'))
    assert.equal(warnings.length, 1, 'the operator learns how to permit it, once')
    assert.deepEqual(await gateway.books(), { spent: '0', charges: 0 })
  })

  it('is not passed on in an answer of another path', async (t) => {
    const bodies: readonly { body: string | Buffer; headers?: object }[] = [
      { body: `{"client_secret":{"value":"${SECRET}"}}` },
      { body: '{"client_secret":"s"}' },
      { body: '{"a":[{"b":{"clientSecret":"s"}}]}' },
      { body: '{"client\\u005fsecret":"s"}' },
      { body: `{"value":"${SECRET}","expires_at":1}` },
      { body: gzipSync('{"client_secret":"s"}'), headers: { 'content-encoding': 'gzip' } },
      { body: `{"client_secret":"s","a":"${'x'.repeat(2_000_000)}"}` },
      { body: '{"client_secret":"s"}', headers: { 'content-type': 'application/vnd.x+json' } },
      { body: '{"headers":{"authorization":"Bearer upstream-key-0"}}' },
    ]
    for (const answer of bodies) {
      const { ask, gateway } = await gatewayWith(t, answer)
      const { status, text } = await ask('/v1/odd')
      assert.equal(status, 404, String(answer.body).slice(0, 100))
      assert.doesNotMatch(text, /ek_|"s"|upstream-key/)
      assert.deepEqual(await gateway.books(), { spent: '0', charges: 0 })
    }
  })

  it('is passed on by a rule with `secrets: true`', async (t) => {
    const body = `{"client_secret":{"value":"${SECRET}"}}`
    const { ask } = await gatewayWith(t, { body }, { secrets: true })
    for (const path of ['/v1/realtime/client_secrets', '/v1/odd'])
      assert.deepEqual(await ask(path), { status: 200, text: body })
  })

  it('is not what an answer without one, or with data of the caller, holds', async (t) => {
    for (const body of [
      '{"client_secret":null}',
      '{"metadata":{"client_secret":"mine"}}',
      `["${'x'.repeat(3_000_000)}"]`,
      '{"broken":',
      '',
    ]) {
      const { ask } = await gatewayWith(t, { body })
      assert.deepEqual(await ask('/v1/odd'), { status: 200, text: body })
    }
  })
})
