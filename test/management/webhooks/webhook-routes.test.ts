import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { newEvent } from '../../../lib/management/webhooks/index.ts'
import { WEBHOOK_EVENTS } from '../../../lib/management/webhooks/webhook-event.ts'
import { SqlWebhookOutbox } from '../../../lib/stores/sql/index.ts'
import { databaseUrl, open } from '../../stores/sql/support/temporary-database.ts'
import { jsonOf } from '../../support/answer-bodies.ts'
import { createGateway } from '../../support/any-config.ts'
import { endGateway } from '../../support/assembled-gateway.ts'
import { until, untilAsync } from '../../support/until.ts'
import { startReceiver } from './receivers.ts'

/** A row of a list: a delivery, or a change. */
interface Row {
  readonly event: string
  readonly state: string
  readonly attempts: number
  readonly response_status: number | null
  readonly next_attempt_at: string | null
  readonly delivered_at: string | null
  readonly error: string | null
  readonly action: string
}

/** The members of answers that the tests read. */
interface Answer {
  readonly id: string
  readonly secret: string
  readonly data: readonly Row[]
  readonly error: { readonly code: string; readonly param: string; readonly message: string }
  readonly [member: string]: unknown
}

const adminToken = 'admin-token-1'
const quiet = { info: () => {}, warn: () => {}, error: () => {} }
const CONFIG = {
  accounts: [
    { id: 'acme', balance: '25.00' },
    { id: 'globex', balance: '25.00' },
  ],
  keys: [
    { id: 'acme', account: 'acme', secret: 'sk-acme' },
    { id: 'globex', account: 'globex', secret: 'sk-globex' },
  ],
  models: [{ id: 'm', kind: 'chat' }],
  lines: [
    { id: 'a', provider: 'p', protocol: 'openai', baseUrl: 'http://127.0.0.1:9/v1', models: { m: 'm' } },
    { id: 'b', provider: 'p', protocol: 'openai', baseUrl: 'http://127.0.0.1:9/v1', models: { m: 'm' } },
  ],
}

async function start(t: TestContext, databaseUrl: string, webhookAllowPrivate = true) {
  const options = { databaseUrl, adminToken, webhookAllowPrivate, logger: quiet, env: {} }
  const gateway = await createGateway(CONFIG, options)
  const server = gateway.listen(0, '127.0.0.1')
  t.after(() => endGateway(gateway, server))
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const ask = async (method: string, path: string, body?: unknown, token = adminToken) => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const sent = body === undefined ? {} : { body: JSON.stringify(body) }
    const response = await fetch(`${url}${path}`, { method, headers, ...sent })
    return {
      status: response.status,
      requestId: response.headers.get('x-request-id'),
      body: await jsonOf<Answer>(response),
    }
  }
  return { ask }
}

