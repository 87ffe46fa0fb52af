import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { request } from 'node:http'
import { describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'
import { envelopeOf } from '../../support/answer-bodies.ts'
import { bytesOf, byteUpstream } from '../../support/byte-upstream.ts'
import { forwardGateway } from '../../support/forward-gateway.ts'
import { KEY } from '../../support/gateway.ts'
import { closedPort } from '../../support/scripted-upstream.ts'

const FILE = randomBytes(100_000)

describe('a request that is passed on', () => {
  it('goes to the line with its path, query and body, and the answer comes back byte for byte', async (t) => {
    const sent = randomBytes(300_000)
    let received: Buffer | undefined
    const upstream = await byteUpstream(t, async (req, res) => {
      received = await bytesOf(req)
      res.writeHead(201, { 'content-type': 'application/octet-stream', etag: '"1"' }).end(FILE)
    })
    const gateway = await forwardGateway(t, { lines: [upstream.url] })
    const response = await gateway.ask('/v1/files/a%20b?limit=2&x=%2F', { method: 'POST', body: sent })
    assert.equal(response.status, 201)
    assert.equal(response.headers.get('etag'), '"1"')
    assert.deepEqual(Buffer.from(await response.arrayBuffer()), FILE)
    const [request] = upstream.requests
    assert.equal(request?.url, '/v1/files/a%20b?limit=2&x=%2F')
    assert.equal(request?.method, 'POST')
    assert.deepEqual(received, sent)
    const { outcome, status, routing } = await gateway.entry(response.headers.get('x-request-id'))
    assert.deepEqual([outcome, status], ['completed', 201])
    const [attempt] = routing?.attempts ?? []
    assert.deepEqual(
      [attempt?.line, attempt?.upstream_model, attempt?.upstream_status, attempt?.outcome],
      ['line-0', null, 201, 'completed'],
    )
  })

  it('is sent in pieces where the caller sends pieces, and of a given length where it says one', async (t) => {
    const upstream = await byteUpstream(t, async (req, res) => {
      res.end(String((await bytesOf(req)).length))
    })
    const gateway = await forwardGateway(t, { lines: [upstream.url] })
    const upload = request(`${gateway.url}/v1/files`, {
      method: 'POST',
      headers: { authorization: `Bearer ${KEY}`, 'transfer-encoding': 'chunked' },
    })
    upload.write('abc')
    upload.end('def')
    const [response] = await once(upload, 'response')
    assert.equal(String(await bytesOf(response)), '6')
    const plain = await gateway.ask('/v1/files', { method: 'POST', body: 'abcd' })
    assert.equal(await plain.text(), '4')
    const empty = await gateway.ask('/v1/files', { method: 'POST' })
    assert.equal(await empty.text(), '0')
    const removal = await gateway.ask('/v1/files/f1', { method: 'DELETE' })
    assert.equal(await removal.text(), '0')
    assert.deepEqual(
      upstream.requests.map(({ headers }) => [headers['transfer-encoding'], headers['content-length']]),
      [
        ['chunked', undefined],
        [undefined, '4'],
        [undefined, '0'],
        [undefined, '0'],
      ],
    )
  })

  it('may ask for a range, and for what it does not have yet', async (t) => {
    const upstream = await byteUpstream(t, (req, res) => {
      const described = { 'content-type': 'application/json', 'content-encoding': 'gzip' }
      if (req.headers['if-none-match'] === '"1"') {
        res.writeHead(304, { ...described, etag: '"1"', 'content-length': FILE.length }).end()
        return
      }
      const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(req.headers.range ?? '') ?? []
      if (from === undefined) return void res.writeHead(200, { etag: '"1"' }).end(FILE)
      if (Number(from) > FILE.length) {
        const headers = { ...described, 'content-range': `bytes */${FILE.length}` }
        return void res.writeHead(416, headers).end(gzipSync('{"error":{"message":"secret words"}}'))
      }
      const part = FILE.subarray(Number(from), Number(to) + 1)
      const range = `bytes ${from}-${to}/${FILE.length}`
      res.writeHead(206, { 'content-range': range, 'accept-ranges': 'bytes' }).end(part)
    })
    const gateway = await forwardGateway(t, { lines: [upstream.url] })
    const descriptionOf = ({ headers }: Response) =>
      ['content-type', 'content-encoding', 'content-length'].map((name) => headers.get(name))
    const part = await gateway.ask('/v1/files/f1/content', { headers: { range: 'bytes=10-19' } })
    assert.equal(part.status, 206)
    assert.equal(part.headers.get('content-range'), 'bytes 10-19/100000')
    assert.equal(part.headers.get('accept-ranges'), 'bytes')
    assert.deepEqual(Buffer.from(await part.arrayBuffer()), FILE.subarray(10, 20))

    const beyond = await gateway.ask('/v1/files/f1/content', { headers: { range: 'bytes=999999-9999999' } })
    assert.equal(beyond.status, 416)
    assert.equal(beyond.headers.get('content-range'), 'bytes */100000')
    assert.deepEqual(descriptionOf(beyond), [null, null, '0'])
    assert.equal(await beyond.text(), '', "an upstream's words stay behind")

    const same = await gateway.ask('/v1/files/f1/content', { headers: { 'if-none-match': '"1"' } })
    assert.equal(same.status, 304)
    assert.equal(same.headers.get('etag'), '"1"')
    assert.deepEqual(descriptionOf(same), [null, null, null])
    // The part was a success; the others gave nothing.
    assert.deepEqual(await gateway.books(), { spent: '0.01', charges: 1 })
  })

  it('may ask for the head alone', async (t) => {
    const upstream = await byteUpstream(t, (_req, res) => {
      res.writeHead(200, { 'content-length': '12345', 'content-type': 'video/mp4', etag: '"v"' }).end()
    })
    const gateway = await forwardGateway(t, { lines: [upstream.url] })
    const response = await gateway.ask('/v1/files/f1/content', { method: 'HEAD' })
    assert.equal(upstream.requests[0]?.method, 'HEAD')
    assert.deepEqual(
      ['content-length', 'content-type', 'etag'].map((name) => response.headers.get(name)),
      ['12345', 'video/mp4', '"v"'],
    )
  })

  it('shows its answer piece by piece as it comes', async (t) => {
    const release = Promise.withResolvers<void>()
    const upstream = await byteUpstream(t, async (_req, res) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' })
      res.write('data: 1\n\n')
      await release.promise
      res.end('data: 2\n\n')
    })
    const gateway = await forwardGateway(t, { lines: [upstream.url] })
    const response = await gateway.ask('/v1/files/f1/events')
    assert.equal(response.headers.get('cache-control'), 'no-transform')
    const reader = response.body?.getReader()
    const first = await reader?.read()
    assert.equal(Buffer.from(first?.value ?? []).toString(), 'data: 1\n\n')
    release.resolve()
    assert.equal(Buffer.from((await reader?.read())?.value ?? []).toString(), 'data: 2\n\n')
    assert.equal((await reader?.read())?.done, true)
  })
})

