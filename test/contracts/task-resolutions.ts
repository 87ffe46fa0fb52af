import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { newRequestId } from '../../lib/core/call/index.ts'
import { entryAt } from './call-store.ts'
import { assertSound, fresh } from './ledger-money.ts'
import {
  HOUR,
  intended,
  intentOf,
  leasedOf,
  NOON,
  payer,
  spentOf,
  type TasksUnderTest,
  taken,
} from './task-samples.ts'

/** The contract of a task store for tasks that an operator resolves. */
export function taskResolutionsContract(tested: () => TasksUnderTest): void {
  const first = () => tested().stores[0]
  const other = () => tested().stores.at(-1) ?? first()
  const origin = () => ({ requestId: newRequestId(NOON), actor: 'Ada', at: NOON + HOUR })
  const claimed = async () => {
    const claim = { id: fresh('record'), owner: newRequestId(NOON) }
    const asked = { ...claim, fingerprint: 'f', now: NOON, leaseUntil: NOON + 60_000 }
    assert.equal(await tested().claims.claim(asked), undefined)
    /** Claims the key an hour later; returns its holder, or undefined where it was free. */
    const standing = () => tested().claims.claim({ ...asked, owner: 'later', now: NOON + HOUR + 1 })
    return { claim, standing }
  }

  describe('a task that an operator resolves', () => {
    it('frees its Idempotency-Key if it is released', async () => {
      const who = await payer(tested(), 1000n)
      const { claim, standing } = await claimed()
      const { id } = await intended(first(), intentOf(who, { claim }))
      await first().markUnresolved(id, NOON)
      assert.equal((await standing())?.state, 'running')
      const resolved = await other().resolve(id, { outcome: 'released' }, origin())
      assert.deepEqual([resolved?.kind, resolved?.task.state], ['resolved', 'failed'])
      assert.equal(await standing(), undefined)
      assert.deepEqual(await leasedOf(tested(), who), [0n, 0n])
      assert.deepEqual(await spentOf(tested(), who), [0n, 0n])
    })

    it('uses its Idempotency-Key up if it is charged', async () => {
      const who = await payer(tested(), 1000n)
      const { claim, standing } = await claimed()
      const { id } = await intended(first(), intentOf(who, { claim }))
      await first().markUnresolved(id, NOON)
      const resolved = await other().resolve(id, { outcome: 'charged', amount: 40n }, origin())
      assert.deepEqual(resolved?.task.charge?.amount, 40n)
      assert.equal((await standing())?.state, 'completed')
      assert.deepEqual(await leasedOf(tested(), who), [0n, 0n])
      assert.deepEqual(await spentOf(tested(), who), [40n, 40n])
      assert.deepEqual(await first().find(who.account, id), resolved?.task)
    })

    it('can no longer be withdrawn, created, uncertain or expired', async () => {
      const who = await payer(tested(), 1000n)
      const { id } = await intended(first(), intentOf(who))
      await first().markUnresolved(id, NOON)
      const resolved = await first().resolve(id, { outcome: 'charged', amount: 85n }, origin())
      await other().withdraw(id)
      await other().markUnresolved(id, NOON + 1)
      await other().expire(NOON + 1, NOON + 48 * HOUR, NOON + 72 * HOUR, 1000)
      assert.deepEqual(await first().find(who.account, id), resolved?.task)
      assert.deepEqual(await spentOf(tested(), who), [85n, 85n])
      await assertSound(tested().ledger)
    })

    it('writes its outcome to the log entry of its call', async () => {
      const who = await payer(tested(), 1000n)
      const { id, requestId } = await intended(first(), intentOf(who))
      await tested().calls.append([entryAt(NOON, { id: requestId })])
      await first().markUnresolved(id, NOON)
      await first().resolve(id, { outcome: 'charged', amount: 40n }, origin())
      const entry = await tested().calls.find(requestId)
      assert.deepEqual([entry?.billing?.charged, entry?.billing?.reserved], ['0.00000004', '0.000000085'])
    })

    it('is charged beyond its hold if it used more than was requested', async () => {
      const who = await payer(tested(), 1000n)
      const { id } = await taken(first(), who)
      const resolved = await first().resolve(id, { outcome: 'charged', usage: { seconds: 12 } }, origin())
      assert.deepEqual([resolved?.task.charge?.amount, resolved?.task.charge?.source], [125n, 'measured'])
      assert.deepEqual(await spentOf(tested(), who), [125n, 125n])
      assert.deepEqual(await leasedOf(tested(), who), [0n, 0n])
      await assertSound(tested().ledger)
    })
  })
}
