import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { envelopeOf } from '../../support/answer-bodies.ts'
import { byteUpstream } from '../../support/byte-upstream.ts'
import { forwardGateway } from '../../support/forward-gateway.ts'
import { chain } from './support/watched-chain.ts'

/** Upstream status, what the caller gets. */
const TABLE = [
  [300, 502, 'upstream_error'],
  [302, 502, 'upstream_error'],
  [307, 502, 'upstream_error'],
  [400, 400, 'invalid_request'],
  [401, 502, 'upstream_error'],
  [402, 502, 'upstream_error'],
  [403, 502, 'upstream_error'],
  [404, 404, 'not_found'],
  [405, 404, 'not_found'],
  [409, 409, 'conflict'],
  [410, 404, 'not_found'],
  [413, 413, 'request_too_large'],
  [415, 400, 'invalid_request'],
  [422, 400, 'invalid_request'],
  [429, 429, 'upstream_rate_limited'],
  [500, 502, 'upstream_error'],
  [503, 503, 'upstream_overloaded'],
  [529, 503, 'upstream_overloaded'],
] as const

const SECRET = 'words of the upstream'

describe('an upstream that answers with an error', () => {
  for (const [status, expected, code] of TABLE) {
    it(`${status} is ${code}, in our words, and costs nothing`, async (t) => {
      const upstream = await byteUpstream(t, (req, res) => {
        req.resume()
        res.writeHead(status, {
          'content-type': 'application/json',
          location: 'http://inside.example/file?signature=secret',
          'retry-after': '7',
          'set-cookie': 'a=1',
        })
        res.end(JSON.stringify({ error: { message: SECRET, type: 'x', code: 'y' } }))
      })
      const gateway = await forwardGateway(t, { lines: [upstream.url] })
      const response = await gateway.ask('/v1/files', { method: 'POST', body: 'x' })
      assert.equal(response.status, expected)
      for (const name of ['location', 'set-cookie']) assert.equal(response.headers.get(name), null)
      const text = await response.clone().text()
      assert.doesNotMatch(text, new RegExp(SECRET))
      const { error, request_id } = await envelopeOf(response)
      assert.equal(error.code, code)
      if (status === 429) assert.equal(response.headers.get('retry-after'), '7')
      const entry = await gateway.entry(request_id)
      assert.equal(entry.routing?.attempts[0]?.upstream_status, status)
      assert.doesNotMatch(JSON.stringify(entry), new RegExp(SECRET), 'it may quote what nobody has read')
      assert.equal(entry.billing?.charged, null)
      assert.equal(upstream.requests.length, 1, 'a redirect is not followed')
      assert.deepEqual(await gateway.books(), { spent: '0', charges: 0 })
    })
  }

  it('rests after a 429 for as long as it said', async (t) => {
    const upstream = await byteUpstream(t, (_req, res) => {
      res.writeHead(429, { 'retry-after': '60' }).end()
    })
    const gateway = await forwardGateway(t, { lines: [upstream.url] })
    await gateway.ask('/v1/files')
    const second = await gateway.ask('/v1/files')
    assert.equal((await envelopeOf(second)).error.code, 'upstream_rate_limited')
    assert.equal(upstream.requests.length, 1)
    const { routing } = await gateway.entry(second.headers.get('x-request-id'))
    assert.equal(routing?.eliminated[0]?.reason, 'resting')
  })

  it('opens its circuit, and is not asked any more', async (t) => {
    const upstream = await byteUpstream(t, (_req, res) => void res.writeHead(500).end())
    const gateway = await forwardGateway(t, {
      lines: [{ url: upstream.url, circuit: { minimumCalls: 2 } }],
    })
    for (const code of ['upstream_error', 'upstream_error', 'circuit_open']) {
      assert.equal((await envelopeOf(await gateway.ask('/v1/files'))).error.code, code)
    }
    assert.equal(upstream.requests.length, 2)
  })

  for (const status of [302, 307, 403, 404]) {
    it(`is not blamed for a path that its callers choose: ${status}`, async (t) => {
      const upstream = await byteUpstream(t, (_req, res) => void res.writeHead(status).end())
      const gateway = await forwardGateway(t, {
        lines: [{ url: upstream.url, circuit: { minimumCalls: 2 } }],
      })
      for (let i = 0; i < 4; i++) {
        assert.notEqual((await envelopeOf(await gateway.ask('/v1/files/none'))).error.code, 'circuit_open')
      }
      assert.equal(upstream.requests.length, 4)
    })
  }
})

