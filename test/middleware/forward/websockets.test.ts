import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { describe, it } from 'node:test'
import { WebSocket } from 'ws'
import { LateLedger } from '../../ledger/support/late-ledger.ts'
import { rawClient } from '../../support/app-server.ts'
import { byteUpstream } from '../../support/byte-upstream.ts'
import { forwardGateway, type RuleSeed } from '../../support/forward-gateway.ts'
import { KEY } from '../../support/gateway.ts'
import { connect, RULES, realtime, refusal } from '../../support/realtime.ts'
import { closedPort } from '../../support/scripted-upstream.ts'
import { until } from '../../support/until.ts'
import { webSocketUpstream } from '../../support/websocket-upstream.ts'

const RULE = RULES[0] as RuleSeed

describe('a WebSocket', () => {
  it('is connected through the chain, and says and hears everything in both directions', async (t) => {
    const upstream = await webSocketUpstream(t)
    const gateway = await realtime(t, upstream.url, { key: { limits: { rpm: 9 } } })
    const socket = connect(gateway, undefined, ['realtime'])
    const [[response]] = await Promise.all([once(socket, 'upgrade'), once(socket, 'open')])
    assert.equal(socket.protocol, 'realtime')
    const big = randomBytes(300_000)
    for (const message of [Buffer.from('{"type":"session.update"}'), big]) {
      socket.send(message)
      const [heard] = await once(socket, 'message')
      assert.deepEqual(heard, message)
    }
    const [request] = upstream.requests
    assert.equal(request?.url, '/v1/realtime?model=voice')
    assert.equal(request?.headers.authorization, 'Bearer upstream-key-0')
    assert.doesNotMatch(request?.rawHeaders.join('\n') ?? '', new RegExp(KEY))
    for (const name of ['set-cookie', 'server']) assert.equal(response.headers[name], undefined)
    assert.equal(response.headers['x-ratelimit-limit-requests'], '9')
    const id = response.headers['x-request-id']
    assert.match(id, /^req_/)

    socket.close(1000, 'bye')
    const [code] = await once(socket, 'close')
    assert.equal(code, 1000)
    const { status, outcome, routing, billing, method, path } = await gateway.entry(id)
    assert.deepEqual([status, outcome, method, path], [101, 'completed', 'GET', '/v1/realtime'])
    assert.deepEqual(
      routing?.attempts.map(({ line, upstream_status, outcome }) => [line, upstream_status, outcome]),
      [['line-0', 101, 'completed']],
    )
    assert.equal(billing?.charged, '0.02')
    assert.deepEqual(await gateway.books(), { spent: '0.02', charges: 1 })
  })

  it('passes on what its caller has said before the line has switched', async (t) => {
    let heard = ''
    const handshake = Promise.withResolvers<Duplex>()
    const upstream = await byteUpstream(
      t,
      () => {},
      (_req, socket) => {
        socket.on('data', (chunk) => {
          heard += chunk
        })
        handshake.resolve(socket)
      },
    )
    const gateway = await realtime(t, upstream.url)
    const client = rawClient(
      gateway.port,
      `GET /v1/realtime HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${KEY}\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\nat once,`,
    )
    const line = await handshake.promise
    client.socket.write(' meanwhile,')
    line.write('HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\nhello')
    await client.until('hello')
    client.socket.write(' and later')
    await until(() => heard === 'at once, meanwhile, and later', 'all that was said')
    client.socket.end()
    await until(() => gateway.openCalls.size === 0, 'the end of the call')
  })

  it('brings its key as a subprotocol where it is of a browser, which the line never sees', async (t) => {
    const upstream = await webSocketUpstream(t)
    const gateway = await realtime(t, upstream.url)
    const socket = connect(gateway, {}, [
      'realtime',
      `openai-insecure-api-key.${KEY}`,
      'openai-beta.realtime-v1',
    ])
    await once(socket, 'open')
    assert.equal(socket.protocol, 'realtime')
    const [request] = upstream.requests
    assert.equal(request?.headers['sec-websocket-protocol'], 'realtime, openai-beta.realtime-v1')
    assert.doesNotMatch(request?.rawHeaders.join('\n') ?? '', new RegExp(KEY))
    socket.close()
  })

  it('holds its slot while it lives, and gives it back within a second of its end', async (t) => {
    const upstream = await webSocketUpstream(t)
    const gateway = await realtime(t, upstream.url, { account: { limits: { concurrency: 1 } } })
    const first = connect(gateway)
    await once(first, 'open')
    const { envelope } = await refusal(connect(gateway))
    assert.equal(envelope.error.code, 'concurrency_limited')
    first.terminate()
    await until(() => gateway.openCalls.size === 0, 'the end of the call', 5000)
    const second = connect(gateway)
    await once(second, 'open')
    assert.equal(upstream.requests.length, 2, 'the refused one is not passed on')
    second.close()
  })

  it('is charged before the line is heard', async (t) => {
    const upstream = await webSocketUpstream(t, (session) => session.send('greeting'))
    const ledger = new LateLedger({ accounts: [{ id: 'acme', balance: '10' }], keys: [{ id: 'key_acme' }] })
    const gateway = await realtime(t, upstream.url, { ledger })
    const socket = connect(gateway)
    const greeting = once(socket, 'message')
    await until(() => upstream.sessions.size === 1)
    await new Promise((resolve) => setTimeout(resolve, 50))
    assert.equal(socket.readyState, WebSocket.CONNECTING)
    ledger.open()
    assert.equal(String((await greeting)[0]), 'greeting')
    socket.close()
  })
})

