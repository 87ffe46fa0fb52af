import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { TaskStore } from '../../../../lib/endpoints/video/index.ts'
import { FORGOTTEN_MS, MAX_HOLD_MS } from '../../../../lib/ledger/tasks/task.ts'
import { assertSound } from '../../../contracts/ledger-money.ts'
import { intended, intentOf, leasedOf, moneyOf, payer, spentOf } from '../../../contracts/task-samples.ts'
import { untilAsync } from '../../../support/until.ts'
import { answered, away, missing, ScriptedLine, untilStopped } from '../support/scripted-line.ts'
import { dueTask, KeptLog, settlerOn } from '../support/settler-run.ts'
import { TASK_BACKENDS } from '../support/task-backends.ts'

const stateOf = async (store: TaskStore, { account, id }: { account: string; id: string }) =>
  (await store.find(account, id))?.state

for (const { name, skip, open } of TASK_BACKENDS) {
  describe(`the settler on ${name}`, { skip }, () => {
    it('charges a task that no caller asks about, once', async (t) => {
      const tested = await open(t)
      const [store] = tested.stores
      const who = await payer(tested, 1000n, 500n)
      const task = await dueTask(store, who)
      const steps = [answered({ state: 'queued' }), answered({ state: 'running', progress: 50 }), away]
      const line = new ScriptedLine(
        () => steps.shift() ?? answered({ state: 'succeeded', usage: { seconds: 6 } }),
      )
      settlerOn(t, store, line)
      await untilAsync(async () => (await stateOf(store, task)) === 'succeeded')
      assert.deepEqual(await moneyOf(tested, who), [
        [1000n, 65n, 0n, 0n],
        [500n, 65n, 0n, 0n],
      ])
      assert.equal(line.reads.length, 4, 'and it is not asked about again')
      await assertSound(tested.ledger)
    })

    it('frees the money of what fails and of what the line has forgotten', async (t) => {
      const tested = await open(t)
      const [store] = tested.stores
      const who = await payer(tested, 1000n, 500n)
      const [failing, forgotten] = [await dueTask(store, who), await dueTask(store, who)]
      await store.observe(forgotten.id, { state: 'missing' }, Date.now() - FORGOTTEN_MS)
      const line = new ScriptedLine(({ id }) => (id === failing.id ? answered({ state: 'failed' }) : missing))
      settlerOn(t, store, line)
      await untilAsync(
        async () =>
          (await stateOf(store, failing)) === 'failed' && (await stateOf(store, forgotten)) === 'failed',
      )
      assert.deepEqual(
        [await leasedOf(tested, who), await spentOf(tested, who)],
        [
          [0n, 0n],
          [0n, 0n],
        ],
      )
    })

    it('does not give up a task that the line has just lost sight of', async (t) => {
      const tested = await open(t)
      const [store] = tested.stores
      const who = await payer(tested, 1000n)
      const task = await dueTask(store, who)
      const line = new ScriptedLine(() =>
        line.reads.length < 4 ? missing : answered({ state: 'succeeded' }),
      )
      settlerOn(t, store, line)
      await untilAsync(async () => (await stateOf(store, task)) === 'succeeded')
      assert.deepEqual(await spentOf(tested, who), [85n, 85n])
    })

    it('closed in the middle hands its tasks back, and another goes on at once', async (t) => {
      const tested = await open(t)
      const [store, other] = tested.stores
      const who = await payer(tested, 1000n)
      const task = await dueTask(store, who)
      const hanging = new ScriptedLine((_task, signal) => untilStopped(signal))
      const settler = settlerOn(t, store, hanging, { shortestPollMs: 600_000, longestPollMs: 600_000 })
      await untilAsync(async () => hanging.reads.length === 1)
      await settler.close()
      assert.equal(await stateOf(store, task), 'queued')
      const line = new ScriptedLine(() => answered({ state: 'succeeded' }))
      settlerOn(t, other ?? store, line)
      await untilAsync(async () => (await stateOf(store, task)) === 'succeeded')
      assert.deepEqual([hanging.reads.length, line.reads.length], [1, 1])
      assert.deepEqual(await spentOf(tested, who), [85n, 85n])
    })

    it('logs once a create that was not answered, and gives it up after 48 hours', async (t) => {
      const tested = await open(t)
      const [store] = tested.stores
      const who = await payer(tested, 1000n)
      const now = Date.now()
      const doubtful = intentOf(who, { createdAt: now - 3_600_000, answerBy: now - 1000 })
      const old = intentOf(who, { createdAt: now - MAX_HOLD_MS - 1000, answerBy: now - 1000 })
      const fresh = intentOf(who, { createdAt: now, answerBy: now + 60_000 })
      for (const intent of [doubtful, old, fresh]) await intended(store, intent)
      t.mock.timers.enable({ apis: ['Date'], now })
      const logger = new KeptLog()
      const line = new ScriptedLine(() => away)
      const settlers = [settlerOn(t, store, line, { logger }), settlerOn(t, store, line, { logger })]
      await untilAsync(async () => (await stateOf(store, doubtful)) === 'unresolved')
      t.mock.timers.tick(10_000)
      await untilAsync(async () => (await stateOf(store, old)) === 'expired')
      for (const settler of settlers) await settler.close()
      const lost = logger.about(/it is unknown whether the line accepted a video task/)
      assert.deepEqual(lost.map(({ task }) => task).sort(), [doubtful.id, old.id].sort())
      assert.deepEqual(lost[0], {
        task: lost[0]?.task,
        requestId: `req_${String(lost[0]?.task).slice('video_'.length)}`,
        account: who.account,
        line: 'line-a',
      })
      assert.deepEqual(
        logger.about(/given up/).map(({ task }) => task),
        [old.id],
      )
      assert.equal(await stateOf(store, fresh), 'intended')
      assert.deepEqual(await leasedOf(tested, who), [170n, 170n])
      assert.deepEqual(line.reads, [], 'what no upstream has is not asked about')
    })
  })
}

