import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { StoreAway, StoreGuard } from '../../../lib/core/store-guard/index.ts'
import { machine } from '../../../lib/core/timing/index.ts'
import { recordingLogger } from '../../support/app-server.ts'

const fails = () => Promise.reject(new Error('this row is broken'))
const answers = async () => 'here'
const never = () => new Promise<never>(() => {})

function guarded(t: TestContext) {
  let now = 0
  // The real machine may be busy.
  t.mock.method(machine, 'limit', (ms: number) => ms)
  t.mock.method(performance, 'now', () => now)
  const logger = recordingLogger()
  const changes: boolean[] = []
  const onStoreChange = (away: boolean) => void changes.push(away)
  const guard = new StoreGuard({ name: 'store', logger, timeoutMs: 40, rejectsAlone: true, onStoreChange })
  const pass = (ms: number) => {
    now += ms
  }
  return { guard, changes, pass, said: () => logger.lines.map(({ message }) => message) }
}

describe('a store whose operations may fail separately', () => {
  it('is not away if one operation rejects any number of times while others are answered', async (t) => {
    const { guard, changes, pass, said } = guarded(t)
    for (let i = 0; i < 20; i++) {
      await assert.rejects(guard.run(fails), StoreAway)
      pass(10)
      assert.equal(await guard.run(answers), 'here')
    }
    assert.deepEqual([changes, said()], [[], []])
  })

  it('is away after all have rejected for the time limit, and back with the next answer', async (t) => {
    const { guard, changes, pass, said } = guarded(t)
    await assert.rejects(guard.run(fails), StoreAway)
    pass(39)
    await assert.rejects(guard.run(fails), StoreAway)
    assert.equal(guard.away, false)
    pass(1)
    await assert.rejects(guard.run(fails), StoreAway)
    assert.equal(guard.away, true)
    assert.equal(await guard.run(answers), 'here', 'who asks for something else is not refused unasked')
    assert.deepEqual(
      [changes, said()],
      [
        [true, false],
        ['store is away', 'store is back'],
      ],
    )
    await assert.rejects(guard.run(fails), StoreAway)
    assert.equal(guard.away, false, 'it counts from the last answer on')
  })

  it('is away like any other if it does not answer: only an occasional probe waits for it', async (t) => {
    const { guard, pass } = guarded(t)
    await assert.rejects(guard.run(never), StoreAway)
    assert.equal(guard.away, true)
    let asked = 0
    const asks = async () => asked++
    await assert.rejects(guard.run(asks), StoreAway)
    assert.equal(asked, 0)
    pass(500)
    await guard.run(asks)
    assert.deepEqual([asked, guard.away], [1, false])
  })

  it('that rejects again after a silence makes no operation wait before the next probe', async (t) => {
    const { guard, pass } = guarded(t)
    await assert.rejects(guard.run(never), StoreAway)
    pass(500)
    await assert.rejects(guard.run(fails), StoreAway)
    let asked = 0
    await assert.rejects(
      guard.run(async () => asked++),
      StoreAway,
    )
    assert.equal(asked, 0)
  })
})