/** The contracts of the stores cover each engine. */
for (const { name, url } of [
  { name: 'memory', url: async () => 'memory:' },
  { name: 'SQLite', url: databaseUrl },
]) {
  describe(`webhooks of the gateway on ${name}`, () => {
    it('are created, listed, notified and deleted; the secret is shown once', async (t) => {
      const { ask } = await start(t, await url(t))
      let secret = ''
      const receiver = await startReceiver(t, () => secret)
      const made = await ask('POST', '/admin/webhooks', { url: receiver.url, events: ['ticket.opened'] })
      assert.equal(made.status, 201)
      ;({ secret } = made.body)
      assert.match(secret, /^whsec_[\w+/]{43}=$/)
      const { secret: _, ...shown } = made.body
      assert.deepEqual((await ask('GET', '/admin/webhooks')).body.data, [shown])

      const call = await ask(
        'POST',
        '/v1/chat/completions',
        { model: 'm', messages: [{ role: 'user', content: 'x' }] },
        'sk-acme',
      )
      const request_id = call.requestId
      await untilAsync(
        async () => (await ask('GET', `/v1/calls/${request_id}`, undefined, 'sk-acme')).status === 200,
      )
      const ticket = await ask('POST', '/v1/tickets', { request_id, message: 'my secret words' }, 'sk-acme')
      assert.equal(ticket.status, 201)
      await until(() => receiver.received.length === 1, 'the event')
      const [{ type, data, id, body } = assert.fail()] = receiver.received
      assert.deepEqual(
        [type, data],
        ['ticket.opened', { ticket: ticket.body.id, account: 'acme', key: 'acme', request_id }],
      )
      assert.ok(!body.includes('secret words'))

      const path = `/admin/webhooks/${made.body.id}`
      await untilAsync(
        async () => (await ask('GET', `${path}/deliveries`)).body.data[0]?.state === 'delivered',
      )
      const [{ event, attempts, response_status }] = (await ask('GET', `${path}/deliveries`)).body.data as [
        Row,
      ]
      assert.deepEqual([event, attempts, response_status], [id, 1, 204])
      const rotated = await ask('POST', `${path}/rotate`, { overlap_seconds: 60 })
      assert.notEqual(rotated.body.secret, secret)
      assert.deepEqual((await ask('DELETE', path)).body, {
        id: made.body.id,
        object: 'webhook',
        deleted: true,
      })
      for (const [method, of] of [
        ['DELETE', ''],
        ['POST', '/rotate'],
        ['GET', '/deliveries'],
      ] as const)
        assert.equal((await ask(method, path + of)).status, 404)
      const changes = (await ask('GET', `/admin/changes?subject=${made.body.id}`)).body.data
      assert.deepEqual(
        changes.map(({ action }: { action: string }) => action),
        ['webhook.deleted', 'webhook.rotated', 'webhook.created'],
      )
      assert.ok(!JSON.stringify(changes).includes('whsec_'))
      assert.equal((await ask('GET', '/admin/webhooks', undefined, 'sk-acme')).status, 401)
    })

    it('are notified once of a line that is down', async (t) => {
      const { ask } = await start(t, await url(t))
      let secret = ''
      const receiver = await startReceiver(t, () => secret)
      ;({ secret } = (await ask('POST', '/admin/webhooks', { url: receiver.url })).body)
      const body = { model: 'm', messages: [{ role: 'user', content: 'x' }] }
      for (let calls = 0; calls < 12; calls++)
        await ask('POST', '/v1/chat/completions', body, calls % 2 ? 'sk-acme' : 'sk-globex')
      await until(() => receiver.received.length === 2, 'the events')
      assert.deepEqual(receiver.received.map(({ type, data }) => [type, data.line]).sort(), [
        ['line.down', 'a'],
        ['line.down', 'b'],
      ])
    })
  })
}

it('an event that could not be delivered for a day is shown as given up', async (t) => {
  const database = await databaseUrl(t)
  const { ask } = await start(t, database)
  const receiver = await startReceiver(t, () => '')
  receiver.answer = (_, res) => void res.writeHead(503).end()
  const { id } = (await ask('POST', '/admin/webhooks', { url: receiver.url })).body
  const db = await open(t, database)
  const at = Date.now() - 25 * 3_600_000
  const data = { line: 'a' }
  await new SqlWebhookOutbox(db).record([newEvent({ type: 'line.down', subject: 'line:a', at, data })])
  const shown = async () => (await ask('GET', `/admin/webhooks/${id}/deliveries`)).body.data[0] as Row
  await untilAsync(async () => (await shown())?.state === 'given_up')
  const { response_status, error, next_attempt_at, delivered_at } = await shown()
  assert.deepEqual([response_status, error, next_attempt_at, delivered_at], [503, 'answered 503', null, null])
})

describe('a webhook is refused', () => {
  const URLS = [
    'http://example.com/',
    'https://10.0.0.1/',
    'https://localhost/',
    'https://[::ffff:7f00:1]/',
    'https://u:p@example.com/',
    'ftp://example.com/',
    'hooks',
    `https://example.com/${'x'.repeat(2000)}`,
  ]
  it('with events that cannot be sent, and nothing is stored', async (t) => {
    const { ask } = await start(t, 'memory:', false)
    for (const at of URLS) {
      const { status, body } = await ask('POST', '/admin/webhooks', { url: at })
      assert.deepEqual([status, body.error.code, body.error.param], [400, 'invalid_request', 'url'], at)
    }
    const https = { url: 'https://example.com/' }
    const bad = {
      events: { events: ['line.sideways'] },
      description: { description: '' },
      secret: { secret: 'whsec_x' },
    }
    for (const [param, member] of Object.entries(bad)) {
      const { status, body } = await ask('POST', '/admin/webhooks', { ...https, ...member })
      assert.equal(status, 400)
      assert.match(body.error.param, new RegExp(`^${param}`))
    }
    assert.deepEqual((await ask('GET', '/admin/webhooks')).body.data, [])
    assert.equal((await ask('POST', '/admin/webhooks', { ...https, events: WEBHOOK_EVENTS })).status, 201)
  })
})
