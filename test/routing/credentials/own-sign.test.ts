import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { describe, it, type TestContext } from 'node:test'
import { createCatalog, type SignRequest } from '../../../lib/core/catalog/index.ts'
import { exchange, gatewayFor, MODES, modeName } from '../../support/exchange.ts'
import type { TestGateway } from '../../support/gateway.ts'
import {
  answerJson,
  chatAnswer,
  chatEvents,
  messageAnswer,
  messageEvents,
  type ScriptedUpstream,
  startUpstream,
  stream,
} from '../../support/scripted-upstream.ts'

const hmac = (...parts: (string | Uint8Array)[]): string => {
  const hash = createHmac('sha256', 'shared')
  for (const part of parts) hash.update(part)
  return hash.digest('hex')
}

/** A gateway whose first line is signed by a function of the app. */
async function signing(
  t: TestContext,
  sign: SignRequest,
  protocol: 'openai' | 'anthropic' = 'openai',
): Promise<{ gateway: TestGateway; upstream: ScriptedUpstream }> {
  const upstream = await startUpstream((res, { headers, json, method, path, raw }) => {
    const url = `http://${headers.host}${path}`
    if (headers['x-signature'] !== hmac(method, url, raw) && headers.authorization !== 'Bearer spare')
      return answerJson(res, 401, { error: { message: 'bad signature' } })
    if (protocol === 'openai') return json.stream ? stream(res, chatEvents(['Hello'])) : chatAnswer(res)
    return json.stream ? stream(res, messageEvents(['Hello'])) : messageAnswer(res)
  })
  t.after(() => upstream.close())
  const timeouts = { connectMs: 2500 }
  const gateway = await gatewayFor(t, {
    lines: [
      { url: upstream.url, protocol, apiKey: undefined, timeouts },
      { url: upstream.url, protocol, apiKey: 'spare' },
    ],
    route: { catalog: () => catalog },
  })
  const { models, lines } = gateway.config.catalog
  const catalog = createCatalog(
    [...models.values()],
    lines.map((line, i) => (i === 0 ? { ...line, sign } : line)),
  )
  return { gateway, upstream }
}

const good: SignRequest = ({ method, url, body }) => ({ 'X-Signature': hmac(method, url, body ?? '') })

describe('a line that the app signs for', () => {
  for (const mode of MODES)
    for (const [how, sign] of [
      ['at once', good],
      ['later', async (request) => good(request)],
    ] as [string, SignRequest][])
      it(`is sent what was signed ${how}: ${modeName(mode)}`, async (t) => {
        const { gateway, upstream } = await signing(t, sign, mode.protocol)
        const answer = await exchange(gateway, mode)
        assert.equal(answer.status, 200)
        assert.match(answer.text, /Hello/)
        assert.equal(upstream.requests.length, 1)
      })

  it('passes method, address, headers and body to the function', async (t) => {
    const seen: Parameters<SignRequest>[0][] = []
    const { gateway, upstream } = await signing(t, (request) => {
      seen.push(request)
      return good(request)
    })
    await exchange(gateway)
    const [{ method, url, headers, body } = assert.fail()] = seen
    assert.deepEqual([method, url], ['POST', `${upstream.url}/v1/chat/completions`])
    assert.equal(headers['content-type'], 'application/json')
    assert.deepEqual(Buffer.from(body ?? []), upstream.requests[0]?.raw)
  })

  const failing: [what: string, sign: () => unknown, outcome: string, detail: RegExp][] = [
    ['throws', () => fail('no key: sk-secret-1'), 'upstream_error', /^"sign" of the line failed: no key …/],
    ['rejects', () => Promise.reject(new Error('x')), 'upstream_error', /^"sign" of the line failed/],
    ['rejects without an error', () => Promise.reject(), 'upstream_error', /^"sign" of the line failed$/],
    ['returns nothing', () => undefined, 'upstream_error', /must return headers$/],
    ['returns a list', () => ['a'], 'upstream_error', /must return headers$/],
    ['returns numbers', () => ({ 'x-a': 1 }), 'upstream_error', /must return headers$/],
    ['returns two lines', () => ({ 'x-a': 'a\r\nb: c' }), 'upstream_error', /must return headers$/],
    ['returns no name', () => ({ 'x a': 'b' }), 'upstream_error', /must return headers$/],
    ['never settles', () => new Promise(() => {}), 'upstream_timeout', /took too long$/],
  ]
  for (const [what, sign, outcome, detail] of failing)
    it(`fails its attempt and nothing else if the function ${what}`, async (t) => {
      const { gateway, upstream } = await signing(t, sign as SignRequest)
      const answer = await exchange(gateway)
      assert.equal(answer.status, 200)
      assert.deepEqual(
        upstream.requests.map(({ headers }) => headers.authorization),
        ['Bearer spare'],
      )
      const [first] = (await gateway.entry(answer.requestId)).routing?.attempts ?? []
      assert.equal(first?.outcome, outcome)
      assert.match(first?.detail ?? '', detail)
      assert.doesNotMatch(JSON.stringify([first, gateway.logged]), /sk-secret/)
    })
})

function fail(message: string): never {
  throw new Error(message)
}
