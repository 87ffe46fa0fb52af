import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { it, type TestContext } from 'node:test'
import { newEvent, type WebhookEventType } from '../../../lib/management/webhooks/index.ts'
import { WEBHOOK_EVENTS } from '../../../lib/management/webhooks/webhook-event.ts'
import { SqlWebhookOutbox } from '../../../lib/stores/sql/index.ts'
import { databaseUrl, open } from '../../stores/sql/support/temporary-database.ts'
import { assembledGateway } from '../../support/assembled-gateway.ts'
import { until } from '../../support/until.ts'

const ADMIN_TOKEN = 'admin-of-the-tests'
const CONSOLE = 'https://gateway.example/console'

/** Starts a receiver that takes what an incoming webhook of Slack takes: JSON with a text, and nothing else. */
async function startSlack(t: TestContext) {
  const texts: string[] = []
  const heads: IncomingHttpHeaders[] = []
  const server = createServer(async (req, res) => {
    let body = ''
    for await (const chunk of req.setEncoding('utf8')) body += chunk
    const { text, ...more } = JSON.parse(body) as { text?: unknown }
    if (typeof text !== 'string' || Object.keys(more).length > 0)
      return void res.writeHead(400).end('no_text')
    texts.push(text)
    heads.push(req.headers)
    res.writeHead(200).end('ok')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/services/T0/B0/x`, texts, heads }
}

async function start(t: TestContext, consoleUrl?: string) {
  const database = await databaseUrl(t)
  const line = {
    id: 'a',
    provider: 'p',
    protocol: 'openai',
    baseUrl: 'http://127.0.0.1:9/v1',
    models: { m: 'm' },
  }
  const gateway = await assembledGateway(
    t,
    { models: [{ id: 'm', kind: 'chat' }], lines: [line] },
    {
      databaseUrl: database,
      adminToken: ADMIN_TOKEN,
      webhookAllowPrivate: true,
      ...(consoleUrl && { consoleUrl }),
    },
  )
  const asAdmin = { authorization: `Bearer ${ADMIN_TOKEN}` }
  const create = async (webhook: object) => {
    const response = await gateway.send('/admin/webhooks', webhook, { headers: asAdmin })
    return { status: response.status, body: (await response.json()) as Record<string, unknown> }
  }
  const outbox = new SqlWebhookOutbox(await open(t, database))
  const record = (type: WebhookEventType, subject: string, data: object) =>
    outbox.record([newEvent({ type, subject, at: Date.now(), data })])
  return { gateway, create, record }
}

const budget = { budget: 'b1', share: 0.8, amount: '100.00', spent: '80.42' }
const EVENTS: Readonly<Record<WebhookEventType, readonly [data: object, sentence: string, view: string]>> = {
  'budget.threshold': [budget, '80 % of the budget b1 is spent: 80.42 of 100.00.', '/budgets/b1'],
  'budget.exhausted': [
    { ...budget, share: 1, spent: '100.00' },
    'The budget b1 is used up: 100.00 of 100.00 are spent.',
    '/budgets/b1',
  ],
  'balance.low': [
    { account: 'R&D <x>', balance: '2.10', threshold: '2.50' },
    'The balance of the account R&amp;D &lt;x&gt; is 2.10, which is below 2.50.',
    '/accounts/R%26D%20%3Cx%3E',
  ],
  'key.expiring': [
    { key: 'key_1', account: 'acme', expires_at: '2026-12-06T10:05:00.000Z' },
    'The key key_1 of the account acme ends on 2026-12-06 10:05 UTC.',
    '/keys/key_1',
  ],
  'line.down': [{ line: 'openai' }, 'No call succeeds on the line openai.', '/lines'],
  'line.up': [
    { line: 'openai' },
    'Calls succeed on the line openai again, or nobody uses it any more.',
    '/lines',
  ],
  'ledger.away': [
    { from: '2026-12-06T10:05:00.000Z', until: '2026-12-06T10:09:30.000Z' },
    'The ledger was away from 2026-12-06 10:05 UTC until 2026-12-06 10:09 UTC.',
    '/',
  ],
  'ticket.opened': [
    { ticket: 't_1', account: 'acme', key: 'key_1', request_id: 'req_1' },
    'The account acme opened the ticket t_1 about the call req_1.',
    '/tickets/t_1',
  ],
}

it('a webhook for Slack is sent each event as one sentence with a link to the console, unsigned', async (t) => {
  const slack = await startSlack(t)
  const { create, record } = await start(t, `${CONSOLE}/`)
  const { status, body } = await create({ url: slack.url, format: 'slack' })
  assert.deepEqual([status, body.format], [201, 'slack'])
  const expected: string[] = []
  for (const type of WEBHOOK_EVENTS) {
    const [data, sentence, view] = EVENTS[type]
    await record(type, `${type}:x`, data)
    expected.push(`${sentence} <${CONSOLE}#${view}|Open the console>`)
  }
  await until(() => slack.texts.length === expected.length, 'the messages')
  assert.deepEqual(slack.texts.sort(), expected.sort())
  for (const head of slack.heads) {
    assert.equal(head['content-type'], 'application/json')
    assert.equal(head['webhook-signature'], undefined)
  }
})

it('without the address of the console, the sentence stands alone; a line that really fails is one', async (t) => {
  const slack = await startSlack(t)
  const { gateway, create } = await start(t)
  await create({ url: slack.url, format: 'slack', events: ['line.down'] })
  const body = { model: 'm', messages: [{ role: 'user', content: 'x' }] }
  for (let calls = 0; calls < 6; calls++)
    await (await gateway.send('/v1/chat/completions', body)).arrayBuffer()
  await until(() => slack.texts.length > 0, 'the message')
  assert.deepEqual(slack.texts, ['No call succeeds on the line a.'])
})

it('a webhook has the standard format unless it says so, and no other', async (t) => {
  const { create } = await start(t)
  const url = 'https://hooks.example.com/x'
  assert.equal((await create({ url })).body.format, 'standard')
  const refused = await create({ url, format: 'teams' })
  assert.deepEqual([refused.status, (refused.body.error as { param: string }).param], [400, 'format'])
})
