import assert from 'node:assert/strict'
import { it } from 'node:test'
import { GatewayError } from '../../../lib/core/errors/index.ts'
import { beginCall } from '../../../lib/middleware/begin-call/index.ts'
import { errorEnvelope } from '../../../lib/middleware/error-envelope/index.ts'
import { rawClient, recordingLogger, serveApp } from '../../support/app-server.ts'

it('a connection goes on behind a refused upload of up to 64 KiB, and is closed behind a longer one', async (t) => {
  const app = await serveApp((app) => {
    app.use(beginCall({ logger: recordingLogger() }))
    app.use((_req, _res, next) => next(new GatewayError('key_expired')))
    app.use(errorEnvelope({ logger: recordingLogger() }))
  })
  t.after(() => app.close())
  for (const [headers, closes] of [
    ['Content-Length: 0', false],
    ['Content-Length: 65536', false],
    ['Content-Length: 65537', true],
    ['Transfer-Encoding: chunked', true],
  ] as const) {
    const client = rawClient(app.port, `POST / HTTP/1.1\r\nHost: x\r\n${headers}\r\n\r\n`)
    await client.until('key_expired')
    assert.equal(/\r\nconnection: close\r\n/i.test(client.received), closes, headers)
    client.socket.destroy()
  }
})

it('a connection goes on behind an upload that was read to its end before it was refused, however long it is', async (t) => {
  const app = await serveApp((app) => {
    app.use(beginCall({ logger: recordingLogger() }))
    app.use((req, _res, next) => {
      req.resume().once('end', () => next(new GatewayError('invalid_request')))
    })
    app.use(errorEnvelope({ logger: recordingLogger() }))
  })
  t.after(() => app.close())
  const long = 'x'.repeat(100_000)
  for (const [headers, body] of [
    ['Content-Length: 100000', long],
    ['Transfer-Encoding: chunked', `186a0\r\n${long}\r\n0\r\n\r\n`],
    ['Expect: 100-continue\r\nContent-Length: 5', 'hello'],
  ]) {
    const client = rawClient(app.port, `POST /first HTTP/1.1\r\nHost: x\r\n${headers}\r\n\r\n${body}`)
    await client.until('"invalid_request"')
    assert.doesNotMatch(client.received, /\r\nconnection: close\r\n/i, headers)
    client.socket.write('GET /second HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
    assert.equal((await client.end()).match(/HTTP\/1\.1 400/g)?.length, 2, headers)
  }
})
