import assert from 'node:assert/strict'
import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { describe, it } from 'node:test'
import { errorEnvelope } from '../../../lib/middleware/error-envelope/index.ts'
import { readKey, recordId } from '../../../lib/middleware/idempotency/idempotency-key.ts'
import { idempotency, MemoryIdempotencyStore } from '../../../lib/middleware/idempotency/index.ts'
import { recordingLogger, serveApp } from '../../support/app-server.ts'

/** A request that was sent these values of the header. */
function requestOf(...values: string[]): IncomingMessage {
  const req = new IncomingMessage(new Socket())
  req.headersDistinct = { 'idempotency-key': values }
  return req
}

describe('an Idempotency-Key', () => {
  for (const key of ['k', ' ', '~', 'x'.repeat(255), 'a, b', 'a,b', '"quoted"'])
    it(`may be ${JSON.stringify(key.slice(0, 12))} of ${key.length} characters`, () => {
      assert.equal(readKey(requestOf(key), key), key)
    })

  for (const key of ['', 'x'.repeat(256), 'é', 'a\tb', 'a\x7fb', 'a\nb', '\x1f', '€', 'ok\n'])
    it(`may not be ${JSON.stringify(key.slice(0, 12))} of ${key.length} characters`, () => {
      assert.throws(() => readKey(requestOf(key), key), {
        code: 'invalid_request',
        param: 'Idempotency-Key',
        message: /must hold 1 to 255 printable ASCII characters/,
      })
    })

  for (const values of [
    ['a', 'b'],
    ['a', 'a'],
    ['a', 'b', 'c'],
  ])
    it(`may not be sent ${values.length} times: ${values}`, () => {
      assert.throws(() => readKey(requestOf(...values), values.join(', ')), {
        code: 'invalid_request',
        param: 'Idempotency-Key',
        message: /was sent more than once; send one key/,
      })
    })

  it('has a record of its own in each scope, for each method and path', () => {
    const parts = ['acme', 'POST', '/orders', 'k'] as const
    const id = recordId(...parts)
    assert.equal(recordId(...parts), id)
    assert.match(id, /^[\w-]{43}$/)
    const others: [string, string, string, string][] = [
      ['globex', 'POST', '/orders', 'k'],
      ['acme', 'PUT', '/orders', 'k'],
      ['acme', 'POST', '/order', 'k'],
      ['acme', 'POST', '/orders', 'K'],
      // Parts that are the same in a row.
      ['acmeP', 'OST', '/orders', 'k'],
      ['acme', 'POST', '/ordersk', ''],
    ]
    assert.equal(new Set([id, ...others.map((other) => recordId(...other))]).size, 1 + others.length)
  })
})

describe('a store whose answer to a claim is neither a record nor undefined', () => {
  const record = { owner: 'o', fingerprint: 'f', state: 'running', expiresAt: 1 }
  for (const broken of [
    ...[null, false, 0, 'running', [], {}],
    { ...record, owner: undefined },
    { ...record, owner: 7 },
    { ...record, fingerprint: null },
    { ...record, state: 'released' },
    { ...record, state: undefined },
  ])
    it(`refuses the request and runs nothing: ${JSON.stringify(broken)}`, async (t) => {
      const store = new MemoryIdempotencyStore()
      t.mock.method(store, 'claim', async () => broken)
      let ran = 0
      const app = await serveApp((app) => {
        app.post(
          '/',
          idempotency({ store, logger: recordingLogger() }),
          (_req, res) => void res.end(`${++ran}`),
        )
        app.use(errorEnvelope({ logger: recordingLogger() }))
      })
      t.after(app.close)
      const res = await fetch(app.url, { method: 'POST', headers: { 'idempotency-key': 'k' } })
      assert.deepEqual([res.status, ran], [500, 0])
    })
})
