import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { describe, it, type TestContext } from 'node:test'
import compression from 'compression'
import type { Request, RequestHandler } from 'express'
import { callOf } from '../../../lib/core/call/index.ts'
import { loadConfig } from '../../../lib/core/config/index.ts'
import { errorEnvelope } from '../../../lib/middleware/error-envelope/index.ts'
import { type ForwardTarget, forwardTo } from '../../../lib/middleware/forward/index.ts'
import { envelopeOf } from '../../support/answer-bodies.ts'
import { bytesOf, byteUpstream } from '../../support/byte-upstream.ts'
import { type ChainServer, serveChain } from '../../support/chain-server.ts'
import { KEY } from '../../support/gateway.ts'
import { closedPort } from '../../support/scripted-upstream.ts'

/** A handler of one's own that pins its requests to a line. */
async function pinned(
  t: TestContext,
  url: string,
  target: Omit<ForwardTarget, 'line'>,
  before?: (req: Request) => void,
  around: readonly RequestHandler[] = [],
): Promise<ChainServer & { get(init?: RequestInit): Promise<Response> }> {
  const config = loadConfig({
    accounts: [{ id: 'acme' }],
    keys: [{ id: 'k', account: 'acme', secret: KEY }],
    models: [{ id: 'm', kind: 'chat' }],
    lines: [
      { id: 'l', provider: 'p', protocol: 'openai', baseUrl: `${url}/base/v1`, apiKey: 'up', models: {} },
    ],
  })
  const [line] = config.catalog.lines
  assert.ok(line)
  const chain = await serveChain(config, (app, { lines }) => {
    const toLine = forwardTo({ lines })
    app.all('/v1/clips/:id', ...around, (req, res, next) => {
      if (before) before(req)
      toLine(req, res, { line, ...target }).catch(next)
    })
    app.use(errorEnvelope())
  })
  t.after(() => chain.close())
  const get = (init: RequestInit = {}) =>
    fetch(`${chain.url}/v1/clips/ours?x=1`, {
      ...init,
      headers: { authorization: `Bearer ${KEY}`, ...init.headers },
    })
  return { ...chain, get }
}

