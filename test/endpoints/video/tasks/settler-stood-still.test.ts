import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { TaskStore } from '../../../../lib/endpoints/video/index.ts'
import { MAX_HOLD_MS } from '../../../../lib/ledger/tasks/task.ts'
import { assertSound } from '../../../contracts/ledger-money.ts'
import { leasedOf, payer, spentOf } from '../../../contracts/task-samples.ts'
import { untilAsync } from '../../../support/until.ts'
import { answered, ScriptedLine } from '../support/scripted-line.ts'
import { dueTask, KeptLog, settlerOn } from '../support/settler-run.ts'
import { TASK_BACKENDS } from '../support/task-backends.ts'

/** How long a line takes to answer. */
const LINE_MS = 100

const stateOf = async (store: TaskStore, { account, id }: { account: string; id: string }) =>
  (await store.find(account, id))?.state

for (const { name, skip, open } of TASK_BACKENDS) {
  describe(`a task that became too old while it was not polled, on ${name}`, { skip }, () => {
    it('is charged if its line has finished it, and only another is given up, after the line was asked', async (t) => {
      const tested = await open(t)
      const [store] = tested.stores
      const [who, other] = [await payer(tested, 1000n), await payer(tested, 1000n)]
      const createdAt = Date.now() - MAX_HOLD_MS - 3_600_000
      const [done, running] = [
        await dueTask(store, who, { createdAt }),
        await dueTask(store, other, { createdAt }),
      ]
      t.mock.timers.enable({ apis: ['Date'], now: Date.now() })
      const logger = new KeptLog()
      const line = new ScriptedLine(async ({ id }) => {
        await sleep(LINE_MS)
        return answered({ state: id === done.id ? 'succeeded' : 'running' })
      })
      settlerOn(t, store, line, { logger })
      await untilAsync(async () => (await stateOf(store, done)) === 'succeeded', 'the charge')
      await untilAsync(async () => (await stateOf(store, running)) === 'running', 'the poll of the other')
      t.mock.timers.tick(10_000)
      await untilAsync(async () => (await stateOf(store, running)) === 'expired', 'the end of the other')
      assert.deepEqual(
        [await spentOf(tested, who), await spentOf(tested, other), await leasedOf(tested, other)],
        [
          [85n, 85n],
          [0n, 0n],
          [0n, 0n],
        ],
      )
      assert.deepEqual(
        logger.about(/given up/).map(({ task }) => task),
        [running.id],
      )
      await assertSound(tested.ledger)
    })

    it('is asked about however many others are asked before', async (t) => {
      const tested = await open(t)
      const [store] = tested.stores
      const [who, other] = [await payer(tested, 10_000n), await payer(tested, 1000n)]
      const createdAt = Date.now() - MAX_HOLD_MS - 3_600_000
      const tasks = [await dueTask(store, other, { createdAt })]
      for (let i = 0; i < 20; i++) tasks.push(await dueTask(store, who, { createdAt }))
      const asked = new Set<string>()
      t.mock.timers.enable({ apis: ['Date'], now: Date.now() })
      const line = new ScriptedLine(async ({ id }) => {
        asked.add(id)
        t.mock.timers.tick(5000)
        await sleep(10)
        return answered({ state: 'succeeded' })
      })
      settlerOn(t, store, line, { concurrency: 2 })
      const states = () => Promise.all(tasks.map((task) => stateOf(store, task)))
      await untilAsync(async () => (await states()).every((state) => state !== 'queued'), 'the end of all')
      assert.deepEqual(new Set(await states()), new Set(['succeeded']))
      assert.equal(asked.size, 21)
      assert.deepEqual(
        [await spentOf(tested, who), await spentOf(tested, other)],
        [
          [1700n, 1700n],
          [85n, 85n],
        ],
      )
      await assertSound(tested.ledger)
    })

    it('is asked about first, too, if the process stood still meanwhile', async (t) => {
      const tested = await open(t)
      const [store] = tested.stores
      const who = await payer(tested, 1000n)
      const task = await dueTask(store, who)
      let state: 'running' | 'succeeded' = 'running'
      t.mock.timers.enable({ apis: ['Date'], now: Date.now() })
      const line = new ScriptedLine(async () => {
        await sleep(LINE_MS)
        return answered({ state })
      })
      settlerOn(t, store, line, { shortestPollMs: 60_000, longestPollMs: 60_000 })
      await untilAsync(async () => (await stateOf(store, task)) === 'running', 'the first poll')
      state = 'succeeded'
      t.mock.timers.tick(MAX_HOLD_MS)
      await untilAsync(async () => (await stateOf(store, task)) !== 'running', 'its end')
      assert.equal(await stateOf(store, task), 'succeeded')
    })
  })
}
