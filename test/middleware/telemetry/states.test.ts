import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { newEvent } from '../../../lib/management/webhooks/index.ts'
import { newWebhookSecret } from '../../../lib/management/webhooks/webhook-request.ts'
import { MemoryCallStore } from '../../../lib/middleware/call-log/index.ts'
import { originOf } from '../../contracts/account-money.ts'
import { startReceiver } from '../../management/webhooks/receivers.ts'
import { chatBody } from '../../support/gateway.ts'
import { answerJson, chatAnswer, startUpstream } from '../../support/scripted-upstream.ts'
import { FaultyStore } from '../idempotency/faulty-store.ts'
import { KEY, startObserved } from './observed-gateway.ts'
import type { Scrape } from './scrape.ts'

const CHAT = '/v1/chat/completions'
/** The pause between two questions for what comes by itself: without one, the questions take all of a core. */
const PAUSE_MS = 20

/** The states that the metrics report for a line's circuit. */
const circuitOf = (scrape: Scrape): readonly (string | undefined)[] =>
  scrape
    .of('model_gateway_line_circuit_state')
    .filter(({ value }) => value === 1)
    .map(({ labels }) => labels.model_gateway_circuit_state)

test('a circuit that opens and is closed again: its state, and how often it changed', async (t) => {
  const upstream = await startUpstream((res) => answerJson(res, 500, {}))
  t.after(() => upstream.close())
  const gateway = await startObserved(t, {
    lines: [{ url: upstream.url, circuit: { errorPercent: 50, minimumCalls: 1, resetMs: 2000 } }],
  })
  assert.deepEqual(circuitOf(await gateway.scrape()), ['closed'], 'also before it was ever used')
  await gateway.post(CHAT, chatBody())
  upstream.script = (res) => chatAnswer(res)
  assert.equal((await gateway.post(CHAT, chatBody())).status, 503)
  const open = await gateway.scrape()
  const changes = (scrape: Scrape, state: string) =>
    scrape.sum('model_gateway_line_circuit_changes_total', { model_gateway_circuit_state: state })
  assert.deepEqual([circuitOf(open), changes(open, 'open')], [['open'], 1])
  while ((await gateway.post(CHAT, chatBody())).status !== 200) await sleep(PAUSE_MS)
  const closed = await gateway.scrape()
  assert.deepEqual(circuitOf(closed), ['closed'])
  assert.deepEqual(
    [changes(closed, 'open'), changes(closed, 'half_open'), changes(closed, 'closed')],
    [1, 1, 1],
  )
  const refused = { error_type: 'circuit_open', model_gateway_outcome: 'refused' }
  assert.ok(closed.sum('model_gateway_calls_total', refused) >= 1)
})

test('a store that goes away and comes back: whether it is away, and how often it was', async (t) => {
  const upstream = await startUpstream((res) => chatAnswer(res))
  t.after(() => upstream.close())
  const opened: FaultyStore[] = []
  const gateway = await startObserved(t, {
    lines: [{ url: upstream.url }],
    stores(durable) {
      const claims = new FaultyStore(durable.claims)
      opened.push(claims)
      return { claims }
    },
  })
  const [claims] = opened
  assert.ok(claims)
  const told = (scrape: Scrape) => {
    const idempotency = { model_gateway_store: 'idempotency' }
    return [
      scrape.sum('model_gateway_store_away', idempotency),
      scrape.sum('model_gateway_store_outages_total', idempotency),
    ]
  }
  assert.deepEqual(told(await gateway.scrape()), [0, 0])
  claims.faults.set('claim', 'fails')
  let key = 0
  const keyed = () => gateway.post(CHAT, chatBody(), { 'idempotency-key': `k${key++}` })
  assert.equal((await keyed()).status, 500)
  const failed = await gateway.scrape()
  assert.deepEqual(told(failed), [0, 0], 'one key that fails')
  assert.equal(failed.sum('model_gateway_idempotency_total', { model_gateway_outcome: 'unclaimed' }), 1)
  while (told(await gateway.scrape())[0] === 0) {
    assert.equal((await keyed()).status, 500)
    await sleep(PAUSE_MS)
  }
  // On a busy machine there may be several.
  assert.ok(Number(told(await gateway.scrape())[1]) >= 1, 'all have failed for a while')
  claims.faults.clear()
  while ((await keyed()).status !== 200) await sleep(PAUSE_MS)
  assert.equal(told(await gateway.scrape())[0], 0)
})

