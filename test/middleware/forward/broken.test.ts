import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type IncomingMessage, request, type ServerResponse } from 'node:http'
import { createConnection } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { UpstreamResources } from '../../../lib/middleware/references/index.ts'
import { rawClient } from '../../support/app-server.ts'
import { bytesOf, byteUpstream } from '../../support/byte-upstream.ts'
import { forwardGateway, OTHER_KEY } from '../../support/forward-gateway.ts'
import { KEY } from '../../support/gateway.ts'
import { until } from '../../support/until.ts'

const MEGABYTE = Buffer.alloc(1_000_000, 'x')
const get = (path: string): string =>
  `GET ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${KEY}\r\n\r\n`

describe('an upstream that dies in the middle of its answer', () => {
  for (const [name, headers] of [
    ['of a given length', { 'content-length': '2000000' }],
    ['in chunks', {}],
  ] as const) {
    it(`leaves a connection that is cut off, ${name}`, async (t) => {
      const upstream = await byteUpstream(t, (_req, res) => {
        res.writeHead(200, { ...headers })
        res.write('first half', () => res.destroy())
      })
      const gateway = await forwardGateway(t, { lines: [upstream.url] })
      const client = rawClient(gateway.port, get('/v1/files/f1/content'))
      const received = await client.end()
      assert.match(received, /^HTTP\/1\.1 200 OK/)
      assert.match(received, /first half/)
      assert.doesNotMatch(received, /\r\n0\r\n/, 'no regular end')
      const id = /x-request-id: (\S+)/i.exec(received)?.[1] ?? ''
      const { status, outcome, error_code, routing, billing } = await gateway.entry(id)
      assert.deepEqual([status, outcome, error_code], [200, 'interrupted', 'upstream_error'])
      assert.equal(routing?.attempts[0]?.outcome, 'upstream_error')
      assert.equal(billing?.charged, '0.01', 'its head was a success')
    })
  }

  it('leaves a connection that is reset, if its end would be that of the answer', async (t) => {
    const upstream = await byteUpstream(t, (_req, res) => {
      res.writeHead(200, { 'content-type': 'text/plain' })
      res.write('first half', () => res.destroy())
    })
    const gateway = await forwardGateway(t, { lines: [upstream.url] })
    const caller = createConnection(gateway.port, '127.0.0.1')
    caller.resume().write(get('/v1/files/f1/content').replace('HTTP/1.1', 'HTTP/1.0'))
    const [error] = await once(caller, 'error')
    assert.equal(error.code, 'ECONNRESET')
    await until(() => gateway.openCalls.size === 0)
  })

  it('leaves an error where it dies in the middle of an upload', async (t) => {
    const upstream = await byteUpstream(t, (req) => void req.once('data', () => req.socket.destroy()))
    const gateway = await forwardGateway(t, { lines: [upstream.url] })
    const upload = request(`${gateway.url}/v1/files`, {
      method: 'POST',
      headers: { authorization: `Bearer ${KEY}`, 'transfer-encoding': 'chunked' },
    })
    upload.on('error', () => {})
    upload.write('first piece')
    const [response] = await once(upload, 'response')
    assert.equal(response.statusCode, 502)
    upload.end('last piece')
    assert.match(String(await bytesOf(response)), /upstream_error/)
    assert.equal((await gateway.entry(String(response.headers['x-request-id']))).outcome, 'failed')
    assert.deepEqual(await gateway.books(), { spent: '0', charges: 0 })
  })
})

describe('an upstream that closes behind the whole request', () => {
  for (const [how, close] of [
    ['closes', (req: IncomingMessage) => req.socket.destroy()],
    ['resets', (req: IncomingMessage) => req.socket.resetAndDestroy()],
  ] as const) {
    it(`gets it once, and no other line gets it, where it ${how} the connection`, async (t) => {
      const bodies: number[] = []
      const upstream = await byteUpstream(t, async (req, res) => {
        bodies.push((await bytesOf(req)).length)
        if (bodies.length === 1) res.end('{}')
        else close(req)
      })
      const other = await byteUpstream(t, (_req, res) => void res.end('{}'))
      const gateway = await forwardGateway(t, { lines: [upstream.url, other.url] })
      const upload = async (body: Buffer): Promise<number> => {
        const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/octet-stream' }
        return (await fetch(`${gateway.url}/v1/files`, { method: 'POST', headers, body })).status
      }
      assert.equal(await upload(MEGABYTE), 200)
      assert.equal(await upload(MEGABYTE), 502)
      assert.deepEqual(bodies, [MEGABYTE.length, MEGABYTE.length])
      assert.equal(other.requests.length, 0)
    })
  }
})

