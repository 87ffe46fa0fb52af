import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import express from 'express'
import fc from 'fast-check'
import request from 'supertest'
import { type AttemptRecord, callOf } from '../../../lib/core/call/index.ts'
import { loadConfig } from '../../../lib/core/config/index.ts'
import { beginCall } from '../../../lib/middleware/begin-call/index.ts'
import { type CallLogEntry, callLog } from '../../../lib/middleware/call-log/index.ts'
import { errorEnvelope } from '../../../lib/middleware/error-envelope/index.ts'
import { readRequest } from '../../../lib/middleware/read-request/index.ts'
import { route } from '../../../lib/middleware/route/index.ts'
import { labelRows } from '../../../lib/stores/sql/calls/call-labels.ts'

const LINES = 300
const MAX_ENTRY_BYTES = 16 * 1024

const { catalog } = loadConfig(
  {
    models: [{ id: 'm', kind: 'chat' }],
    lines: Array.from({ length: LINES }, (_, i) => ({
      id: `line-${i}`,
      provider: 'p',
      protocol: 'openai',
      baseUrl: 'http://127.0.0.1:9/v1',
      region: 'here',
      models: { m: 'm' },
    })),
  },
  {},
)

/** More attempts than any config may ask for. */
const MANY = 10_000

const attempt = (i: number): AttemptRecord => ({
  line: `line-${i}`,
  protocol: 'openai',
  provider: 'p',
  startedAt: 0,
  upstreamModel: 'm',
  upstreamStatus: 500,
  outcome: 'upstream_error',
  timeoutPhase: null,
  detail: '"'.repeat(200),
  connectMs: 1,
  firstByteMs: 1,
  durationMs: 1,
  skipped: 0,
})

const entries: CallLogEntry[] = []
const app = express()
app.use(beginCall(), callLog({ writer: { add: (entry) => void entries.push(entry) } }))
app.post('/v1/chat/completions', readRequest({ catalog }), route({ catalog }))
app.get('/many', (req, _res, next) => {
  const call = callOf(req)
  call.routing = {
    region: 'here',
    strategy: 'priority',
    eliminated: [{ line: 'line-x', reason: 'region', detail: '' }],
    attempts: Array.from({ length: MANY }, (_, i) => attempt(i)),
  }
  next(call.refuse('all_candidates_failed'))
})
app.use(errorEnvelope())

async function entryOfCall(provider: unknown, headers: Record<string, string> = {}, path = '') {
  const messages = [{ role: 'user', content: 'hi' }]
  const answer = await request(app)
    .post(`/v1/chat/completions${path}`)
    .set(headers)
    .send({ model: 'm', messages, provider })
  return { answer, entry: entries.find(({ id }) => id === answer.headers['x-request-id']) as CallLogEntry }
}

/** Names that take one to four bytes a character, and those that JSON escapes. */
const name = fc.oneof(
  fc.string({ unit: fc.constantFrom('a', '"', '\\', 'é', '語', '😀'), minLength: 1, maxLength: 200 }),
  fc.constantFrom('x'.repeat(200), '"'.repeat(200), '😀'.repeat(100)),
)
const names = fc.array(name, { minLength: 1, maxLength: 100 })
const constraint = fc.oneof(
  names.map((only) => ({ only })),
  names.map((region) => ({ region })),
  fc.tuple(names, names).map(([order, ignore]) => ({ order, ignore, allow_fallbacks: false })),
)

