import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { openDatabase, SqlRetention } from '../../lib/stores/sql/index.ts'
import { notPortable } from '../stores/sql/support/portable-sql.ts'
import { emptyPostgresUrl } from '../stores/sql/support/postgres-database.ts'
import { type Sent, statementWire } from '../stores/sql/support/statement-wire.ts'
import { PATIENT } from '../stores/sql/support/temporary-database.ts'
import { recordingLogger } from '../support/app-server.ts'
import { assembledGateway } from '../support/assembled-gateway.ts'
import { cleaningUp } from '../support/clean-up.ts'
import { WITHOUT_POSTGRES } from '../support/postgres-server.ts'
import { chatAnswer, startUpstream } from '../support/scripted-upstream.ts'

const ADMIN = { authorization: 'Bearer admin-of-the-tests' }

describe('the SQL that a gateway sends to Postgres', { skip: WITHOUT_POSTGRES }, () => {
  const cleanUp = cleaningUp()

  it('has nothing that distributed databases lack, from the first start on', async () => {
    const upstream = await startUpstream((res) => chatAnswer(res))
    cleanUp.after(() => upstream.close())
    const sent: Sent = new Map()
    const databaseUrl = await statementWire(cleanUp, await emptyPostgresUrl(), sent)
    const { send } = await assembledGateway(
      cleanUp,
      {
        accounts: [{ id: 'acme', balance: '1' }],
        models: [{ id: 'chat', kind: 'chat', price: { perRequest: '0.01' } }],
        lines: [
          {
            ...{ id: 'line', provider: 'p', protocol: 'openai', baseUrl: `${upstream.url}/v1` },
            ...{ apiKey: 'k', models: { chat: 'up' } },
          },
        ],
      },
      { databaseUrl, adminToken: 'admin-of-the-tests', webhookAllowPrivate: true },
    )
    const admin = async (path: string, body: object, method = 'POST') => {
      const res = await send(`/admin${path}`, body, { method, headers: ADMIN })
      const text = await res.text()
      assert.ok(res.ok, `${path}: ${res.status} ${text}`)
      return JSON.parse(text || '{}') as { id: string }
    }
    await admin('/accounts/acme/deposits', { amount: '10', reference: 'first' })
    await admin('/accounts/acme/adjustments', { amount: '-1', reference: 'second', reason: 'a trial' })
    await admin('/budgets', { scope: { account: 'acme' }, amount: '5', period: 'day', soft: [0.001] })
    await admin('/webhooks', { url: 'http://127.0.0.1:9/', events: null })
    await admin('/operators', { name: 'ada', role: 'viewer' })
    await admin('/accounts', { id: 'globex' })
    const key = await admin('/keys', { account: 'globex', limits: { rpm: 5 } })
    await admin(`/keys/${key.id}/rotate`, { overlap_seconds: 60 })
    await admin('/lines/line', { enabled: true }, 'PATCH')

    const chat = { model: 'chat', messages: [{ role: 'user', content: 'hi' }], user: 'u' }
    const headers = { 'idempotency-key': 'once', 'x-gateway-tags': 'team=a' }
    const statuses: number[] = []
    for (let n = 0; n < 2; n++) {
      const res = await send('/v1/chat/completions', chat, { headers })
      await res.arrayBuffer()
      statuses.push(res.status)
    }
    assert.deepEqual(statuses, [200, 409])
    const { paths } = (await (await send('/openapi.json')).json()) as { paths: Record<string, object> }
    for (const [path, operations] of Object.entries(paths)) {
      if (!('get' in operations)) continue
      const query = path.endsWith('/usage') ? '?from=2026-01-01&to=2026-02-01&group_by=day,tag:team' : ''
      const res = await send(path.replaceAll(/\{[^}]+\}/g, 'acme') + query, undefined, {
        ...(path.startsWith('/admin') && { headers: ADMIN }),
      })
      await res.body?.cancel()
      assert.ok(res.status < 500, `${path}: ${res.status}`)
    }
    const db = await openDatabase(databaseUrl, PATIENT)
    cleanUp.after(() => db.destroy())
    const retention = new SqlRetention(db, { calls: 1, charges: 31 * 86_400_000, logger: recordingLogger() })
    cleanUp.after(() => retention.close())
    await retention.run()

    assert.ok([...sent.keys()].some((text) => text.includes('create table calls')))
    // All tables are created in one round trip.
    const statements = new Set([...sent.keys()].flatMap((text) => text.split(';\n')))
    assert.ok(statements.size > 200, `${statements.size} statements`)
    assert.deepEqual(notPortable(sent.keys()), [])
  })

  it('is found to have it where tables are divided by time', async () => {
    const sent: Sent = new Map()
    const url = await statementWire(cleanUp, await emptyPostgresUrl(), sent)
    await (await openDatabase(url, { ...PATIENT, partitions: true })).destroy()
    const lacking = new Set(notPortable(sent.keys()).map(([what]) => what))
    assert.deepEqual(
      lacking,
      new Set(['inheritance and partitions', 'storage parameters', 'copies of tables']),
    )
  })
})