describe('a caller that leaves', () => {
  it('in a download closes the upstream at once', async (t) => {
    const upstream = await byteUpstream(t, (_req, res) => {
      const write = (): void => {
        while (!res.destroyed && res.write(MEGABYTE));
      }
      res.on('drain', write)
      write()
    })
    const gateway = await forwardGateway(t, { lines: [upstream.url] })
    const client = rawClient(gateway.port, get('/v1/files/f1/content'))
    await client.until('xxxx')
    const id = /x-request-id: (\S+)/i.exec(client.received)?.[1] ?? ''
    client.socket.destroy()
    await until(() => upstream.connections.size === 0, 'the end of the upstream', 5000)
    const { status, outcome, routing, billing } = await gateway.entry(id)
    assert.deepEqual([status, outcome], [499, 'interrupted'])
    assert.deepEqual(routing?.disconnect, { policy: 'abort', ended: 'aborted' })
    assert.equal(routing?.attempts[0]?.outcome, 'abandoned')
    assert.equal(billing?.charged, '0.01')
    assert.equal(gateway.openCalls.size, 0)
  })

  it('in an upload closes the upstream at once, and pays nothing', async (t) => {
    const upstream = await byteUpstream(t, (req) => void req.resume())
    const gateway = await forwardGateway(t, {
      lines: [upstream.url],
      account: { limits: { concurrency: 1 } },
    })
    const head = `POST /v1/files HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${KEY}\r\ncontent-length: 9999999\r\n\r\n`
    const client = rawClient(gateway.port, `${head}some`)
    await until(() => upstream.requests.length === 1)
    const [call] = gateway.openCalls
    client.socket.destroy()
    await until(() => upstream.connections.size === 0, 'the end of the upstream', 5000)
    const { status, error_code } = await gateway.entry(call?.id ?? '')
    assert.deepEqual([status, error_code], [499, 'client_closed_request'])
    assert.equal(gateway.openCalls.size, 0)
    assert.deepEqual(await gateway.books(), { spent: '0', charges: 0 })
  })

  it('while the upstream is silent closes it at once', async (t) => {
    const upstream = await byteUpstream(t, () => {})
    const gateway = await forwardGateway(t, { lines: [upstream.url] })
    const client = rawClient(gateway.port, get('/v1/files'))
    await until(() => upstream.requests.length === 1)
    client.socket.destroy()
    await until(() => upstream.connections.size === 0, 'the end of the upstream', 5000)
    await until(() => gateway.openCalls.size === 0)
  })
})

describe('a caller that reads slowly', () => {
  it('slows the upstream down, and its silence is not the line’s', async (t) => {
    let written = 0
    const size = 32 * MEGABYTE.length
    const upstream = await byteUpstream(t, (_req, res) => {
      res.writeHead(200, { 'content-length': size })
      const write = (): void => {
        while (written < size) {
          written += MEGABYTE.length
          if (!res.write(MEGABYTE)) return
        }
        res.end()
      }
      res.on('drain', write)
      write()
    })
    const gateway = await forwardGateway(t, { lines: [{ url: upstream.url, timeouts: { idleMs: 1500 } }] })
    const asking = request(`${gateway.url}/v1/files/f1/content`, {
      headers: { authorization: `Bearer ${KEY}` },
    }).end()
    const [response] = await once(asking, 'response')
    response.pause()
    await until(() => written > MEGABYTE.length)
    await sleep(2500)
    assert.ok(written < size, `${written} bytes are out although nobody reads`)
    let bytes = 0
    for await (const chunk of response) bytes += chunk.length
    assert.equal(bytes, size)
    assert.equal((await gateway.entry(String(response.headers['x-request-id']))).outcome, 'completed')
  })
})

