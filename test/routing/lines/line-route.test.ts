import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { RequestListener } from 'node:http'
import { createServer } from 'node:https'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import type { TLSSocket } from 'node:tls'
import { WebSocketServer } from 'ws'
import { type ConnectProxy, connectProxy } from '../../support/connect-proxy.ts'
import { exchange, gatewayFor, OPENAI, OPENAI_STREAM } from '../../support/exchange.ts'
import { forwardGateway } from '../../support/forward-gateway.ts'
import { type OwnAuthority, ownAuthority } from '../../support/own-authority.ts'
import { connect, RULES } from '../../support/realtime.ts'
import { chatAnswer, chatAnswerOf, closedPort, startUpstream } from '../../support/scripted-upstream.ts'

/** A line over TLS behind a proxy; its name exists nowhere else. */
interface World {
  readonly authority: OwnAuthority
  readonly proxy: ConnectProxy
  readonly port: number
  /** The name in the client certificate of each request's connection. */
  readonly clients: (string | undefined)[]
  readonly received: { url: string; authorization: string | undefined; body: string }[]
}

const HOST = 'models.internal.test'

async function world(t: TestContext, mutual = false): Promise<World> {
  const authority = ownAuthority(t)
  const { cert, key } = authority.certify('server', [HOST, '127.0.0.1'])
  const clients: World['clients'] = []
  const received: World['received'] = []
  const answer: RequestListener = async (req, res) => {
    const chunks: Buffer[] = []
    for await (const chunk of req) chunks.push(chunk as Buffer)
    clients.push(String((req.socket as TLSSocket).getPeerCertificate().subject?.CN))
    received.push({
      url: req.url ?? '',
      authorization: req.headers.authorization,
      body: Buffer.concat(chunks).toString(),
    })
    res.writeHead(200, { 'content-type': 'application/json' }).end(chatAnswerOf('Hello'))
  }
  const server = createServer(
    { cert, key, ca: authority.ca, requestCert: mutual, rejectUnauthorized: mutual },
    answer,
  )
  const sockets = new WebSocketServer({ server })
  sockets.on('connection', (socket) => socket.on('message', (data) => socket.send(data)))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    for (const socket of sockets.clients) socket.terminate()
    server.close()
    server.closeAllConnections()
  })
  const { port } = server.address() as AddressInfo
  const proxy = await connectProxy(t, () => port)
  return { authority, proxy, port, clients, received }
}

describe('a line behind a proxy', () => {
  it('is reached through it by its own name, over connections that are kept', async (t) => {
    const { authority, proxy, received } = await world(t)
    const line = {
      url: `https://${HOST}`,
      proxy: proxy.url.replace('//', '//us%40er:p%3Aw@'),
      tls: { ca: authority.caFile },
    }
    const gateway = await gatewayFor(t, { lines: [line] })
    for (let i = 0; i < 3; i++) assert.equal((await exchange(gateway)).status, 200)
    assert.equal(received.length, 3)
    const authorization = `Basic ${Buffer.from('us@er:p:w').toString('base64')}`
    assert.deepEqual(proxy.asked, [{ to: `${HOST}:443`, authorization }])
  })

  it('may speak plain HTTP', async (t) => {
    const upstream = await startUpstream()
    t.after(() => upstream.close())
    const proxy = await connectProxy(t, () => Number(new URL(upstream.url).port))
    const gateway = await gatewayFor(t, { lines: [{ url: `http://${HOST}`, proxy: proxy.url }] })
    assert.equal((await exchange(gateway)).status, 200)
    assert.deepEqual(
      proxy.asked.map(({ to }) => to),
      [`${HOST}:80`],
    )
  })

  const failures: [what: string, script: ConnectProxy['script'], outcome: string, detail: RegExp][] = [
    [
      'refuses',
      (socket) => socket.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n'),
      'upstream_error',
      /^the proxy answered 407$/,
    ],
    ['ends', (socket) => socket.destroy(), 'upstream_error', /^the proxy cannot be reached/],
    [
      'says nonsense',
      (socket) => socket.end('hello\r\n\r\n'),
      'upstream_error',
      /^the proxy cannot be reached/,
    ],
    ['hangs', () => {}, 'upstream_timeout', /^(?:the proxy took too long|the connect clock ran out)/],
    [
      'opens a tunnel that does not answer',
      (socket) => void socket.write('HTTP/1.1 200 OK\r\n\r\n'),
      'upstream_timeout',
      /connect/,
    ],
  ]
  for (const [what, script, outcome, detail] of failures)
    for (const mode of [OPENAI, OPENAI_STREAM])
      it(`costs only its own attempts if the proxy ${what}, streamed: ${mode.stream}`, async (t) => {
        const { authority, proxy } = await world(t)
        proxy.script = script
        const spare = await startUpstream((res) => chatAnswer(res))
        t.after(() => spare.close())
        const timeouts = { connectMs: outcome === 'upstream_timeout' ? 200 : 4000 }
        const line = { url: `https://${HOST}`, proxy: proxy.url, tls: { ca: authority.caFile }, timeouts }
        const gateway = await gatewayFor(t, { lines: [line, { url: spare.url }] })
        const began = performance.now()
        const answers = await Promise.all([1, 2, 3].map(() => exchange(gateway)))
        assert.ok(performance.now() - began < 5000)
        for (const { status, requestId } of answers) {
          assert.equal(status, 200)
          const [first] = (await gateway.entry(requestId)).routing?.attempts ?? []
          assert.equal(first?.outcome, outcome)
          assert.match(first?.detail ?? '', detail)
        }
      })

  it('costs its own attempts if the proxy is down', async (t) => {
    const proxy = `http://127.0.0.1:${await closedPort()}`
    const gateway = await gatewayFor(t, { lines: [{ url: `https://${HOST}`, proxy }] })
    const { errorCode, requestId } = await exchange(gateway)
    assert.equal(errorCode, 'upstream_error')
    const [first] = (await gateway.entry(requestId)).routing?.attempts ?? []
    assert.equal(first?.detail, 'the proxy cannot be reached (ECONNREFUSED)')
  })
})