describe('the end of a WebSocket', () => {
  it('comes to the caller when the line says goodbye', async (t) => {
    const upstream = await webSocketUpstream(t, (session) => {
      session.send('last words')
      session.close(4001, 'enough')
    })
    const gateway = await realtime(t, upstream.url)
    const socket = connect(gateway)
    const words = once(socket, 'message')
    const [code, reason] = await once(socket, 'close')
    assert.equal(String((await words)[0]), 'last words')
    assert.deepEqual([code, String(reason)], [4001, 'enough'])
    await until(() => gateway.openCalls.size === 0, 'the end of the call', 5000)
  })

  it('comes to the line when the caller vanishes', async (t) => {
    const upstream = await webSocketUpstream(t)
    const gateway = await realtime(t, upstream.url)
    const socket = connect(gateway)
    const [response] = await once(socket, 'upgrade')
    await until(() => upstream.sessions.size === 1)
    const tcp = (response as IncomingMessage).socket
    tcp.resetAndDestroy()
    await until(() => upstream.connections.size === 0, 'the end of the upstream', 5000)
    const { status, outcome, routing } = await gateway.entry(response.headers['x-request-id'])
    assert.deepEqual([status, outcome], [499, 'interrupted'])
    assert.equal(routing?.attempts[0]?.upstream_status, 101)
  })

  it('comes to the caller when the line breaks, and stands in the call log', async (t) => {
    const upstream = await webSocketUpstream(t)
    const gateway = await realtime(t, upstream.url)
    const socket = connect(gateway)
    const [response] = await once(socket, 'upgrade')
    await until(() => upstream.sessions.size === 1)
    for (const connection of upstream.connections) connection.resetAndDestroy()
    const [code] = await once(socket, 'close')
    assert.equal(code, 1006)
    const { status, outcome, error_code } = await gateway.entry(response.headers['x-request-id'])
    assert.deepEqual([status, outcome, error_code], [101, 'interrupted', 'upstream_error'])
    assert.equal(gateway.openCalls.size, 0)
  })

  it('comes to the caller when the line breaks before its charge is durable', async (t) => {
    const upstream = await webSocketUpstream(t)
    const ledger = new LateLedger({ accounts: [{ id: 'acme', balance: '10' }], keys: [{ id: 'key_acme' }] })
    const gateway = await realtime(t, upstream.url, { ledger })
    const socket = connect(gateway)
    const answered = once(socket, 'upgrade')
    const closed = once(socket, 'close')
    await until(() => ledger.held === 1)
    for (const connection of upstream.connections) connection.resetAndDestroy()
    await until(() => upstream.connections.size === 0)
    await new Promise((resolve) => setTimeout(resolve, 50))
    ledger.open()
    const [response] = await answered
    assert.equal((await closed)[0], 1006)
    const { status, outcome, error_code, billing } = await gateway.entry(response.headers['x-request-id'])
    assert.deepEqual([status, outcome, error_code], [101, 'interrupted', 'upstream_error'])
    assert.equal(billing?.charged, '0.02')
    assert.equal(gateway.openCalls.size, 0)
    assert.deepEqual(await gateway.books(), { spent: '0.02', charges: 1 })
  })

  it('is not kept by a caller that never says goodbye itself', async (t) => {
    const upstream = await webSocketUpstream(t, (session) => session.terminate())
    const gateway = await realtime(t, upstream.url)
    const socket = connect(gateway)
    const [response] = await once(socket, 'upgrade')
    ;(response as IncomingMessage).socket.removeAllListeners('end')
    await until(() => upstream.requests.length === 1 && gateway.openCalls.size === 0, 'the end', 5000)
  })

  it('comes at once when all are cut off', async (t) => {
    const upstream = await webSocketUpstream(t)
    const gateway = await realtime(t, upstream.url)
    const socket = connect(gateway)
    await once(socket, 'open')
    assert.equal(gateway.upgrades.size, 1)
    gateway.upgrades.cutOff()
    await once(socket, 'close')
    await until(() => upstream.connections.size === 0 && gateway.openCalls.size === 0)
    assert.equal(gateway.upgrades.size, 0)
  })

  it('comes behind the frame that the line has begun, or without a close frame if that does not come whole', async (t) => {
    for (const finishes of [true, false]) {
      const message = Buffer.concat([Buffer.from([0x82, 126, 0x10, 0]), Buffer.alloc(0x1000, 'x')])
      let finish = (): void => {}
      const upstream = await webSocketUpstream(t, (session) => {
        const { _socket: tcp } = session as unknown as { _socket: Duplex }
        tcp.write(message.subarray(0, 1000))
        finish = () => void tcp.write(message.subarray(1000))
      })
      const gateway = await realtime(t, upstream.url, { rules: [{ ...RULE, sessionMs: 700 }] })
      const socket = connect(gateway)
      const heard: Buffer[] = []
      socket.on('message', (data) => heard.push(data as Buffer))
      const [response] = await once(socket, 'upgrade')
      const closed = once(socket, 'close')
      await new Promise((resolve) => setTimeout(resolve, 900))
      if (finishes) finish()
      const [code, reason] = await closed
      assert.deepEqual([code, String(reason)], finishes ? [1011, 'upstream_timeout'] : [1006, ''])
      assert.deepEqual(
        heard.map(({ length }) => length),
        finishes ? [0x1000] : [],
      )
      const entry = await gateway.entry(response.headers['x-request-id'])
      assert.deepEqual(
        [entry.status, entry.outcome, entry.error_code],
        [101, 'interrupted', 'upstream_timeout'],
      )
    }
  })
})

