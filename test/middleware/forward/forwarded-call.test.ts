import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import type { ErrorRequestHandler, RequestHandler } from 'express'
import { WebSocket } from 'ws'
import { callOf } from '../../../lib/core/call/index.ts'
import { loadConfig } from '../../../lib/core/config/index.ts'
import { type ErrorCode, GatewayError } from '../../../lib/core/errors/index.ts'
import { upgradeHandler } from '../../../lib/middleware/begin-call/index.ts'
import { errorEnvelope } from '../../../lib/middleware/error-envelope/index.ts'
import { type ForwardOptions, forward } from '../../../lib/middleware/forward/index.ts'
import { envelopeOf } from '../../support/answer-bodies.ts'
import { type ByteScript, byteUpstream } from '../../support/byte-upstream.ts'
import { serveChain } from '../../support/chain-server.ts'
import { KEY } from '../../support/gateway.ts'
import { until } from '../../support/until.ts'
import { webSocketUpstream } from '../../support/websocket-upstream.ts'

interface Chain {
  rule?: Partial<ForwardOptions['rule']>
  before?: readonly RequestHandler[]
}

/** A chain without billing, whose keys a test can end. */
async function chain(t: TestContext, url: string, { rule, before = [] }: Chain = {}) {
  const config = loadConfig({
    accounts: [{ id: 'acme' }],
    keys: [{ id: 'k', account: 'acme', secret: KEY, tags: { of: 'key' } }],
    models: [{ id: 'm', kind: 'chat' }],
    lines: [{ id: 'l', provider: 'p', protocol: 'openai', baseUrl: `${url}/v1`, models: { m: 'm' } }],
  })
  const ends: ((error: GatewayError) => void)[] = []
  const failed: unknown[] = []
  let upgrades: ReturnType<typeof upgradeHandler> | undefined
  const server = await serveChain(config, (app, { lines }) => {
    upgrades = upgradeHandler(app)
    app.use((req, _res, next) => {
      callOf(req).keyWatch = { follow: (_call, end) => void ends.push(end) }
      next()
    })
    app.all(
      '/v1/*rest',
      ...before,
      forward({ catalog: config.catalog, rule: { lines: ['l'], ...rule }, lines }),
    )
    app.use(((error, _req, _res, next) => {
      failed.push(error)
      next(error)
    }) as ErrorRequestHandler)
    app.use(errorEnvelope())
  })
  server.server.on('upgrade', (...args) => upgrades?.handle(...args))
  t.after(async () => {
    upgrades?.cutOff()
    await server.close()
  })
  const headers = { authorization: `Bearer ${KEY}` }
  const ask = (init: RequestInit = {}) =>
    fetch(`${server.url}/v1/files`, { ...init, headers: { ...headers, ...init.headers } })
  const connect = () => {
    const { port } = server.server.address() as AddressInfo
    const socket = new WebSocket(`ws://127.0.0.1:${port}/v1/realtime`, { headers })
    socket.on('error', () => {})
    return socket
  }
  return {
    ...server,
    ask,
    connect,
    failed,
    end: (code: ErrorCode) => {
      for (const end of ends) end(new GatewayError(code))
    },
  }
}

const stalling: ByteScript = (_req, res) => void res.writeHead(200, { 'content-length': 10 }).flushHeaders()

describe('a call whose key ends', () => {
  for (const [code, closed] of [
    ['key_disabled', 1008],
    ['insufficient_balance', 1008],
    ['billing_unavailable', 1011],
  ] as const)
    it(`is told by its close frame in a WebSocket: ${code}`, async (t) => {
      const upstream = await webSocketUpstream(t)
      const { connect, end, entry } = await chain(t, upstream.url)
      const socket = connect()
      const [response] = await once(socket, 'upgrade')
      await until(() => upstream.sessions.size === 1)
      socket.send('hello')
      await once(socket, 'message')
      end(code)
      end('upstream_timeout')
      const [status, reason] = await once(socket, 'close')
      assert.deepEqual([status, String(reason)], [closed, code])
      const logged = await entry(response.headers['x-request-id'])
      assert.deepEqual([logged.status, logged.outcome, logged.error_code], [101, 'interrupted', code])
      await until(() => upstream.connections.size === 0)
    })

  it('is answered by its refusal where nothing has been sent', async (t) => {
    const upstream = await byteUpstream(t, () => {})
    const { ask, end, failed } = await chain(t, upstream.url)
    const asked = ask()
    await until(() => upstream.requests.length === 1)
    end('key_disabled')
    end('billing_unavailable')
    const answer = await asked
    const { error, request_id } = await envelopeOf(answer)
    assert.equal(error.code, 'key_disabled')
    const [refusal] = failed as GatewayError[]
    assert.equal(refusal?.headers['x-request-id'], request_id, 'whoever else answers knows the call')
    await until(() => upstream.connections.size === 0)
  })

  it('is broken off in the middle of its answer', async (t) => {
    const upstream = await byteUpstream(t, stalling)
    const { ask, end, entry } = await chain(t, upstream.url)
    const answer = await ask()
    assert.equal(answer.status, 200, 'the head does not wait for the body')
    end('key_disabled')
    await assert.rejects(answer.arrayBuffer())
    const { outcome, error_code } = await entry(answer.headers.get('x-request-id'))
    assert.deepEqual([outcome, error_code], ['interrupted', 'key_disabled'])
    await until(() => upstream.connections.size === 0)
  })

  it('has been answered, if it has', async (t) => {
    const upstream = await byteUpstream(t, (_req, res) => void res.end('whole'))
    const { ask, end, entry } = await chain(t, upstream.url)
    const answer = await ask()
    assert.equal(await answer.text(), 'whole')
    end('key_disabled')
    assert.equal((await entry(answer.headers.get('x-request-id'))).outcome, 'completed')
  })
})

