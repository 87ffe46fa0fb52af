import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { request } from 'node:http'
import { Socket } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { gzipSync } from 'node:zlib'
import { loadConfig } from '../../../lib/core/config/index.ts'
import { candidateOf } from '../../../lib/middleware/forward/forward-options.ts'
import { ProxiedExchange } from '../../../lib/middleware/forward/proxied-exchange.ts'
import { LineRegistry } from '../../../lib/middleware/route/index.ts'
import { envelopeOf } from '../../support/answer-bodies.ts'
import { type ByteScript, bytesOf, byteUpstream } from '../../support/byte-upstream.ts'
import { forwardGateway } from '../../support/forward-gateway.ts'
import { KEY } from '../../support/gateway.ts'
import { closedPort } from '../../support/scripted-upstream.ts'
import { until } from '../../support/until.ts'
import { sentRequest } from './support/sent-body.ts'

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

const CHUNKED = { 'transfer-encoding': 'chunked' }

/** An exchange with a line whose caller a test speaks for. */
async function exchanging(
  t: TestContext,
  script: ByteScript | number,
  watch?: (piece: Buffer | null) => void,
) {
  const upstream = typeof script === 'number' ? undefined : await byteUpstream(t, script)
  const origin = upstream?.url ?? `http://127.0.0.1:${script}`
  const { catalog } = loadConfig({
    models: [{ id: 'm', kind: 'chat' }],
    lines: [{ id: 'l', provider: 'p', protocol: 'openai', baseUrl: `${origin}/v1`, models: {} }],
  })
  const [line] = catalog.lines
  assert.ok(line)
  const caller = Object.assign(sentRequest(CHUNKED), { socket: new Socket() })
  const exchange = new ProxiedExchange(candidateOf(line, new LineRegistry()), caller, watch && { watch })
  const target = {
    origin,
    path: '/v1/x',
    method: 'POST',
    headers: CHUNKED,
    lineHeaders: {},
    agent: undefined,
  }
  t.after(() => exchange.abandon())
  /** Waits until the upload has begun. */
  const connected = () => until(() => exchange.connected && caller.listenerCount('data') > 0)
  return { upstream, caller, exchange, connected, send: () => exchange.send(target) }
}

const echo: ByteScript = async (req, res) => void res.end(await bytesOf(req))

describe('an upload to a line', () => {
  it('comes in its order, small pieces of a turn together and large ones alone', async (t) => {
    const seen: (number | undefined)[] = []
    const { caller, exchange, connected, send } = await exchanging(
      t,
      echo,
      (piece) => void seen.push(piece?.length),
    )
    const opened = send()
    await connected()
    const turns: readonly (readonly number[])[] = [[1, 2, 4095], [4096], [5, 4096, 6, 7], [8]]
    let letter = 0
    let sent = ''
    for (const turn of turns) {
      for (const bytes of turn) {
        const piece = String.fromCharCode(97 + letter++).repeat(bytes)
        sent += piece
        caller.write(piece)
      }
      await new Promise(setImmediate)
    }
    caller.write('last')
    caller.end()
    const opening = await opened
    assert.ok(opening.kind === 'answered')
    assert.equal(String(await bytesOf(opening.response)), `${sent}last`)
    assert.deepEqual(seen, [4098, 4096, 5, 4096, 13, 8, 4, undefined])
    assert.equal(exchange.status, 200)
    exchange.complete()
    assert.deepEqual(exchange.end, { kind: 'served' })
    for (const event of ['data', 'end']) assert.equal(caller.listenerCount(event), 0, event)
  })

  it('is read no faster than the line takes it, and goes on when it does', async (t) => {
    let take = (): void => {}
    const { caller, exchange, connected, send, upstream } = await exchanging(t, (req, res) => {
      take = () => void bytesOf(req).then((bytes) => res.end(String(bytes.length)))
    })
    const opened = send()
    await connected()
    for (let i = 0; i < 16; i++) caller.write(Buffer.alloc(500_000))
    await until(() => caller.isPaused() && upstream?.requests.length === 1, 'a line that takes no more')
    assert.ok(caller.readableLength > 0)
    take()
    await until(() => caller.readableLength === 0 && !caller.isPaused(), 'a line that has taken all')
    // It is the caller's turn again.
    exchange.checkTimeouts(performance.now() + 86_400_000, 0)
    assert.equal(exchange.end, undefined)
    caller.end()
    const opening = await opened
    assert.ok(opening.kind === 'answered')
    assert.equal(String(await bytesOf(opening.response)), String(16 * 500_000))
  })

  it('is waited for as long as its caller takes, and its answer as long as the line may', async (t) => {
    const { caller, exchange, connected, send } = await exchanging(t, (req) => void req.resume())
    const opened = send()
    await connected()
    const endInADay = () => {
      exchange.checkTimeouts(performance.now() + 86_400_000, 0)
      return exchange.end
    }
    assert.equal(endInADay(), undefined)
    caller.write('a piece')
    await until(() => caller.readableLength === 0)
    assert.equal(endInADay(), undefined)
    caller.end()
    await until(() => exchange.uploaded)
    const end = endInADay()
    assert.deepEqual(await opened, { kind: 'ended' })
    assert.ok(end?.kind === 'failed')
    assert.deepEqual([end.failure.code, end.failure.timeoutPhase], ['upstream_timeout', 'first_byte'])
  })

  it('ends with the refusal of a piece, of which nothing is sent', async (t) => {
    const refusal = new Error('not this one')
    const received: Buffer[] = []
    const { caller, exchange, connected, send, upstream } = await exchanging(
      t,
      (req) => void req.on('data', (piece: Buffer) => received.push(piece)),
      (piece) => {
        if (piece?.includes('secret')) throw refusal
      },
    )
    const opened = send()
    await connected()
    caller.write('first')
    await until(() => received.length === 1)
    caller.write('secret')
    assert.deepEqual(await opened, { kind: 'ended' })
    assert.equal(exchange.refusal, refusal)
    assert.deepEqual(exchange.end, { kind: 'abandoned' })
    await until(() => upstream?.connections.size === 0)
    assert.equal(String(Buffer.concat(received)), 'first')
  })
})