describe('a handshake that is refused', () => {
  it('is answered in the envelope, and the connection is closed', async (t) => {
    const upstream = await webSocketUpstream(t)
    const gateway = await realtime(t, upstream.url)
    const { response, envelope } = await refusal(connect(gateway, { authorization: 'Bearer sk-none' }))
    assert.equal(response.statusCode, 401)
    assert.equal(response.headers.connection, 'close')
    assert.equal(envelope.error.code, 'invalid_credential')
    assert.equal(envelope.request_id, response.headers['x-request-id'])
    assert.equal((await refusal(connect(gateway, {}))).envelope.error.code, 'missing_credential')
    await until(() => gateway.upgrades.size === 0, 'the end of the connections')
    assert.equal(upstream.requests.length, 0)
    assert.equal((await gateway.entry(envelope.request_id)).outcome, 'refused')
  })

  it('by the line is worded by the gateway, and costs nothing', async (t) => {
    const words = 'words of the upstream'
    const upstream = await byteUpstream(
      t,
      () => {},
      (_req, socket) => {
        const body = JSON.stringify({ error: { message: words } })
        socket.end(
          `HTTP/1.1 401 No\r\nset-cookie: a=1\r\nconnection: close\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
        )
      },
    )
    const gateway = await realtime(t, upstream.url)
    const { response, envelope } = await refusal(connect(gateway))
    assert.equal(response.statusCode, 502)
    assert.equal(envelope.error.code, 'upstream_error')
    assert.equal(response.headers['set-cookie'], undefined)
    assert.doesNotMatch(JSON.stringify(envelope), new RegExp(words))
    const { routing } = await gateway.entry(envelope.request_id)
    assert.equal(routing?.attempts[0]?.upstream_status, 401)
    assert.deepEqual(await gateway.books(), { spent: '0', charges: 0 })
  })

  it('where a path answers as any other does is invalid_request, and no blame of the line', async (t) => {
    const upstream = await byteUpstream(t, (_req, res) => void res.end('a page'))
    const lines = [{ url: upstream.url, circuit: { minimumCalls: 2 } }]
    const gateway = await forwardGateway(t, { lines, rules: RULES })
    for (let i = 0; i < 3; i++) {
      const { response, envelope } = await refusal(connect(gateway))
      assert.deepEqual([response.statusCode, envelope.error.code], [400, 'invalid_request'])
      assert.equal(envelope.error.param, 'Upgrade')
    }
    assert.equal(upstream.requests.length, 3)
    assert.deepEqual(await gateway.books(), { spent: '0', charges: 0 })
  })

  it('by a line that cannot be connected to goes to the next one', async (t) => {
    const upstream = await webSocketUpstream(t)
    const dead = `http://127.0.0.1:${await closedPort()}`
    const rules = [{ path: '/v1/realtime', lines: ['line-0', 'line-1'] }]
    const gateway = await forwardGateway(t, { lines: [dead, upstream.url], rules })
    const socket = connect(gateway)
    await once(socket, 'open')
    socket.close()
    await once(socket, 'close')
  })

  it('by a line that is silent ends after the first-byte clock', async (t) => {
    const upstream = await byteUpstream(
      t,
      () => {},
      (_req, socket) => void socket.resume().on('end', () => socket.end()),
    )
    const gateway = await forwardGateway(t, {
      lines: [{ url: upstream.url, timeouts: { firstByteMs: 500 } }],
      rules: RULES,
    })
    const { response, envelope } = await refusal(connect(gateway))
    assert.deepEqual([response.statusCode, envelope.error.code], [504, 'upstream_timeout'])
    await until(() => upstream.connections.size === 0 && gateway.upgrades.size === 0)
  })

  for (const [leave, said] of [
    ['end', ''],
    ['destroy', ''],
    ['end', 'early words'],
    ['destroy', 'early words'],
  ] as const) {
    it(`by a caller that leaves while the line is silent gives its slot back at once: ${leave} ${said}`, async (t) => {
      const upstream = await byteUpstream(
        t,
        () => {},
        (_req, socket) => void socket.resume().on('end', () => socket.end()),
      )
      const gateway = await realtime(t, upstream.url)
      const client = rawClient(
        gateway.port,
        `GET /v1/realtime HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${KEY}\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`,
      )
      await until(() => upstream.requests.length === 1, 'the handshake')
      await new Promise((resolve) => client.socket.write(said, resolve))
      client.socket[leave]()
      await until(() => gateway.openCalls.size === 0, 'the end of the call', 5000)
      await until(() => upstream.connections.size === 0 && gateway.upgrades.size === 0)
      assert.deepEqual(await gateway.books(), { spent: '0', charges: 0 })
    })
  }

  it('where nothing listens at the path is not_found', async (t) => {
    const upstream = await webSocketUpstream(t)
    const gateway = await realtime(t, upstream.url)
    const socket = new WebSocket(`${gateway.url.replace('http', 'ws')}/v1/elsewhere`, {
      headers: { authorization: `Bearer ${KEY}` },
    })
    socket.on('error', () => {})
    assert.equal((await refusal(socket)).envelope.error.code, 'not_found')
  })
})

const HANDSHAKE = `GET /v1/realtime?model=voice HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${KEY}\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`

describe('a caller that leaves while its WebSocket is being charged', () => {
  for (const how of ['destroy', 'resetAndDestroy', 'end'] as const)
    it(`leaves no connection to the line behind (${how})`, async (t) => {
      const upstream = await webSocketUpstream(t)
      const ledger = new LateLedger({ accounts: [{ id: 'acme', balance: '10' }], keys: [{ id: 'key_acme' }] })
      const gateway = await forwardGateway(t, {
        lines: [upstream.url],
        rules: [{ path: '/v1/realtime', lines: ['line-0'], price: { perRequest: '0.01' } }],
        ledger,
      })
      t.after(() => ledger.open())
      const client = rawClient(gateway.port, HANDSHAKE)
      await until(() => ledger.held === 1 && upstream.sessions.size === 1, 'the commit')
      client.socket[how]()
      await until(() => [...gateway.openCalls].every(({ left }) => left), 'the caller has left')
      ledger.open()
      await until(() => gateway.openCalls.size === 0, 'the end of the call')
      await until(() => upstream.sessions.size === 0, 'the end of the session at the line', 5000)
      assert.deepEqual(await gateway.books(), { spent: '0.01', charges: 1 })
    })
})
