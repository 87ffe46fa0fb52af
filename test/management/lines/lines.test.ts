import assert from 'node:assert/strict'
import { afterEach, before, beforeEach, describe, it } from 'node:test'
import type { ChangeLog } from '../../../lib/core/change-log/index.ts'
import { MemoryLedger } from '../../../lib/ledger/index.ts'
import { adminRoutes } from '../../../lib/management/index.ts'
import { errorEnvelope, unknownPath } from '../../../lib/middleware/error-envelope/index.ts'
import { LineRegistry, LineSwitches } from '../../../lib/middleware/route/index.ts'
import {
  openDatabase,
  SqlAccountStore,
  SqlChangeLog,
  SqlLineSwitchStore,
} from '../../../lib/stores/sql/index.ts'
import { envelopeOf, jsonOf } from '../../support/answer-bodies.ts'
import { type AppServer, serveApp } from '../../support/app-server.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { chatBody, startGateway, type TestGateway } from '../../support/gateway.ts'
import { chatAnswer, type ScriptedUpstream, startUpstream } from '../../support/scripted-upstream.ts'

interface Line {
  readonly id: string
  readonly [member: string]: unknown
}

let upstream: ScriptedUpstream
const cleanUp = cleaningUp()
before(async () => {
  upstream = await startUpstream()
  cleanUp.after(() => upstream.close())
})

let gateway: TestGateway
let admin: AppServer
let switches: LineSwitches
let changes: ChangeLog
const cleanUpEach = cleaningUp(afterEach)
beforeEach(async () => {
  const lines = new LineRegistry()
  gateway = await startGateway({
    lines: [{ url: upstream.url }, { url: upstream.url, enabled: false, id: 'spare' }],
    route: { lines },
  })
  cleanUpEach.after(() => gateway.close())
  const db = await openDatabase('sqlite::memory:')
  cleanUpEach.after(() => db.destroy())
  changes = new SqlChangeLog(db)
  const store = new SqlLineSwitchStore(db)
  switches = new LineSwitches({ store, lines })
  cleanUpEach.after(() => switches.close())
  const { catalog } = gateway.config
  const list = () => catalog.lines.map((line) => lines.figures(line))
  const ledger = new MemoryLedger()
  admin = await serveApp((app) => {
    const parts = { accounts: new SqlAccountStore(db), ledger, changes }
    const refresh = () => switches.refresh()
    app.use('/admin', adminRoutes({ ...parts, lines: { list, store, refresh } }))
    app.use(unknownPath(), errorEnvelope())
  })
  cleanUpEach.after(() => admin.close())
})

/** Oldest first. */
const changesMade = async () => (await changes.list({ limit: 99 })).toReversed()

async function lineAt(path: string): Promise<Line> {
  return jsonOf<Line>(await fetch(`${admin.url}/admin/lines${path}`))
}

const patch = (id: string, body: unknown) =>
  fetch(`${admin.url}/admin/lines/${id}`, {
    method: 'PATCH',
    headers: { 'content-type': 'application/json', 'x-admin-actor': 'Ada' },
    body: JSON.stringify(body),
  })

async function call(): Promise<number> {
  const answer = await gateway.post('/v1/chat/completions', chatBody())
  await answer.arrayBuffer()
  return answer.status
}