describe('a caller that leaves in the middle of an upload', () => {
  const TYPES = [
    undefined,
    'application/octet-stream',
    'application/json',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=b',
    'text/plain',
  ]
  const FRAMINGS = ['content-length: 9999999', 'transfer-encoding: chunked'] as const
  /** The part of a body that comes; after the head alone, nothing shows what the body is. */
  const PIECES = ['', ' ', '{"a":', 'bytes']
  const LEAVES_AFTER_MS = [0, 60]

  function headOf(type: string | undefined, framing: string): string {
    const named = type === undefined ? '' : `content-type: ${type}\r\n`
    return `POST /v1/files HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${KEY}\r\n${named}${framing}\r\n\r\n`
  }

  function pieceOf(piece: string, framing: string): string {
    if (piece === '' || framing === FRAMINGS[0]) return piece
    return `${piece.length.toString(16)}\r\n${piece}\r\n`
  }

  for (const type of TYPES)
    for (const framing of FRAMINGS)
      it(`leaves no connection, slot or money behind: ${type ?? 'no type'}, ${framing}`, async (t) => {
        const upstream = await byteUpstream(t, (req) => void req.resume())
        const gateway = await forwardGateway(t, {
          lines: [upstream.url],
          account: { limits: { concurrency: 1 } },
        })
        for (const piece of PIECES)
          for (const wait of LEAVES_AFTER_MS) {
            const client = rawClient(gateway.port, headOf(type, framing) + pieceOf(piece, framing))
            await until(() => gateway.openCalls.size === 1)
            await sleep(wait)
            client.socket.destroy()
            await until(() => gateway.openCalls.size === 0, 'the end of the call', 5000)
            await until(() => upstream.connections.size === 0, 'the end of the upstream', 5000)
          }
        await sleep(100)
        assert.equal(upstream.connections.size, 0)
        assert.deepEqual(await gateway.books(), { spent: '0', charges: 0 })
      })
})

const MADE = JSON.stringify({ id: 'thing_1', object: 'thing' })
const JSON_TYPE = 'application/json'
const FORM_TYPE = 'multipart/form-data; boundary=b'
const FORM = '--b\r\ncontent-disposition: form-data; name="file"; filename="f"\r\n\r\nbytes\r\n--b--\r\n'

/** The requests that make a thing: its collection, and the body. */
const CREATES = [
  ['/v1/files', FORM_TYPE, FORM],
  ['/v1/batches', JSON_TYPE, '{"endpoint":"/v1/embeddings"}'],
  ['/v1/vector_stores', JSON_TYPE, '{}'],
  ['/v1/threads', JSON_TYPE, '{}'],
] as const

/** How far the line has come with its answer when the caller leaves. */
const MOMENTS = ['before the head', 'behind the head', 'within the body'] as const
type Moment = (typeof MOMENTS)[number]

const head = (method: string, path: string, type: string, length: number): string =>
  `${method} ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${KEY}\r\ncontent-type: ${type}\r\ncontent-length: ${length}\r\n\r\n`

function begin(res: ServerResponse, moment: Moment): void {
  if (moment === 'before the head') return
  res.writeHead(200, { 'content-type': JSON_TYPE }).flushHeaders()
  if (moment === 'within the body') res.write(MADE.slice(0, 8))
}

function end(res: ServerResponse, moment: Moment): void {
  if (moment === 'before the head') res.writeHead(200, { 'content-type': JSON_TYPE })
  res.end(moment === 'within the body' ? MADE.slice(8) : MADE)
}

/** A gateway, and a line that holds back its answers to all but GET. */
async function holding(t: TestContext, moment: Moment) {
  let held: ServerResponse | undefined
  const read: string[] = []
  const upstream = await byteUpstream(t, async (req: IncomingMessage, res) => {
    if (req.method === 'GET') return void res.end('{}')
    const body = await bytesOf(req).catch(() => undefined)
    if (!body) return
    read.push(body.toString())
    held = res
    begin(res, moment)
  })
  const resources = new UpstreamResources()
  t.after(() => resources.close())
  const price = { perRequest: '0.01' }
  const paths = [...CREATES.map(([path]) => path), '/v1/moderations']
  const rules = paths
    .flatMap((path) => [path, `${path}/*rest`])
    .map((path) => ({ path, lines: ['line-0'], price }))
  const gateway = await forwardGateway(t, { lines: [upstream.url], resources, rules })
  return { upstream, gateway, read, held: () => held as ServerResponse }
}