describe('the settler', () => {
  const [memory] = TASK_BACKENDS
  assert.ok(memory)

  it('asks about no more tasks at a time than it may, and about all', async (t) => {
    const tested = await memory.open(t)
    const [store] = tested.stores
    const who = await payer(tested, 100_000n)
    for (let i = 0; i < 40; i++) await dueTask(store, who)
    const line = new ScriptedLine(async () => {
      await new Promise(setImmediate)
      return answered({ state: 'succeeded' })
    })
    settlerOn(t, store, line, { concurrency: 3 })
    await untilAsync(async () => (await store.count({ states: ['succeeded'] })) === 40)
    assert.equal(line.most, 3)
  })

  it('does not wait longer for a line than it may', async (t) => {
    const tested = await memory.open(t)
    const [store] = tested.stores
    const who = await payer(tested, 1000n)
    const task = await dueTask(store, who)
    const line = new ScriptedLine((_task, signal) =>
      line.reads.length === 1 ? untilStopped(signal) : answered({ state: 'succeeded' }),
    )
    settlerOn(t, store, line, { timeoutMs: 20 })
    await untilAsync(async () => (await stateOf(store, task)) === 'succeeded')
  })

  it('asks a line that wants to be left alone when it said, and one about an older task more rarely', async (t) => {
    const tested = await memory.open(t)
    const [store] = tested.stores
    const who = await payer(tested, 1000n)
    const [resting, old] = [await dueTask(store, who), await dueTask(store, who)]
    const line = new ScriptedLine(({ id }) =>
      id === resting.id ? { ...away, retryAfterMs: 3_600_000 } : answered({ state: 'running' }),
    )
    const before = Date.now()
    const settler = settlerOn(t, store, line, { shortestPollMs: 2000, longestPollMs: 60_000 })
    await untilAsync(async () => (await stateOf(store, old)) === 'running')
    await settler.close()
    assert.equal(line.reads.length, 2)
    const dueBy = async (ms: number) => {
      const due = await store.claimDue({ owner: 'p', now: before + ms, until: before + ms, limit: 10 })
      return due.map(({ id }) => id)
    }
    assert.deepEqual(await dueBy(5000), [], 'a minute old: in about six seconds')
    assert.deepEqual(await dueBy(30_000), [old.id])
    assert.deepEqual(await dueBy(3_700_000), [old.id, resting.id])
  })

  it('logs once that a line is no longer there, and once more if it goes again; its tasks wait', async (t) => {
    const tested = await memory.open(t)
    const [store] = tested.stores
    const who = await payer(tested, 1000n)
    const task = await dueTask(store, who, { line: 'gone' })
    let asked = 0
    const logger = new KeptLog()
    const line = new ScriptedLine(() => answered({ state: asked > 6 ? 'succeeded' : 'running' }))
    const isThere = () => ++asked === 4 || asked > 6
    const settler = settlerOn(t, store, line, { logger, clients: () => (isThere() ? line : undefined) })
    await untilAsync(async () => (await stateOf(store, task)) === 'succeeded')
    await settler.close()
    assert.deepEqual(logger.about(/config does not have/), Array(2).fill({ line: 'gone', task: task.id }))
  })

  it('goes on when its store is there again, and logs the outage once', async (t) => {
    const tested = await memory.open(t)
    const [store] = tested.stores
    const who = await payer(tested, 1000n)
    const task = await dueTask(store, who)
    let failures = 0
    const faulty: TaskStore = Object.assign(Object.create(store), {
      claimDue: (...asked: Parameters<TaskStore['claimDue']>) => {
        if (++failures <= 5) return Promise.reject(new Error('connection refused'))
        return store.claimDue(...asked)
      },
      prune: async () => 0,
      markUnanswered: async () => [],
      expire: async () => [],
      observe: (...asked: Parameters<TaskStore['observe']>) => store.observe(...asked),
      postpone: (...asked: Parameters<TaskStore['postpone']>) => store.postpone(...asked),
    })
    const logger = new KeptLog()
    settlerOn(t, faulty, new ScriptedLine(() => answered({ state: 'succeeded' })), { logger })
    await untilAsync(async () => (await stateOf(store, task)) === 'succeeded')
    assert.equal(logger.about(/store is away/).length, 1)
    assert.equal(logger.about(/store is back/).length, 1)
  })

  for (const failing of ['markUnanswered', 'prune', 'expire'] as const)
    it(`ends what else is old while its store rejects "${failing}", and logs that once`, async (t) => {
      const tested = await memory.open(t)
      const [store] = tested.stores
      const who = await payer(tested, 1000n)
      const [over, old] = [await dueTask(store, who), await dueTask(store, who)]
      await store.observe(over.id, { state: 'succeeded' }, Date.now() - 60_000)
      const asked: string[] = []
      const expired = (...[, ...rest]: Parameters<TaskStore['expire']>) => store.expire(Date.now(), ...rest)
      const faulty: TaskStore = Object.assign(Object.create(store), {
        claimDue: async () => [],
        markUnanswered: (...given: Parameters<TaskStore['markUnanswered']>) => store.markUnanswered(...given),
        prune: (...given: Parameters<TaskStore['prune']>) => store.prune(...given),
        expire: expired,
        [failing]: () => {
          asked.push(failing)
          return Promise.reject(new Error('a row is broken'))
        },
      })
      const logger = new KeptLog()
      const settler = settlerOn(t, faulty, new ScriptedLine(() => away), { logger, keepTasksMs: 30_000 })
      await untilAsync(async () => asked.length > 0)
      await settler.close()
      assert.equal(await stateOf(store, over), failing === 'prune' ? 'succeeded' : undefined)
      assert.equal(await stateOf(store, old), failing === 'expire' ? 'queued' : 'expired')
      assert.equal(logger.about(/cannot be ended/).length, 1)
    })

  it('forgets what has long been over', async (t) => {
    const tested = await memory.open(t)
    const [store] = tested.stores
    const who = await payer(tested, 1000n)
    const [old, young] = [await dueTask(store, who), await dueTask(store, who)]
    await store.observe(old.id, { state: 'succeeded' }, Date.now() - 60_000)
    await store.observe(young.id, { state: 'succeeded' }, Date.now())
    settlerOn(t, store, new ScriptedLine(() => away), { keepTasksMs: 30_000 })
    await untilAsync(async () => (await stateOf(store, old)) === undefined)
    assert.equal(await stateOf(store, young), 'succeeded')
    assert.deepEqual(await spentOf(tested, who), [170n, 170n])
  })
})
