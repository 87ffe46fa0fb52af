import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { Groups } from '../../../../lib/stores/sql/driver/groups.ts'

/** Groups of a database that answers when the test lets it, each thing with itself. */
function asking(atOnce: number) {
  const asked: (readonly string[])[] = []
  const open: ((error?: unknown) => void)[] = []
  const groups = new Groups<string, string>({
    atOnce,
    ask: (group) => {
      asked.push(group)
      return new Promise((resolve, reject) => {
        open.push((error) => (error === undefined ? resolve(group.map((each) => `${each}!`)) : reject(error)))
      })
    },
  })
  return {
    ...{ groups, asked },
    /** Answers the group that has waited longest, with an error if there is one. */
    async answer(error?: unknown): Promise<void> {
      open.shift()?.(error)
      for (let i = 0; i < 5; i++) await new Promise(setImmediate)
    },
    async answerAll(fault: (group: readonly string[]) => unknown = () => undefined): Promise<void> {
      while (open.length > 0) {
        const group = asked[asked.length - open.length] as readonly string[]
        open.shift()?.(fault(group))
        for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate)
      }
    },
  }
}

const many = (count: number) => Array.from({ length: count }, (_, i) => `${i}`)

describe('things that a database is asked for', () => {
  it('go at once while they may, and then together, in their order', async () => {
    const { groups, asked, answer } = asking(2)
    assert.equal(groups.idle, true)
    const all = ['a', 'b', 'c', 'd'].map((each) => groups.run(each))
    assert.deepEqual(asked, [['a'], ['b']])
    assert.equal(groups.idle, false)
    await answer()
    assert.deepEqual(asked.slice(2), [['c', 'd']])
    await answer()
    await answer()
    assert.deepEqual(await Promise.all(all), ['a!', 'b!', 'c!', 'd!'])
    assert.equal(groups.idle, true)
  })

  it('go 200 at a time', async () => {
    const { groups, asked, answerAll } = asking(1)
    const all = [groups.run('first'), ...many(450).map((each) => groups.run(each))]
    await answerAll()
    await Promise.all(all)
    assert.deepEqual(
      asked.map(({ length }) => length),
      [1, 200, 200, 50],
    )
  })

  it('fail alone where the database refuses one of them', async () => {
    for (const error of [
      Object.assign(new Error('a constraint'), { code: '23505' }),
      Object.assign(new Error('a constraint of SQLite'), { errcode: 2067 }),
      new RangeError('too large'),
    ]) {
      const { groups, asked, answerAll } = asking(1)
      const first = groups.run('first')
      const all = many(17).map((each) => groups.run(each))
      const settled = Promise.allSettled(all)
      await answerAll((group) => (group.includes('11') ? error : undefined))
      await first
      const failed = (await settled).flatMap(({ status }, i) => (status === 'rejected' ? [i] : []))
      assert.deepEqual(failed, [11])
      assert.deepEqual(
        asked.slice(2).map((group) => group.length),
        [3, 3, 3, 3, 3, 2, 1, 1, 1],
      )
    }
  })

  for (const error of [
    Object.assign(new Error('away'), { code: 'ECONNREFUSED' }),
    Object.assign(new Error('no connection'), { code: '08006' }),
    Object.assign(new Error('no disk'), { code: '53100' }),
    Object.assign(new Error('told to end'), { code: '57P01' }),
    Object.assign(new Error('a fault'), { code: '58030' }),
    Object.assign(new Error('broken'), { code: 'XX000' }),
    Object.assign(new Error('busy'), { errcode: 5 }),
    Object.assign(new Error('no code'), { code: 'lower' }),
    new Error('anything'),
    null,
  ])
    it(`fail together where it is none of them: ${error?.message}`, async () => {
      const { groups, asked, answerAll } = asking(1)
      const first = groups.run('first')
      const all = Promise.allSettled(many(3).map((each) => groups.run(each)))
      await answerAll((group) => (group.length > 1 ? error : undefined))
      await first
      assert.deepEqual(
        (await all).map((each) => each.status === 'rejected' && each.reason),
        [error, error, error],
      )
      assert.equal(asked.length, 2)
      const next = groups.run('next')
      await answerAll()
      assert.equal(await next, 'next!')
    })
})

describe('groups on their way to a database that is far away', () => {
  it('are spread over a round trip', async (t: TestContext) => {
    let now = 1000
    t.mock.method(performance, 'now', () => now)
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const pass = (ms: number) => {
      now += ms
      t.mock.timers.tick(ms)
    }
    const { groups, asked, answer } = asking(4)
    // How far away it is shows in several answers.
    for (let i = 0; i < 20; i++) {
      void groups.run('near')
      pass(100)
      await answer()
    }
    asked.length = 0
    for (const each of ['a', 'b', 'c']) void groups.run(each)
    assert.deepEqual(asked, [['a']])
    pass(24)
    assert.deepEqual(asked, [['a']])
    pass(1)
    assert.deepEqual(asked, [['a'], ['b', 'c']])
    void groups.run('d')
    pass(24)
    void groups.run('e')
    assert.equal(asked.length, 2)
    pass(1)
    assert.deepEqual(asked.at(-1), ['d', 'e'])
    pass(200)
    void groups.run('f')
    assert.deepEqual(asked.at(-1), ['f'])
  })
})
