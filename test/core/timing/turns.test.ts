import assert from 'node:assert/strict'
import { afterEach, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { takeTurn } from '../../../lib/core/timing/index.ts'

/** Runs the work of these owners, all asked for at once; resolves with their order. */
async function orderOf(owners: readonly string[], work: () => void = () => {}): Promise<string> {
  const order: string[] = []
  const all = owners.map(
    (owner) =>
      new Promise<void>((resolve) =>
        takeTurn(owner, () => {
          order.push(owner)
          work()
          resolve()
        }),
      ),
  )
  await Promise.all(all)
  return order.join('')
}

/** Work is followed by an immediate; so is what that begins. */
async function afterImmediates(): Promise<void> {
  for (let i = 0; i < 3; i++) await new Promise(setImmediate)
}

function compute(ms: number): void {
  const end = performance.now() + ms
  while (performance.now() < end);
}

describe('a queue with turns', () => {
  // The pause behind the last work.
  afterEach(() => sleep(100))

  it('serves its owners in turn, and the work of one owner in order', async () => {
    assert.equal(await orderOf([...'aaaabbc']), 'aabcaba')
  })

  it('is done in the order in which it was asked for, for one owner', async () => {
    const order: number[] = []
    const all = Array.from(
      { length: 5 },
      (_, i) => new Promise<number>((resolve) => takeTurn('a', () => resolve(order.push(i)))),
    )
    await Promise.all(all)
    assert.deepEqual(order, [0, 1, 2, 3, 4])
  })

  it('starts at once again when it was empty', () => {
    let isDone = false
    takeTurn('a', () => {
      isDone = true
    })
    return new Promise<void>((resolve) => takeTurn('a', resolve)).then(() => assert.ok(isDone))
  })

  for (const [took, pause] of [
    [0, 0],
    [3.5, 0],
    [4, 4],
    [30, 30],
  ] as const)
    it(`is followed by ${pause === 0 ? 'no pause' : 'as long a pause'} where it took ${took} ms`, async (t) => {
      let now = performance.now()
      t.mock.method(performance, 'now', () => now)
      t.mock.timers.enable({ apis: ['setTimeout'] })
      let begun = 0
      const work = (): void => {
        begun++
        now += took
      }
      takeTurn('a', work)
      takeTurn('b', work)
      assert.equal(begun, 1)
      await afterImmediates()
      if (pause > 0) {
        assert.equal(begun, 1, 'the next one waits')
        t.mock.timers.tick(pause - 1)
        assert.equal(begun, 1, 'the next one waits still')
        t.mock.timers.tick(1)
      }
      assert.equal(begun, 2)
      await afterImmediates()
      t.mock.timers.tick(pause)
      takeTurn('a', work)
      assert.equal(begun, 3, 'behind the last one, work begins at once')
      await afterImmediates()
      t.mock.timers.tick(pause)
    })

  it('continues after work that throws, and rejects for its caller', async () => {
    const error = new Error('broken work')
    assert.throws(() => takeTurn('a', () => assert.fail(error)), error)
    await new Promise<void>((resolve) => takeTurn('a', resolve))
  })

  it('leaves the event loop to others for as long as it takes', async () => {
    let others = 0
    const timer = setInterval(() => others++, 1)
    await orderOf([...'aaaaa'], () => compute(30))
    clearInterval(timer)
    // Four pauses of 30 ms; without them the timer would fire about five times.
    assert.ok(others > 20, `the others had ${others} turns`)
  })
})
