import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import http from 'node:http'
import https, { createServer } from 'node:https'
import { type AddressInfo, createServer as createTcp, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { describe, it, type TestContext } from 'node:test'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import type { Line } from '../../../lib/core/catalog/index.ts'
import { loadConfig } from '../../../lib/core/config/index.ts'
import { agentOf } from '../../../lib/middleware/forward/line-agent.ts'
import { envelopeOf } from '../../support/answer-bodies.ts'
import { bytesOf, byteUpstream } from '../../support/byte-upstream.ts'
import { connectProxy } from '../../support/connect-proxy.ts'
import { forwardGateway } from '../../support/forward-gateway.ts'
import { type OwnAuthority, ownAuthority } from '../../support/own-authority.ts'
import { closedPort } from '../../support/scripted-upstream.ts'
import { until } from '../../support/until.ts'

const BODY = Buffer.alloc(300_000, 'x')
const rules = [{ path: '/v1/files', lines: ['line-0', 'line-1'] }]

/** A server that takes connections and never says a word. */
async function silentServer(t: TestContext): Promise<string> {
  const sockets = new Set<Socket>()
  const server = createTcp((socket) => void sockets.add(socket.on('error', () => {})))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return `https://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** A server that says how many bytes came. */
async function tlsServer(t: TestContext, authority: OwnAuthority): Promise<string> {
  const { cert, key } = authority.certify('server', ['127.0.0.1'])
  const server = createServer({ cert, key }, async (req, res) => {
    res.end(`${(await bytesOf(req)).length} bytes`)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return `https://127.0.0.1:${(server.address() as AddressInfo).port}`
}

describe('a line that is passed on to over TLS', () => {
  it('is trusted for its own authority, and not without it', async (t) => {
    const authority = ownAuthority(t)
    const url = await tlsServer(t, authority)
    const trusted = await forwardGateway(t, { lines: [{ url, tls: { ca: authority.ca } }] })
    const answer = await trusted.ask('/v1/files', { method: 'POST', body: BODY })
    assert.equal(await answer.text(), '300000 bytes')
    const stranger = await forwardGateway(t, { lines: [url] })
    const refused = await stranger.ask('/v1/files', { method: 'POST', body: BODY })
    assert.equal((await envelopeOf(refused)).error.code, 'upstream_error')
  })

  it('has a connection for each request, which ends with it', async (t) => {
    const known = getCACertificates('default')
    t.after(() => setDefaultCACertificates(known))
    const authority = ownAuthority(t)
    setDefaultCACertificates([authority.ca])
    const { cert, key } = authority.certify('server', ['127.0.0.1'])
    const connections = new Set<Socket>()
    let closed = 0
    const server = createServer({ cert, key }, async (req, res) => {
      connections.add(req.socket.once('close', () => closed++))
      await bytesOf(req)
      res.end(req.headers.connection)
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    t.after(() => {
      server.close()
      server.closeAllConnections()
    })
    const gateway = await forwardGateway(t, {
      lines: [`https://127.0.0.1:${(server.address() as AddressInfo).port}`],
    })
    for (const count of [1, 2]) {
      const answer = await gateway.ask('/v1/files', { method: 'POST', body: BODY })
      assert.equal(await answer.text(), 'close')
      await until(() => closed === count, 'the end of the connection')
      assert.equal(connections.size, count)
    }
  })

  it('gives way to the next while it has not agreed on keys, with the whole body', async (t) => {
    const next = await byteUpstream(
      t,
      async (req, res) => void res.end(`${(await bytesOf(req)).length} bytes`),
    )
    const silent = { url: await silentServer(t), timeouts: { connectMs: 300 } }
    const gateway = await forwardGateway(t, { lines: [silent, next.url], rules })
    const answer = await gateway.ask('/v1/files', { method: 'POST', body: BODY })
    assert.equal(await answer.text(), '300000 bytes')
    const { routing } = await gateway.entry(answer.headers.get('x-request-id'))
    assert.deepEqual(
      routing?.attempts.map(({ line, timeout_phase }) => [line, timeout_phase]),
      [
        ['line-0', 'connect'],
        ['line-1', null],
      ],
    )
  })
})

const HOST = 'line.example'

describe('a request that is passed on to a line behind a proxy', () => {
  it('goes through a tunnel to the host of the line, whole, and so does the answer', async (t) => {
    const sent = randomBytes(300_000)
    const upstream = await byteUpstream(t, async (req, res) => {
      res.writeHead(201).end(await bytesOf(req))
    })
    const port = Number(new URL(upstream.url).port)
    const proxy = await connectProxy(t, () => port)
    const gateway = await forwardGateway(t, { lines: [{ url: `http://${HOST}:${port}`, proxy: proxy.url }] })
    for (let asked = 1; asked <= 2; asked++) {
      const response = await gateway.ask('/v1/files', { method: 'POST', body: sent })
      assert.equal(response.status, 201)
      assert.deepEqual(Buffer.from(await response.arrayBuffer()), sent)
      assert.deepEqual(
        proxy.asked.map(({ to }) => to),
        Array(asked).fill(`${HOST}:${port}`),
      )
    }
    assert.equal(upstream.requests[0]?.headers.host, `${HOST}:${port}`)
  })

  it('is not sent past the proxy where that refuses the tunnel, and costs nothing', async (t) => {
    const upstream = await byteUpstream(t, (_req, res) => void res.end('ok'))
    const proxy = await connectProxy(t, () => 0)
    proxy.script = (socket) => void socket.end('HTTP/1.1 403 Forbidden\r\n\r\n')
    const gateway = await forwardGateway(t, { lines: [{ url: upstream.url, proxy: proxy.url }] })
    const response = await gateway.ask('/v1/files', { method: 'POST', body: 'abc' })
    const { error } = await envelopeOf(response)
    assert.deepEqual([response.status, error.code], [502, 'upstream_error'])
    assert.equal(upstream.requests.length, 0)
    assert.equal((await gateway.books()).charges, 0)
  })
})

function lineAt(baseUrl: string, more: object = {}): Line {
  const { catalog } = loadConfig({
    models: [{ id: 'm', kind: 'chat' }],
    lines: [{ id: 'l', provider: 'p', protocol: 'openai', baseUrl, models: {}, ...more }],
  })
  return catalog.lines[0] as Line
}

const PROXY = { proxy: 'http://127.0.0.1:9' }

describe('the agent of a line', () => {
  it('is its own where it has a proxy or certificates, and none else', () => {
    assert.equal(agentOf(lineAt('http://x/v1')), undefined)
    assert.equal(agentOf(lineAt('https://x/v1')), undefined)
    const plain = lineAt('http://x/v1', PROXY)
    const agent = agentOf(plain)
    assert.ok(agent instanceof http.Agent && !(agent instanceof https.Agent))
    assert.equal(agentOf(plain), agent, 'the same each time')
    assert.notEqual(agentOf(lineAt('http://x/v1', PROXY)), agent)
    assert.ok(agentOf(lineAt('https://x/v1', PROXY)) instanceof https.Agent)
    assert.ok(agentOf({ ...lineAt('https://x/v1'), tls: {} }) instanceof https.Agent)
  })

  it('keeps no connection, and opens those of a line without a proxy as any agent does', () => {
    const own = agentOf({ ...lineAt('https://x/v1'), tls: { ca: 'theirs' } })
    for (const agent of [agentOf(lineAt('http://x/v1', PROXY)), own])
      assert.equal((agent as http.Agent & { keepAlive: boolean }).keepAlive, false)
    const { options } = own as https.Agent
    assert.equal((options.ca as string[]).at(-1), 'theirs')
    assert.equal(Object.hasOwn(own ?? {}, 'createConnection'), false)
  })
})

describe('a connection to a line behind a proxy', () => {
  it('is a tunnel to the line, which is given once it is open', async (t) => {
    const upstream = await byteUpstream(t, (_req, res) => void res.end('through'))
    const port = Number(new URL(upstream.url).port)
    const proxy = await connectProxy(t, () => port)
    const agent = agentOf(lineAt(`http://line.example:${port}/v1`, { proxy: proxy.url }))
    const request = http.get(`http://line.example:${port}/x`, { agent: agent as http.Agent })
    const [response] = await once(request, 'response')
    assert.equal(response.statusCode, 200)
    response.resume()
    await once(response, 'end')
    assert.deepEqual(
      proxy.asked.map(({ to }) => to),
      [`line.example:${port}`],
    )
  })

  it('is an error where there is no proxy, which needs no listener', async () => {
    const proxy = `http://127.0.0.1:${await closedPort()}`
    const agent = agentOf(lineAt('http://line.example/v1', { proxy })) as http.Agent
    const connect = agent.createConnection as unknown as (
      options: object,
      done?: (error: Error | null, socket: Duplex | null) => void,
    ) => unknown
    assert.equal(connect({}), undefined)
    const told = Promise.withResolvers<[Error | null, Duplex | null]>()
    assert.equal(
      connect({}, (...given) => told.resolve(given)),
      undefined,
    )
    const [error, socket] = await told.promise
    assert.ok(error instanceof Error)
    assert.equal(socket, null)
  })
})