describe('lines over the admin API', () => {
  it('are listed with circuit, speed, load and errors, without addresses and secrets', async () => {
    assert.equal(await call(), 200)
    upstream.script = (res) => void res.writeHead(400).end('{"error":{"message":"no"}}')
    assert.equal(await call(), 400)
    upstream.script = (res) => void res.writeHead(500).end('{}')
    assert.equal(await call(), 502)
    const response = await fetch(`${admin.url}/admin/lines`)
    assert.equal(response.headers.get('cache-control'), 'private, no-store')
    const text = await response.text()
    const { data, next_cursor } = JSON.parse(text) as { data: Line[]; next_cursor: null }
    assert.equal(next_cursor, null)
    const { first_byte_ms, ...line } = data[0] as Line
    assert.ok(typeof first_byte_ms === 'number' && first_byte_ms > 0)
    assert.deepEqual(line, {
      id: 'line-0',
      object: 'line',
      provider: 'provider-0',
      protocol: 'openai',
      region: null,
      enabled: true,
      switched: null,
      priority: 0,
      weight: 1,
      availability: 'up',
      circuit: 'closed',
      retry_after_ms: null,
      rest_ms: 0,
      in_flight: 0,
      tokens_per_second: line.tokens_per_second,
      recent_attempts: 3,
      recent_failures: 1,
      error_share: 0.333,
      rests: [],
      circuits: [],
    })
    assert.deepEqual(
      [data[1]?.id, data[1]?.enabled, data[1]?.error_share, data[1]?.first_byte_ms],
      ['spare', false, null, null],
    )
    for (const secret of [upstream.url, 'upstream-key', '127.0.0.1'])
      assert.ok(!text.includes(secret), secret)
  })

  it('switched off get no calls, switched on they get them, and null is as configured', async () => {
    upstream.script = (res) => void res.writeHead(500).end('{}')
    const off = await patch('line-0', { enabled: false })
    assert.equal(off.status, 200)
    const line = await jsonOf<Line>(off)
    assert.deepEqual([line.enabled, line.switched], [false, false])
    const asked = upstream.requests.length
    assert.equal(await call(), 503, 'no_candidate')
    assert.equal(upstream.requests.length, asked)

    await patch('spare', { enabled: true })
    assert.equal(await call(), 502)
    assert.equal(upstream.requests.length, asked + 1)

    await patch('line-0', { enabled: null })
    await patch('spare', { enabled: null })
    assert.deepEqual((await lineAt('/line-0')).enabled, true)
    assert.deepEqual((await lineAt('/spare')).enabled, false)
    assert.deepEqual(
      (await changesMade()).map(({ action, actor, subject, before, after }) => [
        action,
        actor,
        subject,
        before,
        after,
      ]),
      [
        ['line.switched', 'Ada', 'line-0', { enabled: null }, { enabled: false }],
        ['line.switched', 'Ada', 'spare', { enabled: null }, { enabled: true }],
        ['line.switched', 'Ada', 'line-0', { enabled: false }, { enabled: null }],
        ['line.switched', 'Ada', 'spare', { enabled: true }, { enabled: null }],
      ],
    )
  })

  it('are called again once their rests are lifted, which is recorded with what rested', async () => {
    upstream.script = (res) => void res.writeHead(429, { 'retry-after': '30' }).end('{}')
    assert.equal(await call(), 429)
    upstream.script = (res) => chatAnswer(res)
    const asked = upstream.requests.length
    assert.equal(await call(), 429, 'it rests')
    assert.equal(upstream.requests.length, asked)
    assert.deepEqual((await jsonOf<Line>(await patch('spare', { rests: [] }))).rests, [])
    assert.equal(await call(), 429, 'another line’s')

    const lifted = await patch('line-0', { rests: [] })
    assert.equal(lifted.status, 200)
    const line = await jsonOf<Line>(lifted)
    assert.deepEqual([line.rests, line.rest_ms, line.enabled, line.switched], [[], 0, true, null])
    assert.equal(await call(), 200)
    const [other, own, ...more] = await changesMade()
    assert.deepEqual(more, [])
    assert.deepEqual([other?.subject, other?.before], ['spare', { rests: [] }])
    assert.ok(own)
    const { rests } = own.before as { rests: { model: string; rest_ms: number }[] }
    assert.deepEqual(
      [own.action, own.actor, own.subject, own.after, rests.map(({ model }) => model)],
      ['line.rests_lifted', 'Ada', 'line-0', { rests: [] }, ['chat']],
    )
    assert.ok(rests.every(({ rest_ms }) => rest_ms > 25_000 && rest_ms <= 30_000))
  })

  for (const [body, param] of [
    [{}, 'enabled'],
    [{ enabled: 'no' }, 'enabled'],
    [{ enabled: 0 }, 'enabled'],
    [{ enabled: true, rests: [] }, 'enabled'],
    [{ rests: ['chat'] }, 'rests'],
    [{ rests: null }, 'rests'],
    [{ enabled: true, weight: 2 }, 'weight'],
  ] as const) {
    it(`take nothing else: ${JSON.stringify(body)}`, async () => {
      const answer = await patch('line-0', body)
      assert.equal(answer.status, 400)
      const { error } = await envelopeOf(answer)
      assert.deepEqual([error.code, error.param], ['invalid_request', param])
      assert.deepEqual(await changesMade(), [])
    })
  }

  it('that are not in the catalogue are not there', async () => {
    for (const answer of [
      await patch('nothing', { enabled: true }),
      await fetch(`${admin.url}/admin/lines/x`),
    ]) {
      assert.deepEqual([answer.status, (await envelopeOf(answer)).error.code], [404, 'not_found'])
    }
    assert.deepEqual(await changesMade(), [])
  })
})
