import assert from 'node:assert/strict'
import { it } from 'node:test'
import { MemoryIdempotencyStore } from '../../../lib/middleware/idempotency/index.ts'
import { chatAnswer, startUpstream } from '../../support/scripted-upstream.ts'
import { until } from '../../support/until.ts'
import { FaultyStore } from './faulty-store.ts'
import { keyedGateway } from './keyed-gateway.ts'

it('an answer that was made is recorded and handed over although the store seems to be away', async (t) => {
  let finish = () => {}
  const upstream = await startUpstream((res) => {
    finish = () => chatAnswer(res)
  })
  t.after(() => upstream.close())
  const store = new FaultyStore(new MemoryIdempotencyStore())
  const gateway = await keyedGateway(t, { lines: [upstream.url], idempotency: { store } })
  const first = gateway.exchange('k')
  await until(() => upstream.requests.length === 1, 'the call')
  store.faults.set('claim', 'fails')
  assert.equal((await gateway.exchange('other')).status, 500)
  // No other operation is tried for half a second.
  finish()
  assert.equal((await first).status, 200)
  store.faults.clear()
  const second = await gateway.exchange('k')
  assert.match(second.text, /idempotency_key_replayed/)
  assert.equal(upstream.requests.length, 1)
})
