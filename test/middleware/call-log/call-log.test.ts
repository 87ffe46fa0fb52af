import assert from 'node:assert/strict'
import { beforeEach, describe, it } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import express, { type Express } from 'express'
import request from 'supertest'
import { callOf } from '../../../lib/core/call/index.ts'
import { callLogRoutes } from '../../../lib/endpoints/calls/index.ts'
import { authenticate, memoryKeyDirectory } from '../../../lib/middleware/authenticate/index.ts'
import { beginCall } from '../../../lib/middleware/begin-call/index.ts'
import {
  type CallLogEntry,
  type CallLogOptions,
  CallLogWriter,
  callLog,
  MemoryCallStore,
} from '../../../lib/middleware/call-log/index.ts'
import { errorEnvelope, unknownPath } from '../../../lib/middleware/error-envelope/index.ts'
import { recordingLogger } from './recording-store.ts'

const keys = memoryKeyDirectory({
  accounts: [{ id: 'acme' }, { id: 'globex' }],
  keys: [
    { id: 'k1', account: 'acme', secret: 'sk-acme' },
    { id: 'k2', account: 'globex', secret: 'sk-globex' },
  ],
})

let store: MemoryCallStore
let writer: CallLogWriter
let app: Express

beforeEach(() => {
  store = new MemoryCallStore()
  writer = new CallLogWriter({ store })
  app = express()
  app.use(beginCall({ logger: recordingLogger() }), callLog({ writer }))
  app.use('/v1', authenticate({ keys }), callLogRoutes({ store }))
  app.post('/v1/echo', (req, res) => {
    callOf(req).onEnd('late', () => {
      callOf(req).usage = {
        inputTokens: 1,
        cachedInputTokens: 0,
        cacheWriteTokens: 0,
        outputTokens: 2,
        source: 'measured',
      }
    })
    res.json({ said: 'secret prompt' })
  })
  app.post('/v1/broken', () => {
    throw new Error('unforeseen')
  })
  app.use(unknownPath(), errorEnvelope())
})

function call(path: string, key = 'sk-acme') {
  return request(app).post(path).set('authorization', `Bearer ${key}`).send({ prompt: 'secret prompt' })
}

async function look(id: string, key = 'sk-acme') {
  return request(app).get(`/v1/calls/${id}`).set('authorization', `Bearer ${key}`)
}

/** The entry of a call: it ends a moment after its caller has the whole answer. */
async function entryOf(id: string | undefined): Promise<CallLogEntry> {
  const deadline = Date.now() + 1000
  for (;;) {
    await writer.flush()
    const entry = await store.find(id ?? '')
    if (entry) return entry
    assert.ok(Date.now() < deadline, 'an entry is visible within a second')
    await turn()
  }
}

describe('the call log', () => {
  it('has the call of an answer under its X-Request-Id, with what was given back at its end', async () => {
    const answer = await call('/v1/echo?token=secret').set('x-request-id', 'mine').expect(200)
    await entryOf(answer.headers['x-request-id'])
    const { body, headers } = await look(answer.headers['x-request-id']!)
    assert.equal(body.id, answer.headers['x-request-id'])
    assert.equal(headers['cache-control'], 'private, no-store')
    assert.deepEqual(
      [body.object, body.account, body.key, body.client_request_id, body.method, body.path, body.status],
      ['call', 'acme', 'k1', 'mine', 'POST', '/v1/echo', 200],
    )
    assert.deepEqual([body.outcome, body.error_code], ['completed', null])
    assert.deepEqual(body.usage.output_tokens, 2)
    assert.doesNotMatch(JSON.stringify(body), /secret/)
  })

  it('has refused and broken calls too, once each', async () => {
    const broken = await call('/v1/broken').expect(500)
    const missing = await call('/v1/nowhere').expect(404)
    const stranger = await call('/v1/echo', 'sk-none').expect(401)
    for (const [{ headers }, ...expected] of [
      [broken, 'internal_error', 500, 'acme'],
      [missing, 'not_found', 404, 'acme'],
      [stranger, 'invalid_credential', 401, null],
    ] as const) {
      const entry = await entryOf(headers['x-request-id'])
      assert.deepEqual([entry.error_code, entry.status, entry.account], expected)
    }
    assert.equal((await store.list({ limit: 10 })).entries.length, 3)
  })

  it('shows a call to no other account, and to no caller without a key', async () => {
    const { id } = await entryOf((await call('/v1/echo')).headers['x-request-id'])
    // In front of the look-up, whose path is in an entry of the other account's own.
    const list = await request(app).get('/v1/calls').set('x-api-key', 'sk-globex')
    assert.ok(!list.text.includes(id))
    const other = await look(id, 'sk-globex')
    assert.deepEqual([other.status, other.body.error.code], [404, 'not_found'])
    const none = await request(app).get(`/v1/calls/${id}`)
    assert.deepEqual([none.status, none.body.error.code], [401, 'missing_credential'])
  })

  it('does not look up what cannot be a request id', async (t) => {
    const find = t.mock.method(store, 'find')
    for (const id of ['req_1', 'REQ_00000000000000000000000000', "req_' or 1=1", '%00', 'x'.repeat(3000)]) {
      const answer = await look(encodeURIComponent(id))
      assert.deepEqual([answer.status, answer.body.error.code], [404, 'not_found'], id)
    }
    assert.equal(find.mock.callCount(), 0)
  })

  it('is refused without a principal where no middleware authenticates, whatever the store contains', async (t) => {
    const list = t.mock.method(store, 'list')
    const bare = express().use(callLogRoutes({ store }), errorEnvelope())
    await request(bare).get('/calls').expect(401)
    assert.equal(list.mock.callCount(), 0)
  })

  it('shows all accounts to an operator who asks for it in the options', async () => {
    const own = await entryOf((await call('/v1/echo')).headers['x-request-id'])
    const strange = await entryOf((await call('/v1/echo', 'sk-none')).headers['x-request-id'])
    const operator = express().use(callLogRoutes({ store, account: 'all' }), errorEnvelope())
    const { body } = await request(operator).get('/calls').expect(200)
    assert.deepEqual(
      body.data,
      [strange, own].sort((a, b) => (a.id < b.id ? 1 : -1)),
    )
    await request(operator).get(`/calls/${strange.id}`).expect(200)
  })

  it('refuses to be built without a writer or a store', () => {
    assert.throws(() => callLog({} as CallLogOptions), /"writer"/)
    assert.throws(() => callLogRoutes({} as never), /"store"/)
  })
})
