import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, it } from 'node:test'
import type { RequestHandler } from 'express'
import { callOf } from '../../../lib/core/call/index.ts'
import type { GatewayError } from '../../../lib/core/errors/index.ts'
import { envelopeOf } from '../../support/answer-bodies.ts'
import { type ByteScript, byteUpstream } from '../../support/byte-upstream.ts'
import { until } from '../../support/until.ts'
import { webSocketUpstream } from '../../support/websocket-upstream.ts'
import { chain } from './watched-chain.ts'

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
