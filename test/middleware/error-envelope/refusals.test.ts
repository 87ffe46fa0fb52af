import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { Router } from 'express'
import { type ErrorCode, GatewayError } from '../../../lib/core/errors/index.ts'
import { beginCall } from '../../../lib/middleware/begin-call/index.ts'
import { errorEnvelope, unknownPath } from '../../../lib/middleware/error-envelope/index.ts'
import { SPEC_CODES, TYPES_BY_STATUS } from '../../core/errors/spec-codes.ts'
import { envelopeIn, envelopeOf } from '../../support/answer-bodies.ts'
import { type AppServer, serveApp } from '../../support/app-server.ts'
import { cleaningUp } from '../../support/clean-up.ts'

const SECRET = 'sk-secret'
/** Details that only the call log may hold, and details that nobody gets. */
const RESERVED = new RegExp(`${SECRET}|line-7|rpm:acme|0\\.42|upstream says|node_modules|at Object|lib/`)

/** The headers that a handler had set for an answer that it then did not give. */
const PREPARED: Readonly<Record<string, string>> = {
  'accept-ranges': 'bytes',
  'cache-control': 'max-age=60',
  'content-digest': 'sha-256=:AAAA:',
  'content-disposition': 'attachment',
  'content-encoding': 'gzip',
  'content-language': 'da',
  'content-location': '/orders/7',
  'content-range': 'bytes 0-4/9',
  etag: '"1"',
  expires: 'Wed, 21 Oct 2099 07:28:00 GMT',
  'last-modified': 'Wed, 21 Oct 2015 07:28:00 GMT',
  location: '/orders/7',
  'repr-digest': 'sha-256=:AAAA:',
  trailer: 'x-sum',
  'transfer-encoding': 'chunked',
}

let app: AppServer
const cleanUp = cleaningUp()
before(async () => {
  app = await serveApp((app) => {
    const routes = Router()
    routes.all('/fail/:code', (req, res, next) => {
      res.status(200).set({ ...PREPARED, 'x-kept': 'yes' })
      res.statusMessage = 'All is well'
      const cause = Object.assign(new Error(`upstream says no to ${SECRET}`), {
        line: 'line-7',
        limit: 'rpm:acme',
      })
      next(new GatewayError(req.params.code as ErrorCode, { cause: [cause, '0.42'], retryAfterMs: 2500 }))
    })
    routes.get('/known', (_req, res) => void res.json({ ok: true }))
    app.use(beginCall({ logger: { info() {}, warn() {}, error() {} } }))
    for (const root of ['/v1/chat', '/v1/messages', '/api/v3', '/llm/v1/messages']) app.use(root, routes)
    app.use(unknownPath(), errorEnvelope())
  })
  cleanUp.after(() => app.close())
})

const ROOTS = { openai: '/v1/chat', anthropic: '/v1/messages', ark: '/api/v3' } as const

for (const [protocol, root] of Object.entries(ROOTS)) {
  describe(`error answers, ${protocol}`, () => {
    for (const [code, status, , shouldRetry] of SPEC_CODES) {
      it(`${code}: status, headers and body belong together and give nothing away`, async () => {
        const res = await fetch(`${app.url}${root}/fail/${code}?key=${SECRET}`, { method: 'POST' })
        const text = await res.text()
        const body = envelopeIn(JSON.parse(text))
        const types = TYPES_BY_STATUS[status]!
        assert.equal(res.status, status)
        assert.equal(body.error.type, types[protocol === 'anthropic' ? 1 : 0])
        assert.equal(body.error.code, protocol === 'anthropic' ? undefined : code)
        assert.match(body.request_id, /^req_/)
        assert.equal(res.headers.get('x-request-id'), body.request_id)
        assert.equal(res.headers.get('request-id'), protocol === 'anthropic' ? body.request_id : null)
        assert.equal(res.headers.get('x-should-retry'), shouldRetry ?? null)
        assert.equal(res.headers.get('retry-after'), '3')
        assert.equal(res.headers.get('retry-after-ms'), '2500')
        assert.doesNotMatch(text, RESERVED)
        assert.doesNotMatch(JSON.stringify([...res.headers]), RESERVED)
      })
    }

    it('replaces what was prepared for another answer', async () => {
      const res = await fetch(`${app.url}${root}/fail/key_expired`)
      assert.equal(res.statusText, 'Forbidden')
      assert.equal(res.headers.get('content-type'), 'application/json; charset=utf-8')
      assert.equal(res.headers.get('content-length'), String((await res.arrayBuffer()).byteLength))
      for (const name of Object.keys(PREPARED)) assert.equal(res.headers.get(name), null, name)
      assert.equal(res.headers.get('x-kept'), 'yes')
    })

    it('answers not_found to an unknown path and to a known one with another method', async () => {
      for (const [method, path] of [
        ['GET', '/unknown'],
        ['DELETE', '/known'],
        ['PUT', '/known/below'],
        ['GET', '/%F0%9F%8D%8B'],
      ]) {
        const res = await fetch(`${app.url}${root}${path}`, { method: method! })
        const body = await envelopeOf(res)
        assert.equal(res.status, 404)
        assert.equal(body.error.type, 'not_found_error')
        assert.equal(res.headers.get('x-request-id'), body.request_id)
        if (protocol !== 'anthropic') assert.equal(body.error.code, 'not_found')
      }
    })

    it('answers HEAD with the headers of the error and no body', async () => {
      const res = await fetch(`${app.url}${root}/fail/rate_limited`, { method: 'HEAD' })
      assert.equal(res.status, 429)
      assert.equal(res.headers.get('retry-after'), '3')
      assert.match(res.headers.get('x-request-id') ?? '', /^req_/)
      assert.ok(Number(res.headers.get('content-length')) > 0)
      assert.equal(await res.text(), '')
    })
  })
}

describe('error answers elsewhere', () => {
  it('knows the protocol under a sub-path too', async () => {
    const res = await fetch(`${app.url}/llm/v1/messages/fail/key_disabled`)
    const body = await envelopeOf(res)
    assert.equal(body.type, 'error')
    assert.equal(res.headers.get('request-id'), body.request_id)
  })

  it('words errors without beginCall, with an id of their own', async () => {
    const bare = await serveApp((app) => {
      app.get('/v1/messages', () => {
        throw new GatewayError('region_denied')
      })
      app.use(unknownPath(), errorEnvelope())
    })
    try {
      for (const [path, status] of [
        ['/v1/messages', 403],
        ['/v1/other', 404],
      ] as const) {
        const res = await fetch(bare.url + path)
        assert.equal(res.status, status)
        assert.equal((await envelopeOf(res)).request_id, res.headers.get('x-request-id'))
      }
    } finally {
      await bare.close()
    }
  })

  it('works in a router of its own without touching the rest of the app', async () => {
    const host = await serveApp((app) => {
      const gateway = Router()
      gateway.use(beginCall(), unknownPath(), errorEnvelope())
      app.use('/gateway', gateway)
      app.use('/own', () => {
        throw Object.assign(new Error('own'), { status: 418 })
      })
    })
    try {
      const own = await fetch(`${host.url}/own`)
      assert.equal(own.status, 418)
      assert.match(own.headers.get('content-type') ?? '', /html/)
      assert.equal(own.headers.get('x-request-id'), null)
      assert.equal(
        (await fetch(`${host.url}/gateway/v1/x`)).headers.get('content-type')?.slice(0, 16),
        'application/json',
      )
    } finally {
      await host.close()
    }
  })
})
