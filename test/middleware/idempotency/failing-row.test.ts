import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { IdempotencyClaim } from '../../../lib/core/call/index.ts'
import { StoreGuard } from '../../../lib/core/store-guard/index.ts'
import { ClaimKeeper, HeldClaim } from '../../../lib/middleware/idempotency/claim-keeper.ts'
import { MemoryIdempotencyStore } from '../../../lib/middleware/idempotency/index.ts'
import { recordingLogger } from '../../support/app-server.ts'
import { clockOf } from './faked-clock.ts'

/** A store that cannot do anything with one record. */
class BrokenRow extends MemoryIdempotencyStore {
  renewed: string[] = []
  #check(...claims: readonly IdempotencyClaim[]): void {
    if (claims.some(({ id }) => id === 'broken')) throw new Error('this record is broken')
  }
  override async claim(request: Parameters<MemoryIdempotencyStore['claim']>[0]) {
    if (request.fingerprint === 'refused') this.#check(request)
    return super.claim(request)
  }
  override async renew(claims: readonly IdempotencyClaim[], leaseUntil: number) {
    this.#check(...claims)
    this.renewed.push(...claims.map(({ id }) => id))
    return super.renew(claims, leaseUntil)
  }
  override async complete(claim: IdempotencyClaim, keepUntil: number) {
    this.#check(claim)
    return super.complete(claim, keepUntil)
  }
  override async release(claim: IdempotencyClaim) {
    this.#check(claim)
    return super.release(claim)
  }
}

function keeperOf(store: MemoryIdempotencyStore) {
  const logger = recordingLogger()
  const guard = new StoreGuard({ name: 'claims', logger, rejectsAlone: true })
  const keeper = new ClaimKeeper({ store, guard, logger, claimLeaseMs: 60_000, keepRecordsMs: 3_600_000 })
  return { keeper, guard, logger }
}

const claimOf = (id: string) => ({ id, owner: `req_${id}` })

describe('a record that the store rejects', () => {
  it('costs its own call only: others claim, complete and release beside it', async () => {
    const { keeper, guard } = keeperOf(new BrokenRow())
    for (let i = 0; i < 50; i++) {
      const broken = keeper.claim(claimOf('broken'), 'refused')
      await assert.rejects(broken, { name: 'StoreAway' })
      const other = await keeper.claim(claimOf(`other-${i}`), 'f')
      assert.ok(other instanceof HeldClaim)
      if (i % 2) await keeper.release(other)
      else assert.equal(await keeper.complete(other), true)
      assert.notEqual(other.state, 'running')
    }
    assert.equal(guard.away, false)
    await keeper.close(0)
  })

  for (const others of [6, 1200])
    it(`loses none of ${others} other claims its lease: they are renewed without it`, async (t) => {
      const clock = clockOf(t)
      const store = new BrokenRow()
      const { keeper, logger } = keeperOf(store)
      const ids = Array.from({ length: others }, (_, i) => `id-${i}`)
      const held = []
      for (const id of ids.toSpliced(3, 0, 'broken')) held.push(await keeper.claim(claimOf(id), 'f'))
      for (let passed = 0; passed < 46_000; passed += 500) {
        clock.tick(500)
        for (let turn = 0; turn < 30; turn++) await new Promise((resolve) => setImmediate(resolve))
      }
      const sends = held.map((claim) => claim instanceof HeldClaim && keeper.maySend(claim))
      assert.deepEqual(
        sends,
        held.map((_, i) => i !== 3),
      )
      assert.deepEqual(new Set(store.renewed), new Set(ids))
      const told = logger.lines.map(({ message }) => message)
      assert.ok(told.includes('idempotency: maintenance failed'), `${told}`)
      await keeper.close(0)
    })
})