describe('a caller that leaves while a line makes something for it', () => {
  for (const moment of MOMENTS)
    for (const [path, type, body] of CREATES)
      it(`owns it and pays for it: ${path}, ${moment}`, async (t) => {
        const { upstream, gateway, read, held } = await holding(t, moment)
        const client = rawClient(gateway.port, head('POST', path, type, body.length) + body)
        await until(() => read.length === 1, 'the line has the whole request')
        client.socket.destroy()
        const [call] = gateway.openCalls
        await until(() => call?.left === true)
        end(held(), moment)
        await until(() => gateway.openCalls.size === 0, 'the end of the call', 5000)

        const { status, billing, routing } = await gateway.entry(call?.id ?? '')
        assert.deepEqual([status, billing?.charged], [499, '0.01'])
        assert.deepEqual(routing?.disconnect, { policy: 'abort', ended: 'drained' })
        const answer = await gateway.ask(`${path}/thing_1`)
        assert.equal(answer.status, 200)
        const other = { headers: { authorization: `Bearer ${OTHER_KEY}` } }
        assert.equal((await gateway.ask(`${path}/thing_1`, other)).status, 404)
        assert.deepEqual(read, [body], 'made once')
        assert.equal(upstream.requests.length, 2)
        assert.deepEqual(await gateway.books(), { spent: '0.02', charges: 2 })
      })

  it('owns nothing and pays nothing where the line fails', async (t) => {
    const { gateway, read, held } = await holding(t, 'before the head')
    const client = rawClient(gateway.port, `${head('POST', '/v1/batches', JSON_TYPE, 2)}{}`)
    await until(() => read.length === 1)
    client.socket.destroy()
    const [call] = gateway.openCalls
    await until(() => call?.left === true)
    held().writeHead(500).end('{}')
    await until(() => gateway.openCalls.size === 0, 'the end of the call', 5000)
    const { billing, routing } = await gateway.entry(call?.id ?? '')
    assert.deepEqual([billing?.charged ?? null, routing?.disconnect?.ended], [null, 'upstream_failed'])
    assert.deepEqual(await gateway.books(), { spent: '0', charges: 0 })
  })

  it('does not keep the line at what is below no collection', async (t) => {
    for (const [method, path] of [
      ['DELETE', '/v1/files/file_1'],
      ['POST', '/v1/moderations'],
    ] as const) {
      const { upstream, gateway, read } = await holding(t, 'before the head')
      const client = rawClient(gateway.port, `${head(method, path, JSON_TYPE, 2)}{}`)
      await until(() => read.length === 1 || gateway.openCalls.size === 0, `${method} ${path}`)
      client.socket.destroy()
      await until(() => upstream.connections.size === 0, 'the end of the upstream', 5000)
      assert.deepEqual(await gateway.books(), { spent: '0', charges: 0 })
    }
  })
})

describe('an upload in pieces of which none comes', () => {
  /** The type of a body, and whether nothing is a body of it. */
  const TYPES: readonly (readonly [type: string, passes: boolean])[] = [
    ['', true],
    ['text/plain', true],
    ['application/octet-stream', true],
    ['application/x-www-form-urlencoded', true],
    ['multipart/form-data; boundary=b', true],
    ['application/json', false],
  ]

  for (const [type, passes] of TYPES)
    it(`is answered, whenever it ends: ${type || 'no type'}`, async (t) => {
      const upstream = await byteUpstream(t, async (req, res) => {
        res.end(`${(await bytesOf(req)).length} bytes`)
      })
      const resources = new UpstreamResources()
      t.after(() => resources.close())
      const gateway = await forwardGateway(t, {
        lines: [upstream.url],
        rules: [{ path: '/v1/odd/*rest', lines: ['line-0'] }],
        resources,
      })
      const named = type === '' ? '' : `content-type: ${type}\r\n`
      const head = `POST /v1/odd/thing HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${KEY}\r\nconnection: close\r\n${named}transfer-encoding: chunked\r\n\r\n`
      const end = '0\r\n\r\n'
      const atOnce = rawClient(gateway.port, head + end)
      assert.match(await atOnce.end(), passes ? /^HTTP\/1.1 200 .*0 bytes/s : /^HTTP\/1.1 400 /)
      const late = rawClient(gateway.port, head)
      await until(() => gateway.openCalls.size === 1)
      late.socket.write(end)
      assert.match(await late.end(), passes ? /^HTTP\/1.1 200 .*0 bytes/s : /^HTTP\/1.1 400 /)
      assert.equal(upstream.requests.length, passes ? 2 : 0)
    })
})