describe('a line with certificates of its own', () => {
  it('trusts its own authority, and no other', async (t) => {
    const { authority, port } = await world(t)
    const url = `https://127.0.0.1:${port}`
    const trusting = await gatewayFor(t, { lines: [{ url, tls: { ca: `file:${authority.caFile}` } }] })
    assert.equal((await exchange(trusting)).status, 200)
    const other = await gatewayFor(t, { lines: [{ url }, { url, tls: { ca: ownAuthority(t).caFile } }] })
    assert.equal((await exchange(other)).errorCode, 'all_candidates_failed')
  })

  it('receives the certificate of this gateway', async (t) => {
    const { authority, port, clients } = await world(t, true)
    const { certFile: cert, keyFile: key } = authority.certify('this-gateway')
    const url = `https://127.0.0.1:${port}`
    const ca = authority.caFile
    const gateway = await gatewayFor(t, {
      lines: [
        { url, tls: { ca } },
        { url, tls: { ca, cert, key } },
      ],
    })
    assert.equal((await exchange(gateway)).status, 200)
    assert.deepEqual(clients, ['this-gateway'])
  })
})

describe('a request that is passed on unread', () => {
  for (const through of [true, false])
    it(`is sent ${through ? 'through the proxy' : 'directly'}, with the certificates of the line`, async (t) => {
      const { authority, proxy, port, clients, received } = await world(t, true)
      const { certFile: cert, keyFile: key } = authority.certify('this-gateway')
      const url = through ? `https://${HOST}` : `https://127.0.0.1:${port}`
      const tls = { ca: authority.caFile, cert, key }
      const line = { url, tls, ...(through && { proxy: proxy.url }) }
      const rules = [...RULES, { path: '/v1/files', lines: ['line-0'], price: { perRequest: '0.01' } }]
      const gateway = await forwardGateway(t, { lines: [line], rules })
      const body = 'x'.repeat(200_000)
      const answer = await gateway.ask('/v1/files', { method: 'POST', body })
      assert.equal(answer.status, 200)
      assert.equal(received[0]?.body, body)
      assert.deepEqual(clients, ['this-gateway'])

      const socket = connect(gateway)
      await once(socket, 'open')
      socket.send('hello')
      const [heard] = await once(socket, 'message')
      assert.equal(String(heard), 'hello')
      socket.close()
      await once(socket, 'close')
      assert.deepEqual(
        proxy.asked.map(({ to }) => to),
        through ? [`${HOST}:443`, `${HOST}:443`] : [],
      )
    })

  const silences: [what: string, said: string][] = [
    ['hangs', ''],
    ['opens a tunnel that does not answer', 'HTTP/1.1 200 OK\r\n\r\n'],
  ]
  for (const [what, said] of silences)
    it(`costs its own attempt if the proxy ${what}, and another line gets the whole body`, async (t) => {
      const { authority, proxy } = await world(t)
      const ended = Promise.withResolvers<void>()
      proxy.script = (socket) => {
        socket.resume().on('end', ended.resolve).on('close', ended.resolve)
        socket.write(said)
      }
      const spare = createTcpServer((socket) => {
        socket.on('error', () => {}).on('data', () => {})
        setTimeout(() => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'), 50)
      })
      await new Promise<void>((resolve) => spare.listen(0, '127.0.0.1', resolve))
      t.after(() => spare.close())
      const { port } = spare.address() as AddressInfo
      const first = {
        url: `https://${HOST}`,
        proxy: proxy.url,
        tls: { ca: authority.caFile },
        timeouts: { connectMs: 200 },
      }
      const rules = [{ path: '/v1/files', lines: ['line-0', 'line-1'], price: { perRequest: '0.01' } }]
      const gateway = await forwardGateway(t, { lines: [first, `http://127.0.0.1:${port}`], rules })
      const answer = await gateway.ask('/v1/files', { method: 'POST', body: 'x'.repeat(1000) })
      assert.deepEqual([answer.status, await answer.text()], [200, 'ok'])
      await ended.promise
    })
})
