import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { it } from 'node:test'
import { callOf } from '../../../lib/core/call/index.ts'
import { GatewayError } from '../../../lib/core/errors/index.ts'
import { beginCall } from '../../../lib/middleware/begin-call/index.ts'
import { errorEnvelope } from '../../../lib/middleware/error-envelope/index.ts'
import { rawClient, recordingLogger, serveApp } from '../../support/app-server.ts'

/** More than the system takes of an upload that nobody reads. */
const SIZE = 16 * 1024 * 1024
const EXPECT = 'Expect: 100-continue\r\n'

interface Refused {
  readonly expect?: string
  /** Whether the caller has shown a valid key. */
  readonly hasKey?: boolean
  /** Whether some of the body was read before the refusal. */
  readonly isBegun?: boolean
  readonly code?: 'request_too_large' | 'key_expired' | 'invalid_credential'
}

const ALL: [of: string, refused: Refused][] = [
  ['a caller with a valid key', { hasKey: true }],
  ['one that waited for a 100, and got it', { hasKey: true, expect: EXPECT, isBegun: true }],
]
const LITTLE: [of: string, refused: Refused][] = [
  ['a caller without a key', { isBegun: true }],
  ['one whose key has expired', { hasKey: true, code: 'key_expired' }],
  ['one whose key is known no more', { hasKey: true, code: 'invalid_credential' }],
  ['one that waits for a 100, but sends', { hasKey: true, expect: EXPECT }],
]

for (const [isAll, rows] of [
  [true, ALL],
  [false, LITTLE],
] as const)
  for (const [of, { expect = '', hasKey = false, isBegun = false, code = 'request_too_large' }] of rows)
    it(`a refused upload is read ${isAll ? 'to its end' : 'only a little'} of ${of}`, async (t) => {
      let reading: Socket | undefined
      const app = await serveApp((app) => {
        app.use(beginCall({ logger: recordingLogger() }))
        app.use((req, _res, next) => {
          reading = req.socket
          if (hasKey) callOf(req).principal = { accountId: 'acme' } as never
          const refuse = (): void => next(new GatewayError(code))
          if (isBegun) req.once('data', refuse)
          else refuse()
        })
        app.use(errorEnvelope({ logger: recordingLogger() }))
      })
      t.after(() => app.close())
      const client = rawClient(
        app.port,
        `POST / HTTP/1.1\r\nHost: x\r\n${expect}Content-Length: ${SIZE}\r\n\r\n`,
      )
      client.socket.write(Buffer.alloc(SIZE))
      await client.until(code)
      await client.end()
      const read = reading?.bytesRead ?? 0
      assert.ok(isAll ? read > SIZE : read < SIZE / 2, `${read} bytes`)
    })
