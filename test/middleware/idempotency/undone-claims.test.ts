import assert from 'node:assert/strict'
import { it } from 'node:test'
import { StoreGuard } from '../../../lib/core/store-guard/index.ts'
import { ClaimKeeper, HeldClaim } from '../../../lib/middleware/idempotency/claim-keeper.ts'
import { MemoryIdempotencyStore } from '../../../lib/middleware/idempotency/index.ts'
import { recordingLogger } from '../../support/app-server.ts'
import { clockOf } from './faked-clock.ts'

const LEASE_MS = 60_000
const RENEW_MS = LEASE_MS / 4
const KEEP_MS = 3_600_000

/** The time that a ledger takes to report that a charge is undone, and the time of the next renewal. */
for (const settlingMs of [0, RENEW_MS, 2 * LEASE_MS])
  for (const renewal of ['none', 'before it is read', 'while it is read'])
    it(`a record that is read, and undone after ${settlingMs} ms, counts as in use; renewal: ${renewal}`, async (t) => {
      const clock = clockOf(t)
      const store = new MemoryIdempotencyStore()
      const guard = new StoreGuard({ name: 'claims', logger: recordingLogger(), probeMs: 0 })
      const keeper = new ClaimKeeper({
        ...{ store, guard, logger: recordingLogger() },
        ...{ claimLeaseMs: LEASE_MS, keepRecordsMs: KEEP_MS },
      })
      const pass = async (ms: number) => {
        clock.tick(ms)
        for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve))
      }
      const renewed = t.mock.method(store, 'renew').mock
      const held = await keeper.claim({ id: 'a', owner: 'one' }, 'f')
      assert.ok(held instanceof HeldClaim)
      held.state = 'settling'
      await store.complete(held, Date.now() + KEEP_MS)
      for (let ms = 0; ms < settlingMs; ms += RENEW_MS) await pass(RENEW_MS)
      await pass(RENEW_MS - 50)
      if (renewal === 'before it is read') await pass(50)

      const other = { id: 'a', owner: 'other' }
      const found = await store.claim({ ...other, fingerprint: 'f', now: Date.now(), leaseUntil: 1 })
      let arrive = (): void => {}
      const arrived = new Promise<void>((resolve) => {
        arrive = resolve
      })
      t.mock.method(store, 'claim', () => arrived.then(() => found))
      const read = keeper.claim(other, 'f')
      held.state = 'released'
      const before = renewed.callCount()
      if (renewal === 'while it is read') await pass(50)
      assert.equal(renewed.callCount() - before, renewal === 'while it is read' ? 1 : 0)
      arrive()
      assert.equal(((await read) as { state: string }).state, 'running')

      for (let i = 0; i < 3; i++) await pass(RENEW_MS)
      const after = renewed.callCount()
      await pass(LEASE_MS)
      assert.equal(renewed.callCount(), after, 'it is no longer held')
    })
