import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { Client } from 'pg'
import type { TaskStore } from '../../../../lib/endpoints/video/index.ts'
import { accountWallet } from '../../../../lib/ledger/index.ts'
import { MAX_HOLD_MS } from '../../../../lib/ledger/tasks/task.ts'
import { intended, intentOf, payer } from '../../../contracts/task-samples.ts'
import { postgresUrl } from '../../../stores/sql/support/postgres-database.ts'
import { WITHOUT_POSTGRES } from '../../../support/postgres-server.ts'
import { untilAsync } from '../../../support/until.ts'
import { answered, away, ScriptedLine, untilStopped } from '../support/scripted-line.ts'
import { dueTask, KeptLog, settlerOn } from '../support/settler-run.ts'
import { openTasks, TASK_BACKENDS } from '../support/task-backends.ts'

const succeeded = (store: TaskStore) => store.count({ states: ['succeeded'] })

describe('a settler with a line that does not answer', () => {
  const [memory] = TASK_BACKENDS
  assert.ok(memory)

  it('soon asks about the tasks of other lines', async (t) => {
    const tested = await memory.open(t)
    const [store] = tested.stores
    const [crowd, other] = [await payer(tested, 100_000n), await payer(tested, 1000n)]
    for (let i = 0; i < 100; i++) await dueTask(store, crowd, { line: 'frozen' })
    await dueTask(store, other, { line: 'sound' })
    const frozen = new ScriptedLine((_task, signal) => untilStopped(signal))
    const sound = new ScriptedLine(() => answered({ state: 'succeeded' }))
    settlerOn(t, store, sound, {
      clients: (line) => (line === 'frozen' ? frozen : sound),
      timeoutMs: 200,
      shortestPollMs: 60_000,
      longestPollMs: 60_000,
    })
    await untilAsync(async () => (await succeeded(store)) === 1)
    assert.ok(frozen.reads.length <= 20, `${frozen.reads.length} reads of the line that does not answer`)
    assert.equal(frozen.most, 8, 'as long as nobody knows that it does not answer')
  })

  it('asks it about as many tasks as before once it answers', async (t) => {
    const tested = await memory.open(t)
    const [store] = tested.stores
    const who = await payer(tested, 100_000n)
    for (let i = 0; i < 40; i++) await dueTask(store, who)
    let readsLater = 0
    let mostLater = 0
    const line = new ScriptedLine(async () => {
      if (line.reads.length <= 8) return away
      mostLater = Math.max(mostLater, ++readsLater)
      await new Promise(setImmediate)
      readsLater--
      return answered({ state: 'succeeded' })
    })
    settlerOn(t, store, line)
    await untilAsync(async () => (await succeeded(store)) === 40)
    assert.equal(mostLater, 8)
  })
})

describe('a settler, while the rows of an account are locked', { skip: WITHOUT_POSTGRES }, () => {
  /** Two payers, of which one is locked. */
  async function world(t: TestContext) {
    const url = await postgresUrl()
    const tested = await openTasks(t, url)
    const [locked, other] = [await payer(tested, 100_000n), await payer(tested, 1000n)]
    const operator = new Client({ connectionString: url })
    await operator.connect()
    t.after(() => operator.end())
    const lock = async () => {
      await operator.query('begin')
      await operator.query('select 1 from wallets where id = $1 for update', [accountWallet(locked.account)])
    }
    const unlock = () => operator.query('rollback')
    const [store] = tested.stores
    const stateOf = async (account: string, id: string) => (await store.find(account, id))?.state
    return { store, locked, other, lock, unlock, stateOf }
  }

  it('polls the tasks of others, although one of its tasks cannot be expired', async (t) => {
    const { store, locked, other, lock, unlock, stateOf } = await world(t)
    const now = Date.now()
    const old = intentOf(locked, { createdAt: now - MAX_HOLD_MS - 1000, answerBy: now + 60_000 })
    const next = intentOf(other, { createdAt: now - MAX_HOLD_MS - 1, answerBy: now + 60_000 })
    for (const intent of [old, next]) await intended(store, intent)
    const task = await dueTask(store, other)
    await lock()
    t.mock.timers.enable({ apis: ['Date'], now })
    const logger = new KeptLog()
    settlerOn(t, store, new ScriptedLine(() => answered({ state: 'succeeded' })), { logger })
    await untilAsync(async () => (await stateOf(other.account, task.id)) === 'succeeded', 'the charge', 5000)
    t.mock.timers.tick(10_000)
    await untilAsync(async () => (await stateOf(other.account, next.id)) === 'expired', 'the expiry', 5000)
    assert.equal(await stateOf(locked.account, old.id), 'intended')
    assert.deepEqual(logger.about(/store is away/), [])
    await unlock()
  })

  it('soon polls the tasks of others, although many results of its cannot be written', async (t) => {
    const { store, locked, other, lock, unlock, stateOf } = await world(t)
    for (let i = 0; i < 60; i++) await dueTask(store, locked)
    const task = await dueTask(store, other)
    await lock()
    settlerOn(t, store, new ScriptedLine(() => answered({ state: 'succeeded' })), {
      shortestPollMs: 60_000,
      longestPollMs: 60_000,
    })
    await untilAsync(async () => (await stateOf(other.account, task.id)) === 'succeeded', 'the charge', 4000)
    await unlock()
  })
})