describe('the end of an exchange', () => {
  it('is a failure of the line where it cannot be connected to, which leaves the body for another', async (t) => {
    const { caller, exchange, send } = await exchanging(t, await closedPort())
    caller.write('body')
    assert.deepEqual(await send(), { kind: 'ended' })
    const { end } = exchange
    assert.ok(end?.kind === 'failed')
    assert.deepEqual(
      [end.elsewhere, end.committed, end.lineFault, end.failure.fault],
      [true, false, true, 'line'],
    )
    assert.equal(caller.readableDidRead, false)
  })

  it('is one of the model where it breaks off, and no other line is tried', async (t) => {
    for (const committed of [false, true]) {
      const { caller, exchange, send, connected } = await exchanging(t, (req) => void req.socket.destroy())
      const opened = send()
      await connected()
      exchange.committed = committed
      caller.end('body')
      assert.deepEqual(await opened, { kind: 'ended' })
      const { end } = exchange
      assert.ok(end?.kind === 'failed')
      assert.deepEqual(
        [end.elsewhere, end.committed, end.lineFault, end.failure.fault],
        [false, committed, true, 'model'],
      )
    }
  })

  it('is a failure where the answer breaks off, and none once it was passed on', async (t) => {
    for (const isWhole of [true, false]) {
      const { caller, exchange, send, connected } = await exchanging(t, (_req, res) => {
        res.writeHead(200, { 'content-length': isWhole ? 4 : 5 }).write('body', () => res.destroy())
      })
      const opened = send()
      await connected()
      caller.end()
      const opening = await opened
      assert.ok(opening.kind === 'answered')
      await bytesOf(opening.response).catch(() => {})
      if (isWhole) exchange.complete()
      const { kind } = await exchange.ended
      assert.equal(kind, isWhole ? 'served' : 'failed')
    }
  })

  it('is the first, and no request is left behind it', async (t) => {
    const { exchange, send, upstream, caller } = await exchanging(t, echo)
    const opened = send()
    exchange.abandon()
    exchange.complete()
    assert.deepEqual(await opened, { kind: 'ended' })
    assert.deepEqual(exchange.end, { kind: 'abandoned' })
    await new Promise(setImmediate)
    await until(() => upstream?.connections.size === 0)
    assert.equal(upstream?.requests.length, 0)
    assert.equal(caller.readableDidRead, false)
  })
})

type Write = (this: Socket, ...given: unknown[]) => unknown

/** Has the system take what is sent between some ports a while after it was given, as that of a busy connection does. */
function sendLate(t: TestContext, isBusy: (socket: Socket) => boolean): void {
  const methods = Socket.prototype as unknown as Record<'_write' | '_writev', Write>
  for (const name of ['_write', '_writev'] as const) {
    const write = methods[name]
    t.mock.method(methods, name, function (this: Socket, ...given: unknown[]) {
      if (isBusy(this)) setTimeout(() => write.apply(this, given), 2)
      else write.apply(this, given)
    } satisfies Write)
  }
}

const body = randomBytes(4 * 1024 * 1024)
const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

it('an upload comes whole to a line whose connection takes it slower than it comes', async (t) => {
  const upstream = await byteUpstream(t, async (req, res) => {
    const hash = createHash('sha256')
    for await (const piece of req) hash.update(piece as Buffer)
    res.end(hash.digest('hex'))
  })
  const gateway = await forwardGateway(t, { lines: [upstream.url] })
  const port = Number(new URL(upstream.url).port)
  sendLate(t, ({ remotePort }) => remotePort === port)
  const headers = { 'content-type': 'application/octet-stream' }
  const answer = await gateway.ask('/v1/files', { method: 'POST', headers, body })
  assert.deepEqual([answer.status, await answer.text()], [200, sha256(body)])
})

it('a download comes whole to a caller whose connection takes it slower than it comes', async (t) => {
  const upstream = await byteUpstream(t, (_req, res) => void res.end(body))
  const gateway = await forwardGateway(t, { lines: [upstream.url] })
  sendLate(t, ({ localPort }) => localPort === gateway.port)
  const answer = await gateway.ask('/v1/files/f1/content')
  assert.deepEqual([answer.status, sha256(new Uint8Array(await answer.arrayBuffer()))], [200, sha256(body)])
})
