import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Observation, ObservedState } from '../../lib/endpoints/video/index.ts'
import { FORGOTTEN_MS } from '../../lib/ledger/tasks/task.ts'
import { assertSound } from './ledger-money.ts'
import {
  FACTS,
  HOUR,
  intended,
  intentOf,
  leasedOf,
  moneyOf,
  NOON,
  payer,
  spentOf,
  type TasksUnderTest,
  taken,
} from './task-samples.ts'

const ENDINGS = ['succeeded', 'failed', 'cancelled', 'expired'] as const satisfies ObservedState[]

/** How tasks go on and end, and what becomes of their money. */
export function taskEndsContract(tested: () => TasksUnderTest): void {
  const first = () => tested().stores[0]
  const other = () => tested().stores.at(-1) ?? first()

  describe('a task', () => {
    it('never returns to an earlier state', async () => {
      const who = await payer(tested(), 1000n)
      const { id } = await taken(first(), who)
      const steps: [Observation, state: string, progress: number | null][] = [
        [{ state: 'queued', progress: 10 }, 'queued', 10],
        [{ state: 'running', progress: 40 }, 'running', 40],
        [{ state: 'queued', progress: 5 }, 'running', 40],
        [{ state: 'running' }, 'running', 40],
        [{ state: 'running', progress: null, facts: { seed: 7 } }, 'running', 40],
      ]
      for (const [i, [observation, state, progress]] of steps.entries()) {
        const { task } = (await first().observe(id, observation, NOON + i)) ?? {}
        assert.deepEqual([task?.state, task?.progress], [state, progress])
      }
      const task = await other().find(who.account, id)
      assert.deepEqual(task?.facts, { ...FACTS, seed: 7 })
      assert.deepEqual([task?.updatedAt, task?.finishedAt], [NOON + 4, null])
    })

    it('that is finished keeps its result', async () => {
      const who = await payer(tested(), 10_000n)
      for (const ending of ENDINGS) {
        const { id } = await taken(first(), who)
        const over = await first().observe(id, { state: ending }, NOON)
        assert.equal(over?.finished, true)
        for (const state of [...ENDINGS, 'running', 'queued', 'missing'] as const) {
          assert.deepEqual(await other().observe(id, { state }, NOON + 1), {
            task: over?.task,
            finished: false,
          })
        }
      }
      assert.deepEqual(await leasedOf(tested(), who), [0n, 0n])
      assert.deepEqual(await spentOf(tested(), who), [85n, 85n])
      await assertSound(tested().ledger)
    })

    it('that is unknown, or only intended, cannot be observed', async () => {
      const who = await payer(tested(), 1000n)
      const task = await intended(first(), intentOf(who))
      assert.deepEqual(await first().observe(task.id, { state: 'succeeded' }, NOON), {
        task,
        finished: false,
      })
      assert.equal(await first().observe('video_none', { state: 'succeeded' }, NOON), undefined)
      assert.deepEqual(await spentOf(tested(), who), [0n, 0n])
    })

    it('records what the line reports', async () => {
      const who = await payer(tested(), 1000n)
      const { id } = await taken(first(), who)
      const error = { code: 'content_filtered', message: 'The prompt was refused.' } as const
      await first().observe(id, { state: 'running', contentUrl: 'https://cdn.test/a.mp4' }, NOON)
      await first().observe(id, { state: 'failed', error, usage: { tokens: 12 } }, NOON + 5)
      const task = await other().find(who.account, id)
      assert.deepEqual(
        [task?.error, task?.usage, task?.contentUrl, task?.finishedAt],
        [error, { seconds: null, tokens: 12 }, 'https://cdn.test/a.mp4', NOON + 5],
      )
    })
  })

  describe('money held for a task', () => {
    it('is released when it fails, is cancelled or expires, and nothing is charged', async () => {
      for (const state of ['failed', 'cancelled', 'expired'] as const) {
        const who = await payer(tested(), 100n, 100n)
        const { id } = await taken(first(), who)
        await first().observe(id, { state }, NOON)
        assert.deepEqual(await moneyOf(tested(), who), [
          [100n, 0n, 0n, 0n],
          [100n, 0n, 0n, 0n],
        ])
      }
      await assertSound(tested().ledger)
    })

    it('is not swept, for any time without a renewal', async () => {
      const who = await payer(tested(), 100n)
      await taken(first(), who)
      const ids = (await tested().ledger.leases()).filter(({ wallet }) => wallet.endsWith(who.account))
      assert.deepEqual(ids, [])
      assert.deepEqual(await leasedOf(tested(), who), [85n, 85n])
    })

    it('is released when the line has not known the task for long enough, and not before', async () => {
      const who = await payer(tested(), 100n)
      const { id } = await taken(first(), who)
      const missing = { state: 'missing' } as const
      const early = await first().observe(id, missing, NOON)
      assert.deepEqual([early?.finished, early?.task.missingSince], [false, NOON])
      await first().observe(id, { state: 'running' }, NOON + 1000)
      await first().observe(id, missing, NOON + 2000)
      await other().observe(id, missing, NOON + 2000 + FORGOTTEN_MS - 1)
      assert.deepEqual(await leasedOf(tested(), who), [85n, 85n])
      const lost = await other().observe(id, missing, NOON + 2000 + FORGOTTEN_MS)
      assert.deepEqual([lost?.task.state, lost?.task.error?.code], ['failed', 'upstream_error'])
      assert.deepEqual(await leasedOf(tested(), who), [0n, 0n])
      assert.deepEqual(await spentOf(tested(), who), [0n, 0n])
    })

    it('is released once when the task has become too old, in any state', async () => {
      const who = await payer(tested(), 1000n)
      const [running, doubtful, waiting, done] = [
        await taken(first(), who),
        await intended(first(), intentOf(who)),
        await intended(first(), intentOf(who)),
        await taken(first(), who),
      ]
      const young = await taken(first(), who, { createdAt: NOON + 1 })
      await first().observe(running.id, { state: 'running' }, NOON)
      await first().markUnresolved(doubtful.id, NOON)
      await first().observe(done.id, { state: 'succeeded' }, NOON)
      const both = await Promise.all([
        first().expire(NOON + 1, NOON + 48 * HOUR, NOON + 72 * HOUR, 1000),
        other().expire(NOON + 1, NOON + 48 * HOUR, NOON + 72 * HOUR, 1000),
      ])
      const own = both.flat().filter(({ account }) => account === who.account)
      assert.deepEqual(
        own.map(({ id, state, finishedAt }) => [id, state, finishedAt]).sort(),
        [running, doubtful, waiting].map(({ id }) => [id, 'expired', NOON + 48 * HOUR]).sort(),
      )
      assert.deepEqual(await leasedOf(tested(), who), [young.hold, young.hold])
      assert.deepEqual(await spentOf(tested(), who), [85n, 85n])
      await first().observe(running.id, { state: 'succeeded' }, NOON + 49 * HOUR)
      assert.deepEqual(await spentOf(tested(), who), [85n, 85n])
      await assertSound(tested().ledger)
    })
  })
}
