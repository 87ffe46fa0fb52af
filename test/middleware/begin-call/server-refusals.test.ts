import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import express from 'express'
import { beginCall, refuseUnparsed, serverRefusals } from '../../../lib/middleware/begin-call/index.ts'
import { type CallLogEntry, callLog } from '../../../lib/middleware/call-log/index.ts'
import { errorEnvelope } from '../../../lib/middleware/error-envelope/index.ts'
import { rawClient } from '../../support/app-server.ts'

const entries: CallLogEntry[] = []
const log = callLog({ writer: { add: (entry) => void entries.push(entry) } })
let served = 0
let release = (): void => {}

const app = express()
app.use(beginCall(), log)
app.post('/v1/chat/completions', (req, res) => {
  req.on('error', () => {}).resume()
  req.on('end', () => {
    served++
    res.end('served')
  })
})
app.get('/held', (_req, res) => {
  release = () => res.end('late')
})
app.get('/begun', (_req, res) => void res.write('begun'))
const refused = express().use(beginCall(), log, refuseUnparsed(), errorEnvelope())

const server = createServer({
  requireHostHeader: false,
  maxHeaderSize: 16 * 1024,
  headersTimeout: 150,
  requestTimeout: 300,
  connectionsCheckingInterval: 50,
})
for (const [event, listener] of Object.entries(serverRefusals(app, refused))) server.on(event, listener)

let port = 0
before(async () => {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  port = (server.address() as AddressInfo).port
})
after(() => server.close().closeAllConnections())

const CHAT = 'POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n'
const MESSAGES = 'POST /v1/messages HTTP/1.1\r\nhost: x\r\n'

/** Bytes, and the status, path and kind of envelope of their refusal. */
const ROWS: readonly [name: string, bytes: string, status: number, path: string][] = [
  ['no HTTP at all', 'hello\r\n\r\n', 400, '/'],
  ['a TLS handshake', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', 400, '/'],
  ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400, '/'],
  ['an unknown method', 'FETCH /v1/models HTTP/1.1\r\n\r\n', 400, '/v1/models'],
  ['an unknown version', 'GET /v1/models HTTP/9.9\r\nhost: x\r\n\r\n', 400, '/v1/models'],
  ['no Host', 'GET /v1/models HTTP/1.1\r\n\r\n', 400, '/v1/models'],
  ['a header without a colon', `${CHAT}oops\r\n\r\n`, 400, '/v1/chat/completions'],
  ['a header with a NUL', `${CHAT}x: \0\r\n\r\n`, 400, '/v1/chat/completions'],
  ['a length that is no number', `${CHAT}content-length: x\r\n\r\n`, 400, '/v1/chat/completions'],
  ['two lengths', `${MESSAGES}content-length: 1\r\ncontent-length: 2\r\n\r\n`, 400, '/v1/messages'],
  [
    'a length and chunks',
    `${CHAT}content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n`,
    400,
    '/v1/chat/completions',
  ],
  [
    'a chunk size that is no number',
    `${CHAT}transfer-encoding: chunked\r\n\r\nzz\r\n`,
    400,
    '/v1/chat/completions',
  ],
  ['headers over 16 KiB', `${CHAT}x: ${'x'.repeat(20_000)}\r\n\r\n`, 431, '/v1/chat/completions'],
  ['a path over 16 KiB', `GET /v1/${'x'.repeat(20_000)} HTTP/1.1\r\n`, 431, `/v1/${'x'.repeat(496)}`],
  [
    'an Expect that nobody can meet',
    `${CHAT}expect: miracles\r\ncontent-length: 0\r\n\r\n`,
    417,
    '/v1/chat/completions',
  ],
  ['an Expect on messages', `${MESSAGES}expect: 200-ok\r\n\r\n`, 417, '/v1/messages'],
  ['headers that do not end', `${CHAT}x: y\r\n`, 408, '/'],
  ['a body that does not end', `${CHAT}content-length: 9\r\n\r\nx`, 408, '/v1/chat/completions'],
  ['a tunnel', 'CONNECT x:443 HTTP/1.1\r\nhost: x\r\n\r\n', 404, '/'],
]

describe('a request that Node itself refuses', () => {
  for (const [name, bytes, status, path] of ROWS) {
    it(`${name}: ${status} with an envelope, a request id and an entry`, async () => {
      entries.length = 0
      const client = rawClient(port, bytes)
      const received = await client.end()
      const [head = '', body = ''] = received.split('\r\n\r\n')
      assert.match(head, new RegExp(`^HTTP/1\\.1 ${status} `), received)
      const id = /^x-request-id: (req_\w+)$/im.exec(head)?.[1]
      assert.match(head, /^connection: close$/im)
      assert.equal(/^x-should-retry: true$/im.test(head), status === 408)
      const envelope = JSON.parse(body)
      assert.equal(envelope.request_id, id)
      const isMessages = path === '/v1/messages'
      assert.equal(envelope.type, isMessages ? 'error' : undefined)
      if (isMessages) assert.equal(envelope.error.type, 'invalid_request_error')
      else assert.equal(envelope.error.code, status === 404 ? 'not_found' : 'invalid_request')
      while (entries.length === 0) await sleep(5)
      assert.deepEqual(
        entries.map((entry) => [entry.id, entry.status, entry.path, entry.outcome]),
        [[id, status, path, 'refused']],
      )
      assert.equal(served, 0, 'no handler ran to its end')
    })
  }
})

describe('on a connection', () => {
  const open = async (bytes: string) => {
    const socket = connect(port, '127.0.0.1')
    let received = ''
    socket.on('data', (data) => {
      received += data
    })
    socket.on('error', () => {})
    const closed = once(socket, 'close').then(() => received)
    await once(socket, 'connect')
    socket.write(bytes)
    return { socket, closed, received: () => received }
  }

  it('that sent nothing, nothing is written, and there is no entry', async () => {
    entries.length = 0
    const { closed } = await open('')
    assert.equal(await closed, '')
    assert.deepEqual(entries, [])
  })

  it('whose answer has begun, nothing is written into that answer', async () => {
    const { socket, closed, received } = await open('GET /begun HTTP/1.1\r\nhost: x\r\n\r\n')
    while (!received().includes('begun')) await sleep(5)
    socket.write('garbage\r\n\r\n')
    const all = await closed
    assert.equal(all.split('HTTP/1.1').length, 2)
    assert.doesNotMatch(all, /error/)
  })

  it('whose answer is awaited, the caller counts as gone, so that its call ends', async () => {
    entries.length = 0
    const { socket, closed } = await open('GET /held HTTP/1.1\r\nhost: x\r\n\r\n')
    await sleep(20)
    socket.write('garbage\r\n\r\n')
    assert.equal(await closed, '')
    release()
    while (entries.length === 0) await sleep(5)
    assert.deepEqual(
      entries.map(({ path, status }) => [path, status]),
      [['/held', 499]],
    )
  })

  it('that is gone, nothing is written, and the server goes on', async () => {
    for (let i = 0; i < 50; i++) {
      const { socket } = await open('oops')
      socket.write('more\r\n\r\n')
      socket.resetAndDestroy()
    }
    const received = await rawClient(port, `${CHAT}content-length: 2\r\nconnection: close\r\n\r\nhi`).end()
    assert.match(received, /^HTTP\/1\.1 200 /)
  })
})
