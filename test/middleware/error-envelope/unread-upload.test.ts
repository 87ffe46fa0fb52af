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