describe('the log entry of a refused call', () => {
  it('takes at most 16 KiB, whatever the caller sends', { timeout: 60_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(constraint, async (provider) => {
        const { answer, entry } = await entryOfCall(provider, { 'x-request-id': 'x'.repeat(2000) })
        assert.ok(answer.status === 503 || answer.status === 400, `${answer.status}`)
        const bytes = Buffer.byteLength(JSON.stringify(entry))
        assert.ok(bytes <= MAX_ENTRY_BYTES, `${bytes} bytes`)
      }),
      { numRuns: 50 },
    )
  })

  it('takes no more with the labels of all the tags that a caller may send', async () => {
    const tags = Array.from({ length: 16 }, (_, i) => `${i}${'n'.repeat(62)}=${'"'.repeat(64)}`).join(',')
    const headers = { 'x-gateway-tags': tags, 'x-request-id': '"'.repeat(200) }
    for (const provider of [undefined, { only: ['nobody'] }, { only: Array(20).fill('"'.repeat(90)) }]) {
      const { answer, entry } = await entryOfCall(provider, headers)
      assert.equal(Object.keys(entry.tags ?? {}).length, 16)
      const labels = labelRows(entry).reduce((sum, row) => sum + row.join('').length, 0)
      const bytes = Buffer.byteLength(JSON.stringify(entry)) + labels
      assert.ok(bytes <= MAX_ENTRY_BYTES, `${answer.status}: ${bytes} bytes`)
    }
  })

  it('contains the first of many eliminated lines, and how many more there are', async () => {
    const { answer, entry } = await entryOfCall({ only: ['nobody'.repeat(30)] })
    assert.equal(answer.body.error.code, 'no_candidate')
    const { eliminated = [], eliminated_omitted: omitted = 0 } = entry.routing ?? {}
    assert.ok(eliminated.length > 10)
    assert.equal(eliminated.length + omitted, LINES)
    assert.equal(eliminated[0]?.line, 'line-0')
    assert.ok(eliminated.every(({ detail }) => detail.length <= 200))
  })

  it('contains the first of very many attempts, and how many more there are, beside the eliminated lines', async () => {
    const { headers } = await request(app).get('/many')
    const entry = entries.find(({ id }) => id === headers['x-request-id']) as CallLogEntry
    const { attempts = [], attempts_omitted: omitted = 0, eliminated } = entry.routing ?? {}
    assert.ok(attempts.length >= 5)
    assert.equal(attempts.length + omitted, MANY)
    assert.deepEqual([attempts[0]?.line, attempts.at(-1)?.line], ['line-0', `line-${attempts.length - 1}`])
    assert.equal(eliminated?.length, 1, 'they leave room for eliminated lines')
    const bytes = Buffer.byteLength(JSON.stringify(entry))
    assert.ok(bytes <= MAX_ENTRY_BYTES, `${bytes} bytes`)
  })

  it('leaves nothing out where there is room', async () => {
    const { entry } = await entryOfCall({ only: ['line-0'], ignore: ['line-0'] })
    const last = entry.routing?.eliminated[0]
    assert.equal(last?.detail, 'ignore: ["line-0"]')
  })

  it('keeps no more than 500 characters of a path', async () => {
    const { entry } = await entryOfCall(undefined, {}, `/${'x'.repeat(5000)}`)
    assert.equal(entry.path.length, 500)
  })
})

describe('a provider constraint of more than 4096 bytes', () => {
  const of = (bytes: number) => {
    const empty = Buffer.byteLength(JSON.stringify({ only: Array.from({ length: 30 }, () => 'n') }))
    const rest = bytes - empty
    const only = Array.from({ length: 30 }, (_, i) => `n${'x'.repeat(Math.floor((rest + i) / 30))}`)
    return { only }
  }

  it('is refused, and not kept', async () => {
    const fits = of(4096)
    assert.equal(Buffer.byteLength(JSON.stringify(fits)), 4096)
    const kept = await entryOfCall(fits)
    assert.equal(kept.answer.body.error.code, 'no_candidate')
    assert.deepEqual(kept.entry.request?.provider, fits)
    const { answer, entry } = await entryOfCall(of(4097))
    assert.equal(answer.status, 400)
    assert.equal(answer.body.error.param, 'provider')
    assert.match(answer.body.error.message, /longer than 4096 bytes/)
    assert.equal(entry.request, null)
    assert.equal(entry.routing, null)
  })
})
