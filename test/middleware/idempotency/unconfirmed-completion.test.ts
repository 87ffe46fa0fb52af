import assert from 'node:assert/strict'
import { it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { StoreAway, StoreGuard } from '../../../lib/core/store-guard/index.ts'
import { ClaimKeeper, HeldClaim } from '../../../lib/middleware/idempotency/claim-keeper.ts'
import { MemoryIdempotencyStore } from '../../../lib/middleware/idempotency/index.ts'
import { FaultyStore } from './faulty-store.ts'

const silent = { info: () => {}, warn: () => {}, error: () => {} }
const LEASE = 400

it('a call that has run is not run again, although its completion was confirmed only after its lease', async () => {
  const store = new FaultyStore(new MemoryIdempotencyStore())
  const guard = new StoreGuard({ name: 'claims', logger: silent, probeMs: 0 })
  const keeper = new ClaimKeeper({ store, guard, logger: silent, claimLeaseMs: LEASE, keepRecordsMs: 60_000 })
  const first = await keeper.claim({ id: 'record', owner: 'req_1' }, 'fingerprint')
  assert.ok(first instanceof HeldClaim)
  store.faults.set('complete', 'fails')
  await assert.rejects(keeper.complete(first), StoreAway)
  await sleep(LEASE * 2)

  await assert.rejects(keeper.claim({ id: 'record', owner: 'req_2' }, 'fingerprint'), StoreAway)
  store.faults.clear()
  const standing = await keeper.claim({ id: 'record', owner: 'req_3' }, 'fingerprint')
  assert.ok(!(standing instanceof HeldClaim))
  assert.deepEqual([standing.state, standing.owner], ['completed', 'req_1'])
})
