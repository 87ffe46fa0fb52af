import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { StoreGuard } from '../../../lib/core/store-guard/index.ts'
import { ClaimKeeper } from '../../../lib/middleware/idempotency/claim-keeper.ts'
import { MemoryIdempotencyStore } from '../../../lib/middleware/idempotency/index.ts'
import { recordingLogger } from '../../support/app-server.ts'
import { clockOf } from './faked-clock.ts'

describe('a keeper of claims', () => {
  function keeperOf(t: TestContext, leaseMs: number) {
    const clock = clockOf(t)
    const store = new MemoryIdempotencyStore()
    const logger = recordingLogger()
    const guard = new StoreGuard({ name: 'claims', logger, rejectsAlone: true, probeMs: 0 })
    const keeper = new ClaimKeeper({ store, guard, logger, claimLeaseMs: leaseMs, keepRecordsMs: 1000 })
    const pass = async (ms: number) => {
      clock.tick(ms)
      for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate)
    }
    return { store, keeper, pass, logger, clock }
  }

  for (const [leaseMs, retryMs] of [
    [60_000, 1000],
    [4000, 1000],
    [2000, 500],
    [400, 100],
  ] as const)
    it(`with a lease of ${leaseMs} ms tries again after ${retryMs} ms what one store refuses`, async (t) => {
      const { store, keeper, pass, logger } = keeperOf(t, leaseMs)
      const renew = t.mock.method(store, 'renew', async () => Promise.reject(new Error('no such column')))
      await keeper.claim({ id: 'a', owner: 'a' }, 'f')
      await pass(leaseMs / 4 - 1)
      assert.equal(renew.mock.callCount(), 0)
      await pass(1)
      assert.equal(renew.mock.callCount(), 1)
      await pass(retryMs - 1)
      assert.equal(renew.mock.callCount(), 1)
      await pass(1)
      assert.equal(renew.mock.callCount(), 2)
      assert.deepEqual(
        [...new Set(logger.lines.map(({ message }) => message))],
        ['idempotency: maintenance failed'],
      )
    })

  for (const [leaseMs, slices] of [
    [60_000, 10],
    [8000, 10],
    [4000, 5],
    [800, 1],
  ] as const)
    it(`with a lease of ${leaseMs} ms forgets for no longer than ${slices * 100} ms at a time`, async (t) => {
      const { store, keeper, pass, clock } = keeperOf(t, leaseMs)
      const prune = t.mock.method(store, 'prune', async (_now: number, limit: number) => {
        clock.pass(100)
        return limit
      })
      await keeper.claim({ id: 'a', owner: 'a' }, 'f')
      await pass(leaseMs / 4)
      assert.equal(prune.mock.callCount(), slices)
    })
})
