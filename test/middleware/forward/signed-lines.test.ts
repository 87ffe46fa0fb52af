import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { createCatalog, type Line, type SignRequest } from '../../../lib/core/catalog/index.ts'
import { errorEnvelope } from '../../../lib/middleware/error-envelope/index.ts'
import { forward, forwardTo } from '../../../lib/middleware/forward/index.ts'
import { envelopeOf } from '../../support/answer-bodies.ts'
import { loadConfig } from '../../support/any-config.ts'
import { bytesOf, byteUpstream } from '../../support/byte-upstream.ts'
import { type ChainServer, serveChain } from '../../support/chain-server.ts'
import { forwardGateway } from '../../support/forward-gateway.ts'
import { KEY } from '../../support/gateway.ts'
import { startTokenServer } from '../../support/token-server.ts'

const AWS = { AWS_ACCESS_KEY_ID: 'AKIA0000000000000000', AWS_SECRET_ACCESS_KEY: 'shared' }

const forgetAws = (): void => {
  for (const name of Object.keys(AWS)) delete process.env[name]
}

/** A handler that pins its requests to a line without a key of its own. */
async function pinned(
  t: TestContext,
  url: string,
  signed: { apiKey?: object; sign?: SignRequest },
): Promise<ChainServer & { ask(init?: RequestInit): Promise<Response> }> {
  const { sign, ...members } = signed
  const config = loadConfig({
    accounts: [{ id: 'acme' }],
    keys: [{ id: 'k', account: 'acme', secret: KEY }],
    models: [{ id: 'm', kind: 'chat' }],
    lines: [{ id: 'l', provider: 'p', protocol: 'openai', baseUrl: `${url}/v1`, models: {}, ...members }],
  })
  const line: Line = { ...(config.catalog.lines[0] ?? assert.fail()), ...(sign && { sign }) }
  const chain = await serveChain(config, (app, { lines }) => {
    const toLine = forwardTo({ lines })
    app.all('/v1/clips/:id', (req, res, next) => {
      toLine(req, res, { line, path: '/clips/theirs?x=1' }).catch(next)
    })
    app.use(errorEnvelope())
  })
  t.after(() => chain.close())
  const ask = (init: RequestInit = {}) =>
    fetch(`${chain.url}/v1/clips/ours`, { ...init, headers: { authorization: `Bearer ${KEY}` } })
  return { ...chain, ask }
}

