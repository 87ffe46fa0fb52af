import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { TASK_BACKENDS } from '../support/task-backends.ts'
import { type Step, TaskWorld } from '../support/task-world.ts'

const at = fc.nat(1)
const which = fc.nat(20)
const seconds = fc.nat(12)
const steps: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ op: fc.constant('intend' as const), at, seconds }) },
  { weight: 5, arbitrary: fc.record({ op: fc.constant('created' as const), at, which }) },
  {
    weight: 2,
    arbitrary: fc.record({ op: fc.constantFrom('withdraw' as const, 'markUnresolved' as const), at, which }),
  },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('remove' as const), at, which }) },
  {
    weight: 8,
    arbitrary: fc.record({
      op: fc.constant('observe' as const),
      at,
      which,
      seconds,
      state: fc.constantFrom(
        'queued',
        'running',
        'succeeded',
        'succeeded',
        'failed',
        'cancelled',
        'expired',
        'missing',
        'missing',
      ),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ op: fc.constantFrom('crash' as const, 'markUnanswered' as const), at }),
  },
  { weight: 3, arbitrary: fc.record({ op: fc.constant('pass' as const), minutes: fc.nat(12) }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('expire' as const), at, minutes: fc.nat(20) }) },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('lease' as const), amount: fc.nat(60) }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('deposit' as const), amount: fc.nat(80) }) },
)

const RUNS = { memory: 25, SQLite: 5, Postgres: 5 } as Record<string, number>

for (const { name, skip, open } of TASK_BACKENDS) {
  describe(`video tasks on ${name}`, { skip }, () => {
    it('money is neither lost, overspent nor charged twice, whatever happens to two processes', async (t) => {
      const tested = await open(t)
      const runs = fc.asyncProperty(fc.array(steps, { minLength: 5, maxLength: 40 }), async (sequence) => {
        const world = await TaskWorld.open(tested)
        for (const step of sequence) {
          await world.take(step)
          await world.check()
        }
        await world.end()
      })
      await fc.assert(runs, { numRuns: RUNS[name] ?? 10 })
    })
  })
}

it('money that is freed without a reason violates an invariant', async (t) => {
  const [memory] = TASK_BACKENDS
  assert.ok(memory)
  const tested = await memory.open(t)
  const world = await TaskWorld.open(tested)
  await world.take({ op: 'intend', at: 0, seconds: 3 })
  const [store] = tested.stores
  const [task] = await store.list({}, { order: 'oldest', limit: 1 })
  assert.ok(task)
  await store.withdraw(task.id)
  await assert.rejects(world.check())
})
