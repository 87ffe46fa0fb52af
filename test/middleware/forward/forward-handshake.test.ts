import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, it } from 'node:test'
import { WebSocket } from 'ws'
import { rawClient } from '../../support/app-server.ts'
import { byteUpstream } from '../../support/byte-upstream.ts'
import { forwardGateway } from '../../support/forward-gateway.ts'
import { KEY } from '../../support/gateway.ts'
import { connect, RULES, realtime, refusal } from '../../support/realtime.ts'
import { closedPort } from '../../support/scripted-upstream.ts'
import { until } from '../../support/until.ts'
import { webSocketUpstream } from '../../support/websocket-upstream.ts'

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

  for (const leave of ['end', 'destroy'] as const) {
    it(`by a caller that leaves while the line is silent gives its slot back at once: ${leave}`, async (t) => {
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
      client.socket[leave]()
      await until(() => gateway.openCalls.size === 0, 'the end of the call', 1000)
      await until(() => upstream.connections.size === 0 && gateway.upgrades.size === 0)
      assert.deepEqual(await gateway.books(), { spent: '0', charges: 0 })
    })
  }

  it('by nobody listening at the path is not_found', async (t) => {
    const upstream = await webSocketUpstream(t)
    const gateway = await realtime(t, upstream.url)
    const socket = new WebSocket(`${gateway.url.replace('http', 'ws')}/v1/elsewhere`, {
      headers: { authorization: `Bearer ${KEY}` },
    })
    socket.on('error', () => {})
    assert.equal((await refusal(socket)).envelope.error.code, 'not_found')
  })
})
