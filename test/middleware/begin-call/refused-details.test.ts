import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, Socket } from 'node:net'
import { PassThrough } from 'node:stream'
import { after, before, describe, it } from 'node:test'
import express, { type Request } from 'express'
import { callOf } from '../../../lib/core/call/index.ts'
import { beginCall, refuseUnparsed, serverRefusals } from '../../../lib/middleware/begin-call/index.ts'
import { errorEnvelope } from '../../../lib/middleware/error-envelope/index.ts'
import { rawClient } from '../../support/app-server.ts'

const seen: string[] = []
const note = (req: Request) => void seen.push(`${req.method} ${req.url}`)
const app = express()
app.use(beginCall())
let failures = 0
app.post('/read', (req, res) => {
  callOf(req).onFail(() => failures++)
  req.on('error', () => {}).resume()
  req.on('end', () => res.end('served'))
})
app.post('/begun', (req, res) => {
  req.on('error', () => {}).resume()
  res.write('begun')
})
app.use((_req, res) => void res.end('served'))
const refused = express().use(beginCall({ onBegin: (_call, req) => note(req) }), refuseUnparsed())
refused.use((_req, res) => void res.end('not refused'))
refused.use(errorEnvelope())
const listeners = serverRefusals(app, refused)
const server = createServer({ requireHostHeader: false, maxHeaderSize: 16 * 1024, headersTimeout: 60 })
server.setTimeout(0)
for (const [event, listener] of Object.entries(listeners)) server.on(event, listener)

let port = 0
before(async () => {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  port = (server.address() as AddressInfo).port
})
after(() => server.close().closeAllConnections())

async function answerTo(bytes: string) {
  seen.length = 0
  const received = await rawClient(port, bytes).end()
  const [head = '', body = ''] = received.split('\r\n\r\n')
  const status = Number(/^HTTP\/1\.1 (\d+)/.exec(head)?.[1])
  return { head, status, error: body.startsWith('{') ? JSON.parse(body).error : undefined }
}

/** Bytes, and the status, the code and the words of their refusal, with the request that the chain sees. */
const ROWS: readonly [bytes: string, status: number, code: string, words: RegExp, seen: string][] = [
  ['GET /a HTTP/1.1\r\n\r\n', 400, 'invalid_request', /no header Host/, 'GET /a'],
  ['PUT /a?b=1 HTTP/1.1\r\n\r\n', 400, 'invalid_request', /no header Host/, 'PUT /a?b=1'],
  [
    'DELETE /a HTTP/1.1\r\nhost: x\r\nexpect: 99\r\n\r\n',
    417,
    'invalid_request',
    /expects is not supported/,
    'DELETE /a',
  ],
  ['CONNECT x:1 HTTP/1.1\r\nhost: x\r\n\r\n', 404, 'not_found', /no tunnels here/, 'CONNECT /'],
  ['PATCH /a/b?c=d HTTP/9.9\r\n\r\n', 400, 'invalid_request', /not valid HTTP/, 'PATCH /a/b'],
  ['M-SEARCH /a HTTP/9.9\r\n\r\n', 400, 'invalid_request', /not valid HTTP/, 'M-SEARCH /a'],
  ['GET /\xe9 HTTP/9.9\r\n\r\n', 400, 'invalid_request', /not valid HTTP/, 'GET /\xe9'],
  ['x PUT /a HTTP/1.1\r\n\r\n', 400, 'invalid_request', /not valid HTTP/, 'GET /'],
  // A word that is no method of HTTP is not taken over.
  ['FETCH /a HTTP/1.1\r\n\r\n', 400, 'invalid_request', /not valid HTTP/, 'GET /a'],
  ['get /a HTTP/1.1\r\n\r\n', 400, 'invalid_request', /not valid HTTP/, 'GET /'],
  [
    `POST /${'x'.repeat(17_000)} HTTP/1.1\r\n`,
    431,
    'invalid_request',
    /headers of the request are too large/,
    `POST /${'x'.repeat(500)}`,
  ],
  [
    `POST /read HTTP/1.1\r\nhost: x\r\nx: ${'x'.repeat(17_000)}\r\n\r\n`,
    431,
    'invalid_request',
    /headers of the request are too large/,
    'POST /read',
  ],
]

