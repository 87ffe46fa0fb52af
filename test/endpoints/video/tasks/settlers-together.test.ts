import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { assertSound } from '../../../contracts/ledger-money.ts'
import { leasedOf, payer, spentOf } from '../../../contracts/task-samples.ts'
import { untilAsync } from '../../../support/until.ts'
import { answered, ScriptedLine } from '../support/scripted-line.ts'
import { dueTask, settlerOn } from '../support/settler-run.ts'
import { TASK_BACKENDS } from '../support/task-backends.ts'

const TASKS = 24

for (const { name, skip, open } of TASK_BACKENDS) {
  describe(`two settlers on ${name}`, { skip }, () => {
    it('ask about each task one at a time, and charge each once', async (t) => {
      const tested = await open(t)
      const [one, two = one] = tested.stores
      const who = await payer(tested, 100_000n)
      for (let i = 0; i < TASKS; i++) await dueTask(one, who)
      const polls = new Map<string, number>()
      const line = new ScriptedLine(async ({ id }) => {
        await sleep(2)
        polls.set(id, (polls.get(id) ?? 0) + 1)
        return answered(polls.get(id) === 4 ? { state: 'succeeded' } : { state: 'running' })
      })
      settlerOn(t, one, line)
      settlerOn(t, two, line)
      await untilAsync(
        async () => (await one.count({ account: who.account, states: ['succeeded'] })) === TASKS,
        'all are over',
        20_000,
      )
      assert.deepEqual(line.readTwice, [])
      assert.deepEqual([...polls.values()], Array(TASKS).fill(4))
      assert.deepEqual(await spentOf(tested, who), [85n * BigInt(TASKS), 85n * BigInt(TASKS)])
      assert.deepEqual(await leasedOf(tested, who), [0n, 0n])
      await assertSound(tested.ledger)
    })
  })
}
