import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { newRequestId } from '../../lib/core/call/index.ts'
import { taskIdOf } from '../../lib/ledger/tasks/task.ts'
import { entryAt } from './call-store.ts'
import { fresh } from './ledger-money.ts'
import {
  created,
  HOUR,
  intended,
  intentOf,
  leasedOf,
  NOON,
  payer,
  type TasksUnderTest,
} from './task-samples.ts'

/** The contract of a task store for the Idempotency-Key of a create. */
export function taskClaimsContract(tested: () => TasksUnderTest): void {
  const first = () => tested().stores[0]

  describe('the Idempotency-Key of a create', () => {
    const claimed = async () => {
      const who = await payer(tested(), 1000n)
      const requestId = newRequestId(NOON)
      const claim = { id: fresh('record'), owner: requestId }
      await tested().claims.claim({ ...claim, fingerprint: 'f', now: NOON, leaseUntil: NOON + 60_000 })
      return { who, claim, intent: intentOf(who, { id: taskIdOf(requestId), requestId, claim }) }
    }
    /** Claims the key long after; returns its holder, or undefined where it is free. */
    const standing = (id: string, now: number) =>
      tested().claims.claim({ id, owner: 'later', fingerprint: 'f', now, leaseUntil: now + 60_000 })

    it('never expires by itself, in whatever way its call ends', async () => {
      const { claim, intent } = await claimed()
      const { claims } = tested()
      await intended(first(), intent)
      assert.deepEqual(await claims.renew([claim], NOON + 60_000), [true])
      await claims.release(claim)
      assert.equal((await standing(claim.id, NOON + 1000 * HOUR))?.state, 'running')
      await first().markUnresolved(intent.id, NOON)
      await claims.prune(NOON + 1000 * HOUR, 1000)
      assert.equal((await standing(claim.id, NOON + 1000 * HOUR))?.owner, claim.owner)
    })

    it('is completed with the record of the task, and the call’s log entry written', async () => {
      const { claim, intent } = await claimed()
      const entry = entryAt(NOON, { id: intent.requestId })
      await intended(first(), intent)
      const keepUntil = NOON + 24 * HOUR
      await first().created(intent.id, created({ claim: { ...claim, keepUntil }, entry }), NOON)
      const kept = { owner: claim.owner, fingerprint: 'f', state: 'completed', expiresAt: keepUntil }
      assert.deepEqual(await standing(claim.id, keepUntil - 1), kept)
      assert.equal(await standing(claim.id, keepUntil), undefined)
      if (first().settlesRecords) assert.deepEqual(await tested().calls.find(intent.requestId), entry)
    })

    it('is completed for a day by default', async () => {
      const { claim, intent } = await claimed()
      await intended(first(), intent)
      await first().created(intent.id, created(), NOON)
      assert.equal((await standing(claim.id, NOON + 24 * HOUR - 1))?.state, 'completed')
      assert.equal(await standing(claim.id, NOON + 24 * HOUR), undefined)
    })

    it('is free at once if no line accepted the task', async () => {
      const { claim, intent } = await claimed()
      await intended(first(), intent)
      await first().withdraw(intent.id)
      assert.equal(await standing(claim.id, NOON), undefined)
    })

    it('counts as used when an uncertain task is given up', async () => {
      const { claim, intent } = await claimed()
      await intended(first(), intent)
      await first().markUnresolved(intent.id, NOON)
      await first().expire(NOON + 1, NOON + 48 * HOUR, NOON + 72 * HOUR, 1000)
      const kept = await standing(claim.id, NOON + 72 * HOUR - 1)
      assert.deepEqual([kept?.owner, kept?.state], [claim.owner, 'completed'])
      assert.equal(await standing(claim.id, NOON + 72 * HOUR), undefined)
    })

    it('that another request has taken over stops the create', async () => {
      const { who, claim, intent } = await claimed()
      const later = NOON + 60_000
      assert.equal(await standing(claim.id, later), undefined)
      assert.deepEqual(await first().intend(intent), { kind: 'claim_lost' })
      assert.deepEqual(await leasedOf(tested(), who), [0n, 0n])
      assert.equal(await first().find(who.account, intent.id), undefined)
    })
  })
}