describe('forwardTo', () => {
  it('adds to what the handler has noted of its routing', async (t) => {
    const upstream = await byteUpstream(t, (_req, res) => void res.end('a clip'))
    const eliminated = [{ line: 'other', reason: 'pinned', detail: 'l has it' } as const]
    const server = await pinned(t, upstream.url, { path: '/x' }, (req) => {
      callOf(req).routing = { region: 'eu', strategy: 'own', eliminated: [...eliminated], attempts: [] }
    })
    const response = await server.get()
    await response.text()
    const { routing } = await server.entry(response.headers.get('x-request-id'))
    assert.deepEqual([routing?.region, routing?.strategy, routing?.eliminated], ['eu', 'own', eliminated])
    assert.deepEqual(
      routing?.attempts.map(({ line }) => line),
      ['l'],
    )
  })

  it('passes events on as they come, behind a middleware that compresses', async (t) => {
    const last = Promise.withResolvers<void>()
    const upstream = await byteUpstream(t, async (_req, res) => {
      res.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' })
      res.write('data: first\n\n')
      await last.promise
      res.end('data: last\n\n')
    })
    const server = await pinned(t, upstream.url, { path: '/x' }, undefined, [compression({ threshold: 0 })])
    const response = await server.get()
    assert.equal(response.headers.get('cache-control'), 'no-cache, no-transform')
    const reader = response.body?.getReader() ?? assert.fail()
    assert.equal(String(Buffer.from((await reader.read()).value ?? [])), 'data: first\n\n')
    last.resolve()
    assert.equal(String(Buffer.from((await reader.read()).value ?? [])), 'data: last\n\n')
  })

  it('reads from an error how long to wait where only the body of the line says so', async (t) => {
    const retry = { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '34.4s' }
    const upstream = await byteUpstream(t, (_req, res) => {
      res.writeHead(429, { 'content-type': 'application/json' })
      res.write('{"error":{"details":[')
      setImmediate(() => res.end(`${JSON.stringify(retry)}]}}`))
    })
    const server = await pinned(t, upstream.url, { path: '/x' })
    const response = await server.get()
    assert.equal((await envelopeOf(response)).error.code, 'upstream_rate_limited')
    assert.equal(response.headers.get('retry-after'), '35')
  })

  it('asks one line for a path of the handler’s choice, with headers of its choice', async (t) => {
    const upstream = await byteUpstream(
      t,
      (_req, res) => void res.writeHead(200, { etag: '"1"' }).end('a clip'),
    )
    const target = {
      path: '/videos/theirs/content?variant=video',
      headers: { 'x-beta': 'on', accept: 'video/mp4' },
    }
    const server = await pinned(t, upstream.url, target)
    const response = await server.get({ headers: { range: 'bytes=0-', accept: 'text/html' } })
    assert.equal(await response.text(), 'a clip')
    const [request] = upstream.requests
    assert.equal(request?.url, '/base/v1/videos/theirs/content?variant=video')
    const { authorization, accept, range, 'x-beta': beta } = request?.headers ?? {}
    assert.deepEqual([authorization, accept, range, beta], ['Bearer up', 'video/mp4', 'bytes=0-', 'on'])
    const { routing, usage, billing } = await server.entry(response.headers.get('x-request-id'))
    assert.deepEqual([routing?.strategy, routing?.attempts[0]?.line], ['pinned', 'l'])
    assert.deepEqual([usage, billing], [null, null], 'what it costs is for the handler to say')
  })

  it('rejects with the error for the caller', async (t) => {
    const gone = await byteUpstream(t, (_req, res) => void res.writeHead(404).end('words'))
    const server = await pinned(t, gone.url, { path: '/videos/theirs/content' })
    const response = await server.get()
    assert.equal(response.status, 404)
    assert.equal((await envelopeOf(response)).error.code, 'not_found')
    const dead = await pinned(t, `http://127.0.0.1:${await closedPort()}`, { path: '/x' })
    assert.equal((await envelopeOf(await dead.get())).error.code, 'upstream_error')
  })

  it('passes on a large body exactly, both ways at once', async (t) => {
    const upstream = await byteUpstream(t, (req, res) => void req.pipe(res))
    const server = await pinned(t, upstream.url, { path: '/echo' })
    const sent = randomBytes(5_000_000)
    const response = await server.get({ method: 'POST', body: sent })
    const came = Buffer.from(await response.arrayBuffer())
    assert.equal(hash(came), hash(sent))
  })

  it('passes on a large body exactly, in chunks of any size', async (t) => {
    const sent = randomBytes(3_000_000)
    const upstream = await byteUpstream(t, async (req, res) => {
      const came = await bytesOf(req)
      for (let at = 0, size = 1; at < came.length; at += size, size = (size * 7) % 100_003) {
        if (!res.write(came.subarray(at, at + size)))
          await new Promise((resolve) => res.once('drain', resolve))
      }
      res.end()
    })
    const server = await pinned(t, upstream.url, { path: '/echo' })
    const body = new ReadableStream({
      start(controller) {
        for (let at = 0, size = 1; at < sent.length; at += size, size = (size * 5) % 100_003) {
          controller.enqueue(sent.subarray(at, at + size))
        }
        controller.close()
      },
    })
    const response = await server.get({ method: 'POST', body, duplex: 'half' } as RequestInit)
    assert.equal(hash(Buffer.from(await response.arrayBuffer())), hash(sent))
  })
})

describe('a large body whose receiver is slow', () => {
  const sent = randomBytes(15_000_000)

  /** Reads a little, rests, and so on: what comes meanwhile waits wherever it is. */
  async function readSlowly(from: IncomingMessage): Promise<string> {
    const read = createHash('sha256')
    let rested = 0
    let bytes = 0
    for await (const chunk of from) {
      read.update(chunk as Buffer)
      bytes += (chunk as Buffer).length
      if (bytes - rested < 1_000_000) continue
      rested = bytes
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
    return read.digest('hex')
  }

  it('comes to the line exactly', async (t) => {
    const upstream = await byteUpstream(t, async (req, res) => void res.end(await readSlowly(req)))
    const server = await pinned(t, upstream.url, { path: '/files' })
    const response = await server.get({ method: 'POST', body: sent })
    assert.equal(await response.text(), hash(sent))
  })

  it('comes to the caller exactly', async (t) => {
    const upstream = await byteUpstream(t, (_req, res) => void res.end(sent))
    const server = await pinned(t, upstream.url, { path: '/files' })
    const headers = { authorization: `Bearer ${KEY}` }
    const asking = request(`${server.url}/v1/clips/ours`, { headers }).end()
    const [response] = await once(asking, 'response')
    assert.equal(await readSlowly(response), hash(sent))
  })
})

const hash = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')