describe('a line that cannot be connected to', () => {
  const rules = [{ path: '/v1/audio/*rest', lines: ['line-0', 'line-1'], price: { perRequest: '0.01' } }]

  it('gives way to the next with the whole body, for nothing of it was read', async (t) => {
    const upstream = await byteUpstream(t, async (req, res) => void res.end(await bytesOf(req)))
    const dead = `http://127.0.0.1:${await closedPort()}`
    const gateway = await forwardGateway(t, { lines: [dead, upstream.url], rules })
    const response = await gateway.ask('/v1/audio/speech', { method: 'POST', body: FILE })
    assert.equal(response.status, 200)
    assert.deepEqual(Buffer.from(await response.arrayBuffer()), FILE)
    const { routing } = await gateway.entry(response.headers.get('x-request-id'))
    assert.deepEqual(
      routing?.attempts.map(({ line, outcome }) => [line, outcome]),
      [
        ['line-0', 'upstream_error'],
        ['line-1', 'completed'],
      ],
    )
  })

  it('is the last where it was connected to: what was sent is not sent again', async (t) => {
    const resets = await byteUpstream(t, (req) => void req.socket.destroy())
    const second = await byteUpstream(t, (_req, res) => void res.end())
    const gateway = await forwardGateway(t, { lines: [resets.url, second.url], rules })
    const response = await gateway.ask('/v1/audio/speech', { method: 'POST', body: FILE })
    assert.equal(response.status, 502)
    assert.equal((await envelopeOf(response)).error.code, 'upstream_error')
    assert.equal(second.requests.length, 0)
    assert.deepEqual(await gateway.books(), { spent: '0', charges: 0 })
  })

  it('leaves an error of the gateway where it was the only one', async (t) => {
    const dead = `http://127.0.0.1:${await closedPort()}`
    const gateway = await forwardGateway(t, { lines: [dead] })
    const response = await gateway.ask('/v1/files', { method: 'POST', body: 'x' })
    assert.equal(response.status, 502)
    const { error, request_id } = await envelopeOf(response)
    assert.equal(error.code, 'upstream_error')
    assert.equal(request_id, response.headers.get('x-request-id'))
    const { outcome, routing } = await gateway.entry(request_id)
    assert.equal(outcome, 'failed')
    assert.match(routing?.attempts[0]?.detail ?? '', /ECONNREFUSED/)
  })
})