describe('a call that is passed on', () => {
  it('has the tags of its key and of its header, and is refused for those that cannot be read', async (t) => {
    const upstream = await byteUpstream(t, (_req, res) => void res.end())
    const { ask, entry } = await chain(t, upstream.url)
    const tagged = await ask({ headers: { 'x-gateway-tags': 'team=red' } })
    const { tags } = await entry(tagged.headers.get('x-request-id'))
    assert.equal(JSON.stringify(tags).includes('red') && JSON.stringify(tags).includes('key'), true)
    const refused = await ask({ headers: { 'x-gateway-tags': '=' } })
    assert.equal((await envelopeOf(refused)).error.code, 'invalid_request')
    assert.equal(upstream.requests.length, 1)
  })

  it('is of a method that its rule names', async (t) => {
    const upstream = await byteUpstream(t, (req, res) => void req.resume().on('end', () => res.end()))
    const { ask } = await chain(t, upstream.url, { rule: { methods: ['POST'] } })
    for (const method of ['GET', 'HEAD', 'PUT', 'DELETE']) assert.equal((await ask({ method })).status, 404)
    assert.equal(upstream.requests.length, 0)
    assert.equal((await ask({ method: 'POST' })).status, 200)
  })

  it('may have an Idempotency-Key where it reads only', async (t) => {
    const upstream = await byteUpstream(t, (req, res) => void req.resume().on('end', () => res.end()))
    const { ask } = await chain(t, upstream.url)
    for (const [method, status] of Object.entries({ GET: 200, HEAD: 200, PUT: 400, PATCH: 400, DELETE: 400 }))
      assert.equal((await ask({ method, headers: { 'idempotency-key': 'k' } })).status, status, method)
  })

  it('needs no account, not even for a model', async (t) => {
    const upstream = await byteUpstream(t, (_req, res) => void res.end('ok'))
    const anonymous: RequestHandler = (req, _res, next) => {
      callOf(req).principal = null
      next()
    }
    const { ask, entry } = await chain(t, upstream.url, {
      rule: { lines: undefined, model: 'm' },
      before: [anonymous],
    })
    const answer = await ask()
    assert.equal(await answer.text(), 'ok')
    assert.equal((await entry(answer.headers.get('x-request-id'))).model, 'm')
  })

  it('tells nobody but the log of a mistake of the app once its caller has left', async (t) => {
    const upstream = await byteUpstream(t, (_req, res) => void res.end())
    const arrived = Promise.withResolvers<void>()
    const reading: RequestHandler = (req, _res, next) => {
      req.on('data', () => {})
      arrived.resolve()
      callOf(req).onLeave(() => setImmediate(next))
    }
    const { ask, failed, logger } = await chain(t, upstream.url, { before: [reading] })
    const leaving = new AbortController()
    const asked = ask({ method: 'POST', body: 'x', signal: leaving.signal }).catch(() => {})
    await arrived.promise
    leaving.abort()
    await asked
    await until(() => logger.lines.some(({ message }) => message === 'forwarding failed'))
    const [line] = logger.lines.filter(({ message }) => message === 'forwarding failed')
    assert.match(String(line?.fields.err), /body has been read already/)
    assert.match(String(line?.fields.requestId), /^req_/)
    assert.deepEqual(failed, [])
  })
})

describe('an answer that is no success', () => {
  for (const [status, code] of [
    [302, 'upstream_error'],
    [400, 'invalid_request'],
    [404, 'not_found'],
    [429, 'upstream_rate_limited'],
    [500, 'upstream_error'],
  ] as const)
    it(`is an error of the gateway: ${status}`, async (t) => {
      const upstream = await byteUpstream(t, (_req, res) => void res.writeHead(status).end('words'))
      const { ask, entry } = await chain(t, upstream.url)
      const answer = await ask()
      const { error, request_id } = await envelopeOf(answer)
      assert.equal(error.code, code)
      const { outcome, routing } = await entry(request_id)
      assert.equal(outcome, 'failed')
      assert.deepEqual(
        routing?.attempts.map(({ upstream_status, outcome }) => [upstream_status, outcome]),
        [[status, code]],
      )
    })

  it('is bare where it only says what has not changed, or cannot be', async (t) => {
    for (const status of [304, 412, 416]) {
      const headers = { etag: '"1"', 'content-type': 'text/plain' }
      const upstream = await byteUpstream(t, (_req, res) => {
        res.writeHead(status, headers).end(status === 304 ? undefined : 'words')
      })
      const { ask } = await chain(t, upstream.url)
      const answer = await ask()
      assert.deepEqual([answer.status, await answer.text(), answer.headers.get('etag')], [status, '', '"1"'])
      assert.equal(answer.headers.get('content-type'), null)
    }
  })
})

describe('an upload in small pieces', () => {
  const upload = (pieces: number) =>
    new ReadableStream({
      start(controller) {
        for (let i = 0; i < pieces; i++) controller.enqueue(Buffer.from('x'))
        controller.close()
      },
    })

  it('passes in some thousands of them, and is refused in more', async (t) => {
    const upstream = await byteUpstream(t, async (req, res) => {
      let bytes = 0
      for await (const piece of req) bytes += (piece as Buffer).length
      res.end(String(bytes))
    })
    const { ask } = await chain(t, upstream.url)
    const send = (pieces: number) =>
      ask({ method: 'POST', body: upload(pieces), duplex: 'half' } as RequestInit)
    assert.equal(await (await send(4000)).text(), '4000')
    const refused = await envelopeOf(await send(6000))
    assert.equal(refused.error.code, 'invalid_request')
    assert.match(refused.error.message, /too many pieces/)
  })
})