describe('a refusal of what Node does not parse', () => {
  for (const [bytes, status, code, words, request] of ROWS)
    it(`says what is wrong and keeps method and path: ${JSON.stringify(bytes.slice(0, 45))}`, async () => {
      const answer = await answerTo(bytes)
      assert.deepEqual([answer.status, answer.error.code, seen], [status, code, [request]])
      assert.match(answer.error.message, words)
      assert.match(answer.head, /\r\nconnection: close/i)
      assert.doesNotMatch(answer.head, /x-should-retry: true/i)
    })

  it('names the fault to a caller whose body breaks in its framing, and closes', async () => {
    const chunked = 'POST /read HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n'
    const broken = await answerTo(`${chunked}zz\r\n`)
    assert.deepEqual([broken.status, broken.error.code, seen], [400, 'invalid_request', []])
    assert.equal(failures, 1, 'what its handler holds is given back')
    assert.match(broken.error.message, /not valid HTTP/)
    assert.match(broken.head, /\r\nx-request-id: req_/i)
    const large = await answerTo(`${chunked}1;${'x'.repeat(20_000)}\r\nx\r\n`)
    assert.deepEqual([large.status, large.error.code], [413, 'request_too_large'])
  })

  it('is not written into an answer that has begun: a caller whose body then breaks is cut off', async () => {
    const client = rawClient(port, 'POST /begun HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n')
    await client.until('begun')
    client.socket.write('zz\r\n')
    const received = await client.end()
    assert.equal(received.split('HTTP/1.1').length, 2)
    assert.doesNotMatch(received, /error/)
  })

  it('has a whole request of HTTP/1.1 without a body, as far as its chain can see', async () => {
    const seen: unknown[] = []
    const own = serverRefusals(app, (req, res) => {
      seen.push([req.httpVersionMajor, req.httpVersionMinor, req.complete, req.headers])
      res.end('plain')
    })
    const bare = createServer().on('clientError', own.clientError)
    bare.on('checkExpectation', own.checkExpectation).listen(0, '127.0.0.1')
    await once(bare, 'listening')
    const { port: plain } = bare.address() as AddressInfo
    const received = await rawClient(plain, 'GET /a HTTP/9.9\r\n\r\n').end()
    assert.deepEqual(seen, [[1, 1, true, {}]])
    assert.match(received, /plain/)
    // Also a chain without an envelope closes the connection of who waits in vain.
    const waits = await rawClient(plain, 'GET /a HTTP/1.1\r\nhost: x\r\nexpect: 1\r\n\r\n').end()
    assert.match(waits, /\r\nconnection: close\r\n/i)
    bare.close()
  })

  it('is for HTTP/1.1 without a Host only', async () => {
    for (const bytes of [
      'GET / HTTP/1.0\r\n\r\n',
      'GET / HTTP/1.0\r\nhost: x\r\n\r\n',
      'GET / HTTP/1.1\r\nhost:\r\nconnection: close\r\n\r\n',
    ]) {
      const answer = await answerTo(bytes)
      assert.deepEqual([answer.status, seen], [200, []], bytes)
    }
  })

  it('is for nothing else: who comes to its chain without one goes on', async () => {
    const own = createServer(refused).listen(0, '127.0.0.1')
    await once(own, 'listening')
    const res = await fetch(`http://127.0.0.1:${(own.address() as AddressInfo).port}/`)
    assert.deepEqual([res.status, await res.text()], [200, 'not refused'])
    own.close().closeAllConnections()
  })
})

describe('serverRefusals', () => {
  const made: string[] = []
  const own = serverRefusals(
    () => made.push('app'),
    (_req: IncomingMessage, res: ServerResponse) => made.push(`refused on ${res.socket?.constructor.name}`),
  )
  /** A connection of which a test says what it has read. */
  const socketWith = (bytesRead: number, members: object = {}) =>
    Object.defineProperties(new Socket(), {
      bytesRead: { value: bytesRead },
      writable: { value: true },
      ...Object.fromEntries(Object.entries(members).map(([name, value]) => [name, { value }])),
    })
  const fault = (code?: string, rawPacket?: unknown) => Object.assign(new Error('x'), { code, rawPacket })

  for (const [name, socket, code] of [
    ['was reset', socketWith(5), 'ECONNRESET'],
    ['has ended', socketWith(5, { writable: false }), 'HPE_INVALID'],
    ['sent nothing', socketWith(0), 'HPE_INVALID'],
    ['is no socket', new PassThrough(), 'HPE_INVALID'],
  ] as const)
    it(`cuts a connection that ${name}, and asks no chain`, () => {
      made.length = 0
      own.clientError(fault(code), socket)
      assert.deepEqual([socket.destroyed, made], [true, []])
    })

  it('asks its chain about a request of which nothing is known', () => {
    for (const packet of [undefined, 'GET /text HTTP/1.1', Buffer.alloc(0)]) {
      made.length = 0
      const socket = socketWith(1)
      own.clientError(fault(undefined, packet), socket)
      assert.deepEqual([made, socket.destroyed], [['refused on Socket'], false])
    }
  })

  it('cuts a tunnel that is no socket', () => {
    made.length = 0
    const stream = new PassThrough()
    own.connect(new IncomingMessage(new Socket()), stream)
    assert.deepEqual([stream.destroyed, made], [true, []])
  })
})