describe('an upstream that refuses an upload before it has read it', () => {
  it('is heard', async (t) => {
    // It does not end the response: over unread bytes that would reset the connection, answer and all.
    const upstream = await byteUpstream(t, (_req, res) => {
      res.writeHead(413, { 'content-length': 2 }).write('{}')
    })
    const gateway = await forwardGateway(t, { lines: [upstream.url] })
    const response = await gateway.ask('/v1/files', { method: 'POST', body: Buffer.alloc(8_000_000) })
    assert.equal((await envelopeOf(response)).error.code, 'request_too_large')
    await gateway.entry(response.headers.get('x-request-id'))
    assert.deepEqual(await gateway.books(), { spent: '0', charges: 0 })
  })
})

describe('an upstream that does not answer', () => {
  for (const method of ['GET', 'POST']) {
    it(`is given up after the first-byte clock: ${method}`, async (t) => {
      let cut = false
      const upstream = await byteUpstream(t, (req) => {
        req.resume().on('close', () => {
          cut = true
        })
        req.socket.on('close', () => {
          cut = true
        })
      })
      const gateway = await forwardGateway(t, {
        lines: [{ url: upstream.url, timeouts: { firstByteMs: 500 } }],
      })
      const response = await gateway.ask('/v1/files', { method, ...(method === 'POST' && { body: 'abc' }) })
      assert.equal(response.status, 504)
      const { error, request_id } = await envelopeOf(response)
      assert.equal(error.code, 'upstream_timeout')
      const { routing } = await gateway.entry(request_id)
      assert.equal(routing?.attempts[0]?.timeout_phase, 'first_byte')
      assert.ok(cut, 'the connection is cut')
    })
  }

  it('is given up when it takes no more of an upload', async (t) => {
    const upstream = await byteUpstream(t, (req) => void req.pause())
    const gateway = await forwardGateway(t, {
      lines: [{ url: upstream.url, timeouts: { firstByteMs: 500 } }],
    })
    const response = await gateway.ask('/v1/files', { method: 'POST', body: Buffer.alloc(16_000_000) })
    assert.equal((await envelopeOf(response)).error.code, 'upstream_timeout')
  })

  it('is given up when it falls silent in the middle: the answer is cut off', async (t) => {
    const upstream = await byteUpstream(t, (_req, res) => {
      res.writeHead(200, { 'content-length': '10' }).write('12345')
    })
    const gateway = await forwardGateway(t, { lines: [{ url: upstream.url, timeouts: { idleMs: 500 } }] })
    const response = await gateway.ask('/v1/files/f1/content')
    assert.equal(response.status, 200)
    await assert.rejects(response.arrayBuffer())
    const { outcome, error_code, routing } = await gateway.entry(response.headers.get('x-request-id'))
    assert.deepEqual([outcome, error_code], ['interrupted', 'upstream_timeout'])
    assert.equal(routing?.attempts[0]?.timeout_phase, 'idle')
  })

  it('is not given up while its caller is the one that sends slowly', async (t) => {
    const upstream = await byteUpstream(t, async (req, res) => {
      let bytes = 0
      for await (const chunk of req) bytes += (chunk as Buffer).length
      res.end(String(bytes))
    })
    const gateway = await forwardGateway(t, {
      lines: [{ url: upstream.url, timeouts: { firstByteMs: 1000, idleMs: 1000 } }],
    })
    const body = new ReadableStream({
      async start(controller) {
        for (let i = 0; i < 3; i++) {
          controller.enqueue(Buffer.from('piece'))
          await new Promise((resolve) => setTimeout(resolve, 1100))
        }
        controller.close()
      },
    })
    const init = { method: 'POST', body, duplex: 'half' } as RequestInit
    const response = await gateway.ask('/v1/files', init)
    assert.equal(await response.text(), '15')
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
