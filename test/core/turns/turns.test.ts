import assert from 'node:assert/strict'
import { afterEach, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { takeTurn } from '../../../lib/core/turns/index.ts'

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

function compute(ms: number): void {
  const end = performance.now() + ms
  while (performance.now() < end);
}

describe('work in turns', () => {
  // The pause behind the last work.
  afterEach(() => sleep(100))

  it('is done for each owner in turn, and in order for one owner', async () => {
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

  it('begins at once again when all is done', () => {
    let isDone = false
    takeTurn('a', () => {
      isDone = true
    })
    return new Promise<void>((resolve) => takeTurn('a', resolve)).then(() => assert.ok(isDone))
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
