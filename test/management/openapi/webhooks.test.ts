import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { OPERATIONS } from '../../../lib/core/operations/index.ts'
import { openApiDocument } from '../../../lib/management/openapi/index.ts'
import { type WebhookEventType, WebhookSender, WebhookWatch } from '../../../lib/management/webhooks/index.ts'
import { messageSchema, WEBHOOK_EVENTS } from '../../../lib/management/webhooks/webhook-event.ts'
import { newWebhookSecret } from '../../../lib/management/webhooks/webhook-request.ts'
import {
  SqlAccountStore,
  SqlBudgetStore,
  SqlLedger,
  SqlTicketStore,
  SqlWatchSource,
  SqlWebhookOutbox,
  SqlWebhookStore,
  seedAccountsAndKeys,
} from '../../../lib/stores/sql/index.ts'
import { originOf, PREPAID } from '../../contracts/account-money.ts'
import { charge, take } from '../../contracts/ledger-money.ts'
import { BACKENDS } from '../../stores/sql/support/postgres-database.ts'
import { open } from '../../stores/sql/support/temporary-database.ts'
import { until } from '../../support/until.ts'
import { startReceiver } from '../webhooks/receivers.ts'

const logger = { info: () => {}, warn: () => {}, error: () => {} }
const DAY_MS = 86_400_000

describe('the webhooks of the OpenAPI document', () => {
  it('are the events, each with its type and the headers that sign it', () => {
    const { webhooks } = openApiDocument({ version: '1.2.3', operations: OPERATIONS })
    const described = webhooks as Record<string, { post: { requestBody: object; parameters: object[] } }>
    assert.deepEqual(Object.keys(described), [...WEBHOOK_EVENTS])
    for (const [type, { post }] of Object.entries(described)) {
      assert.ok(JSON.stringify(post.requestBody).includes(`"const":"${type}"`), type)
      assert.equal(post.parameters.length, 3)
    }
  })

  for (const { name, url, skip } of BACKENDS) {
    it(`are what is really sent, over ${name}`, { skip }, async (t) => {
      const db = await open(t, await url(t))
      const outbox = new SqlWebhookOutbox(db)
      const secret = newWebhookSecret()
      const receiver = await startReceiver(t, () => secret)
      const webhook = { id: 'wh', url: receiver.url, events: null, description: null, secret }
      await new SqlWebhookStore(db).create(webhook, originOf())
      const sender = new WebhookSender({ outbox, allowPrivate: true, pollMs: 10, logger })
      t.after(() => sender.close())

      const expiresAt = new Date(Date.now() + DAY_MS).toISOString()
      const keys = [{ id: 'k', account: 'poor', secret: 'sk-1', expiresAt }]
      await seedAccountsAndKeys(db, { accounts: [{ id: 'poor', balance: '100' }], keys })
      await db.updateTable('wallets').set({ spent: 95_500_000_000n }).execute()
      const ledger = new SqlLedger(db)
      await ledger.change('p', [take('of-poor', 'account:poor', 1n)])

      await new SqlAccountStore(db).create('acme', PREPAID, originOf())
      const scope = { account: 'acme', key: null, user: null, tag: null }
      const terms = { amount: 100n, hard: true, soft: [0.5], period: 'total', timezone: 'UTC' } as const
      await new SqlBudgetStore(db).create({ id: 'b', scope, createdAt: 1, ...terms }, originOf())
      await ledger.change('p', [take('of-b', 'budget:b:0', 1n)])
      await ledger.settle([charge('acme', 100n, { at: Date.now(), budgets: ['budget:b:0'] })])

      const tickets = new SqlTicketStore(db)
      const now = Date.now()
      const ticket = {
        account: 'acme',
        message: 'm',
        status: 'open',
        reply: null,
        createdAt: now,
        updatedAt: now,
      } as const
      for (const key of ['k', null])
        await tickets.add({ ...ticket, id: `tkt_${key}`, key, requestId: `req_${key}` })

      let down = true
      const lines = () => [{ id: 'a', down }]
      const watch = new WebhookWatch({ outbox, source: new SqlWatchSource(db), lines, pollMs: 5, logger })
      t.after(() => watch.close())
      watch.noteLedger(true)
      watch.noteLedger(false)
      const came = (type: string) => receiver.received.some((message) => message.type === type)
      await until(() => came('line.down'), 'the line that is down')
      down = false
      await until(() => WEBHOOK_EVENTS.every(came) && receiver.received.length === 9, 'all events')
      for (const { body, type } of receiver.received)
        assert.deepEqual(messageSchema(type as WebhookEventType).parse(JSON.parse(body)), JSON.parse(body))
    })
  }
})