test('a call log that cannot be written: its entries wait', async (t) => {
  const upstream = await startUpstream((res) => chatAnswer(res))
  t.after(() => upstream.close())
  const calls = new MemoryCallStore()
  const append = calls.append.bind(calls)
  let fails = true
  calls.append = (entries) => (fails ? Promise.reject(new Error('no room')) : append(entries))
  const gateway = await startObserved(t, { lines: [{ url: upstream.url }], stores: { calls } })
  // Calls without a charge: the ledger writes the entries of the others.
  for (let i = 0; i < 3; i++) await gateway.post(CHAT, chatBody({ model: 'unknown' }))
  const waiting = await gateway.scrape()
  assert.equal(waiting.sum('model_gateway_call_log_queued'), 3)
  fails = false
  while ((await gateway.scrape()).sum('model_gateway_call_log_queued') > 0) await sleep(PAUSE_MS)
  assert.equal((await gateway.scrape()).sum('model_gateway_call_log_dropped_total'), 0)
})

test('money: leases that are open', async (t) => {
  const upstream = await startUpstream((res) => chatAnswer(res))
  t.after(() => upstream.close())
  const gateway = await startObserved(t, {
    lines: [{ url: upstream.url }],
    config: { accounts: [{ id: 'acme', balance: '10' }] },
  })
  await gateway.post(CHAT, chatBody())
  const scrape = await gateway.scrape()
  assert.ok(scrape.sum('model_gateway_leases_open') >= 1)
  assert.equal(scrape.sum('model_gateway_settlements_queued'), 0)
  assert.equal(scrape.sum('model_gateway_store_away', { model_gateway_store: 'ledger' }), 0)
})

test('webhooks, budgets, connections and readiness, as they are', async (t) => {
  const upstream = await startUpstream((res) => chatAnswer(res))
  t.after(() => upstream.close())
  const receiver = await startReceiver(t, () => secret)
  const secret = newWebhookSecret()
  let isAway = false
  const gateway = await startObserved(t, {
    lines: [{ url: upstream.url }],
    config: {
      accounts: [{ id: 'acme', balance: '10' }],
      keys: [{ id: 'key_acme', account: 'acme', secret: KEY }],
    },
    async prepare({ budgets, webhooks, outbox }) {
      const terms = { amount: 15_000_000n, hard: true, soft: [], period: 'total', timezone: 'UTC' } as const
      const scope = { account: 'acme', key: null, user: 'ann', tag: null }
      await budgets.create({ id: 'b', scope, createdAt: 1, ...terms }, originOf())
      const webhook = { id: 'wh', url: receiver.url, events: ['line.up'] as const, description: null, secret }
      await webhooks.create(webhook, originOf())
      const at = Date.now() - 90_000_000
      receiver.answer = (_, res) => void res.writeHead(500).end()
      await outbox.record([newEvent({ type: 'line.up', subject: 'line:x', at, data: { line: 'x' } })])
    },
    stores: ({ ping }) => ({ ping: () => (isAway ? Promise.reject(new Error('away')) : ping()) }),
  })
  const ask = (user: string) => gateway.post(CHAT, chatBody({ user }))
  assert.deepEqual([(await ask('ann')).status, (await ask('bob')).status], [200, 200])
  assert.equal((await ask('ann')).status, 402)
  let scrape = await gateway.scrape()
  const refusals = (scope: string) =>
    scrape.sum('model_gateway_budget_refusals_total', { model_gateway_budget_scope: scope })
  assert.deepEqual([refusals('user'), refusals('account')], [1, 0])
  assert.equal(scrape.sum('model_gateway_line_connections'), 1)
  assert.equal(scrape.sum('model_gateway_ready'), 1)
  const deliveries = (model_gateway_outcome: string) =>
    scrape.sum('model_gateway_webhook_deliveries_total', { model_gateway_outcome })
  while (deliveries('given_up') === 0) {
    await sleep(PAUSE_MS)
    scrape = await gateway.scrape()
  }
  assert.deepEqual([deliveries('delivered'), deliveries('failed')], [0, 0])
  isAway = true
  while ((await gateway.scrape()).sum('model_gateway_ready') === 1) await sleep(PAUSE_MS)
})