describe('a request that is passed on to a line whose requests are signed', () => {
  for (const method of ['GET', 'POST'])
    it(`has what the function of the app returns: ${method}`, async (t) => {
      const upstream = await byteUpstream(t, (_req, res) => void res.end('a clip'))
      const seen: Parameters<SignRequest>[0][] = []
      const server = await pinned(t, upstream.url, {
        sign: async (request) => {
          seen.push(request)
          return { 'X-Signature': 'signed' }
        },
      })
      const answer = await server.ask({ method, ...(method === 'POST' && { body: 'x' }) })
      assert.equal(await answer.text(), 'a clip')
      assert.deepEqual(
        seen.map(({ method, url, body }) => [method, url, body]),
        [[method, `${upstream.url}/v1/clips/theirs?x=1`, undefined]],
      )
      assert.equal(upstream.requests[0]?.headers['x-signature'], 'signed')
    })

  const failing: [what: string, sign: () => unknown, code: string][] = [
    ['throws', () => assert.fail('no key: sk-secret-1'), 'upstream_error'],
    ['rejects', () => Promise.reject(new Error('no key: sk-secret-1')), 'upstream_error'],
    ['returns nothing', () => undefined, 'upstream_error'],
  ]
  for (const [what, sign, code] of failing)
    it(`is not sent where that function ${what}`, async (t) => {
      const upstream = await byteUpstream(t, (_req, res) => void res.end('a clip'))
      const server = await pinned(t, upstream.url, { sign: sign as SignRequest })
      const answer = await server.ask()
      assert.equal(answer.status, 502)
      const { error } = await envelopeOf(answer)
      assert.equal(error.code, code)
      assert.equal(upstream.requests.length, 0)
      const { routing } = await server.entry(answer.headers.get('x-request-id'))
      const [attempt] = routing?.attempts ?? []
      assert.match(attempt?.detail ?? '', /^"sign" of the line/)
      assert.doesNotMatch(JSON.stringify([attempt, error]), /sk-secret/)
    })

  for (const [what, fails, body] of [
    ['that function fails', true, undefined],
    ['a body would have to be signed', false, 'a new clip'],
  ] as const)
    it(`goes to the next line where ${what}`, async (t) => {
      Object.assign(process.env, AWS)
      t.after(forgetAws)
      const upstream = await byteUpstream(t, async (req, res) => void res.end(await bytesOf(req)))
      const lineOf = (id: string, more: object) => {
        return { id, provider: id, protocol: 'openai', baseUrl: `${upstream.url}/${id}`, models: {}, ...more }
      }
      const config = loadConfig({
        accounts: [{ id: 'acme' }],
        keys: [{ id: 'k', account: 'acme', secret: KEY }],
        models: [{ id: 'm', kind: 'chat' }],
        lines: [
          lineOf('signed', fails ? {} : { apiKey: { aws: { region: 'eu-west-1' } } }),
          lineOf('next', { apiKey: 'k' }),
        ],
      })
      const { models, lines } = config.catalog
      const [signed, next] = lines as [Line, Line]
      const first = { ...signed, ...(fails && { sign: () => assert.fail('no key') }) }
      const catalog = createCatalog([...models.values()], [first, next])
      const chain = await serveChain(config, (app, { lines }) => {
        app.use('/v1/clips', forward({ catalog, lines, rule: { lines: ['signed', 'next'] } }))
        app.use(errorEnvelope())
      })
      t.after(() => chain.close())
      const headers = { authorization: `Bearer ${KEY}` }
      const init = { headers, ...(body !== undefined && { method: 'POST', body }) }
      const answer = await fetch(`${chain.url}/v1/clips/ours`, init)
      assert.deepEqual([answer.status, await answer.text()], [200, body ?? ''])
      assert.deepEqual(
        upstream.requests.map(({ url }) => url),
        ['/next/clips/ours'],
      )
    })

  it('has a signature of AWS without a body, and is not sent with one, which is not read', async (t) => {
    Object.assign(process.env, AWS)
    t.after(forgetAws)
    const upstream = await byteUpstream(t, (_req, res) => void res.end('a clip'))
    const server = await pinned(t, upstream.url, { apiKey: { aws: { region: 'eu-west-1' } } })
    assert.equal(await (await server.ask()).text(), 'a clip')
    assert.match(upstream.requests[0]?.headers.authorization ?? '', /^AWS4-HMAC-SHA256 Credential=AKIA/)
    const refused = await server.ask({ method: 'POST', body: 'x' })
    assert.equal(refused.status, 502)
    assert.equal(upstream.requests.length, 1)
    const { routing } = await server.entry(refused.headers.get('x-request-id'))
    assert.match(routing?.attempts[0]?.detail ?? '', /whole bodies signed/)
  })
})

/** A line that is asked with tokens, and answers as a test says. */
async function tokened(t: TestContext, statusOf: (token: string) => number) {
  const tokens = await startTokenServer()
  t.after(() => tokens.close())
  const sent: string[] = []
  const upstream = await byteUpstream(t, (req, res) => {
    const token = req.headers.authorization ?? ''
    sent.push(token)
    req.resume().on('end', () => res.writeHead(statusOf(token)).end())
  })
  const apiKey = { oauth: { tokenUrl: tokens.url, clientId: 'c', clientSecret: 's' } }
  const gateway = await forwardGateway(t, {
    lines: [{ url: upstream.url, apiKey, circuit: { minimumCalls: 1000 } }],
  })
  const ask = async () => (await gateway.ask('/v1/files', { method: 'POST', body: 'x' })).status
  return { tokens, gateway, sent, ask }
}

describe('a token of a line that is passed on to', () => {
  it('is fetched anew for the next request once it was refused: the body is read, and not sent twice', async (t) => {
    const { ask, sent } = await tokened(t, (token) => (token === 'Bearer token-1' ? 401 : 200))
    assert.deepEqual([await ask(), await ask(), await ask()], [502, 200, 200])
    assert.deepEqual(sent, ['Bearer token-1', 'Bearer token-2', 'Bearer token-2'])
  })

  it('is kept where the line refuses something else', async (t) => {
    const statuses = [403, 400, 500, 200]
    const { ask, sent, tokens } = await tokened(t, () => statuses.shift() ?? 200)
    for (let i = 0; i < 4; i++) await ask()
    assert.deepEqual(new Set(sent), new Set(['Bearer token-1']))
    assert.equal(tokens.forms.length, 1)
  })

  it('that cannot be had is a failure of the line, which is not asked', async (t) => {
    const { ask, sent, tokens, gateway } = await tokened(t, () => 200)
    tokens.script = (res) => void res.writeHead(500).end()
    assert.equal(await ask(), 502)
    assert.deepEqual(sent, [])
    assert.deepEqual(await gateway.books(), { spent: '0', charges: 0 })
  })
})
