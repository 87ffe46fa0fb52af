import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MemoryCallStore } from '../../../lib/middleware/call-log/index.ts'
import { MemoryIdempotencyStore } from '../../../lib/middleware/idempotency/index.ts'
import { chatBody } from '../../support/gateway.ts'
import { answerJson, chatAnswer, startUpstream } from '../../support/scripted-upstream.ts'
import { FaultyStore } from '../idempotency/faulty-store.ts'
import { startObserved } from './observed-gateway.ts'
import type { Scrape } from './scrape.ts'

const CHAT = '/v1/chat/completions'

/** The states that a line's circuit is told to be in. */
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
  while ((await gateway.post(CHAT, chatBody())).status !== 200);
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
  const claims = new FaultyStore(new MemoryIdempotencyStore())
  const gateway = await startObserved(t, { lines: [{ url: upstream.url }], stores: { claims } })
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
  while (told(await gateway.scrape())[0] === 0) assert.equal((await keyed()).status, 500)
  assert.deepEqual(told(await gateway.scrape()), [1, 1], 'all have failed for a while')
  claims.faults.clear()
  while ((await keyed()).status !== 200);
  assert.deepEqual(told(await gateway.scrape()), [0, 1])
})

test('a call log that cannot be written: its entries wait', async (t) => {
  const upstream = await startUpstream((res) => chatAnswer(res))
  t.after(() => upstream.close())
  const calls = new MemoryCallStore()
  const append = calls.append.bind(calls)
  let fails = true
  calls.append = (entries) => (fails ? Promise.reject(new Error('no room')) : append(entries))
  const gateway = await startObserved(t, { lines: [{ url: upstream.url }], stores: { calls } })
  for (let i = 0; i < 3; i++) await gateway.post(CHAT, chatBody())
  const waiting = await gateway.scrape()
  assert.equal(waiting.sum('model_gateway_call_log_queued'), 3)
  fails = false
  while ((await gateway.scrape()).sum('model_gateway_call_log_queued') > 0);
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
