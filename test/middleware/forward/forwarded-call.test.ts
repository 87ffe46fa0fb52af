import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request } from 'node:http'
import { describe, it, type TestContext } from 'node:test'
import type { RequestHandler } from 'express'
import { callOf, type OpenCall } from '../../../lib/core/call/index.ts'
import { GatewayError } from '../../../lib/core/errors/index.ts'
import { CallAborter } from '../../../lib/middleware/forward/forwarding.ts'
import { UpstreamResources } from '../../../lib/middleware/references/index.ts'
import { envelopeOf } from '../../support/answer-bodies.ts'
import { rawClient } from '../../support/app-server.ts'
import { type ByteScript, bytesOf, byteUpstream } from '../../support/byte-upstream.ts'
import { forwardGateway, OTHER_KEY } from '../../support/forward-gateway.ts'
import { KEY } from '../../support/gateway.ts'
import { twoUpstreams } from '../../support/reference-rows.ts'
import { until } from '../../support/until.ts'
import { webSocketUpstream } from '../../support/websocket-upstream.ts'
import { chain } from './support/watched-chain.ts'

const stalling: ByteScript = (_req, res) => void res.writeHead(200, { 'content-length': 10 }).flushHeaders()

describe('a call whose key ends', () => {
  for (const [code, closed] of [
    ['key_disabled', 1008],
    ['insufficient_balance', 1008],
    ['billing_unavailable', 1011],
  ] as const)
    it(`is sent in the close frame of a WebSocket: ${code}`, async (t) => {
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

  it('only logs a mistake of the app once its caller has left', async (t) => {
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

const TOTAL_MS = 700

/** A call whose key a test can end. */
function running(t: TestContext, watched = true) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let endKey: ((error: GatewayError) => void) | undefined
  const call = {
    keyWatch: watched
      ? {
          follow(followed: unknown, end: (error: GatewayError) => void) {
            assert.equal(followed, call)
            endKey = end
          },
        }
      : undefined,
  } as unknown as OpenCall
  const aborter = new CallAborter(call, TOTAL_MS)
  return {
    aborter,
    endKey: (error: GatewayError) => endKey?.(error),
    pass: (ms: number) => t.mock.timers.tick(ms),
  }
}

describe('a call that must end before its answer has ended', () => {
  it('ends when its time is up, and not before', (t) => {
    const { aborter, pass } = running(t)
    pass(TOTAL_MS - 1)
    assert.equal(aborter.signal.aborted, false)
    pass(1)
    assert.equal(aborter.signal.reason.code, 'upstream_timeout')
  })

  it('ends with its key', (t) => {
    const { aborter, endKey, pass } = running(t)
    const disabled = new GatewayError('key_disabled')
    endKey(disabled)
    assert.equal(aborter.signal.reason, disabled)
    pass(TOTAL_MS)
    assert.equal(aborter.signal.reason, disabled, 'the first reason counts')
  })

  it('does not need a key that is watched', (t) => {
    const { aborter } = running(t, false)
    const left = new GatewayError('client_closed_request')
    aborter.end(left)
    assert.equal(aborter.signal.reason, left)
  })

  it('has no clock once it is over', (t) => {
    const { aborter, pass } = running(t)
    aborter.close()
    pass(2 * TOTAL_MS)
    assert.equal(aborter.signal.aborted, false)
  })
})

const SESSION_MS = 600
const RULES = ['/v1/files', '/v1/files/*rest'].map((path) => ({
  path,
  lines: ['line-0'],
  price: { perRequest: '0.01' },
  sessionMs: SESSION_MS,
}))

describe('a call that takes longer than its path allows', { concurrency: true }, () => {
  it('is cut off in a download, and what was delivered is charged', async (t) => {
    const upstream = await byteUpstream(t, (_req, res) => {
      res.writeHead(200, { 'content-length': '1000000' })
      const timer = setInterval(() => res.write('piece'), 50)
      res.on('close', () => clearInterval(timer))
    })
    const gateway = await forwardGateway(t, { lines: [upstream.url], rules: RULES })
    const begun = performance.now()
    const response = await gateway.ask('/v1/files/f1/content')
    await assert.rejects(response.arrayBuffer())
    // A timer that is set late in a turn of the event loop counts from the beginning of the turn.
    assert.ok(performance.now() - begun >= SESSION_MS * 0.8)
    await until(() => upstream.connections.size === 0, 'the end of the upstream')
    const { outcome, error_code, billing } = await gateway.entry(String(response.headers.get('x-request-id')))
    assert.deepEqual([outcome, error_code, billing?.charged], ['interrupted', 'upstream_timeout', '0.01'])
  })

  it('is refused in an upload, and charged nothing', async (t) => {
    const upstream = await byteUpstream(t, (req) => void req.resume())
    const gateway = await forwardGateway(t, { lines: [upstream.url], rules: RULES })
    const upload = request(`${gateway.url}/v1/files`, {
      method: 'POST',
      headers: { authorization: `Bearer ${KEY}`, 'transfer-encoding': 'chunked' },
    })
    upload.on('error', () => {})
    const timer = setInterval(() => upload.write('piece'), 50)
    t.after(() => clearInterval(timer))
    const [response] = await once(upload, 'response')
    assert.equal(response.statusCode, 504)
    assert.match(String(await bytesOf(response)), /upstream_timeout/)
    await gateway.entry(String(response.headers['x-request-id']))
    await until(() => upstream.connections.size === 0, 'the end of the upstream')
    assert.deepEqual(await gateway.books(), { spent: '0', charges: 0 })
  })
})

const LIMIT = 64 * 1024

it('JSON that is read before it is passed on has the budget of its key and of the process', async (t) => {
  const [one] = await twoUpstreams(t)
  const resources = new UpstreamResources()
  t.after(() => resources.close())
  const rules = [{ path: '/v1/odd/*rest', lines: ['line-0'] }]
  const bodies = { bodyLimitBytes: LIMIT, bodyBudgetBytes: 2.5 * LIMIT }
  const gateway = await forwardGateway(t, { lines: [one.url], rules, resources, bodies })
  const body = JSON.stringify({ filler: 'x'.repeat(LIMIT - 13) })
  assert.equal(body.length, LIMIT)
  /** Sends all of a body but its last bytes. */
  const upload = (secret: string, sent = LIMIT - 1) => {
    const head = `POST /v1/odd/thing HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer ${secret}\r\ncontent-type: application/json\r\ncontent-length: ${LIMIT}\r\n\r\n`
    const raw = rawClient(gateway.port, head + body.slice(0, sent))
    t.after(() => raw.socket.destroy())
    return raw
  }
  const refusal = async (raw: ReturnType<typeof upload>) => /"code":"(\w+)"/.exec(await raw.end())?.[1]

  const slow = [upload(KEY), upload(KEY)]
  await until(() => gateway.openCalls.size === 2, 'both')
  await new Promise((resolve) => setTimeout(resolve, 200))
  assert.equal(await refusal(upload(KEY, 2000)), 'concurrency_limited', 'the room of the key is taken')

  const other = upload(OTHER_KEY)
  await until(() => slow.some(({ received }) => received !== ''), 'one of the heavier account gives way')
  const [given] = slow.filter(({ received }) => received !== '')
  assert.equal(await refusal(given as (typeof slow)[0]), 'upstream_overloaded')
  assert.equal(one.requests.length, 0)

  const stay = slow.find(({ received }) => received === '') as (typeof slow)[0]
  for (const raw of [stay, other]) raw.socket.write('}')
  for (const raw of [stay, other]) assert.match(await raw.end(), /^HTTP\/1\.1 200 /)
  assert.deepEqual(
    one.requests.map(({ raw }) => raw.toString() === body),
    [true, true],
    'whole, and as it was sent',
  )
  // All that was counted is free.
  await until(() => gateway.openCalls.size === 0, 'the end of all')
  const again = [upload(KEY), upload(KEY)]
  await new Promise((resolve) => setTimeout(resolve, 200))
  for (const raw of again) raw.socket.write('}')
  for (const raw of again) assert.match(await raw.end(), /^HTTP\/1\.1 200 /)
})
