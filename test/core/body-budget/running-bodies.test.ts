import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { RunningBodies } from '../../../lib/core/body-budget/running-bodies.ts'
import { withinMemory } from '../../../lib/core/bytes/index.ts'
import type { Call } from '../../../lib/core/call/index.ts'
import type { GatewayError } from '../../../lib/core/errors/index.ts'

const MOST = 1000

/** Calls that have bodies, and what became of them. */
function world() {
  const bodies = new RunningBodies(MOST)
  const ends = new Set<() => void>()
  return {
    ends,
    /** Returns the code of the refusal, or a function that ends the call. */
    take(accountId: string | undefined, length: number, values = 0): string | (() => void) {
      let release = () => {}
      const principal = accountId === undefined ? null : { accountId }
      const onEnd = (_name: string, run: () => void) => {
        release = run
      }
      try {
        bodies.take({ principal, onEnd } as unknown as Call, length, values)
      } catch (error) {
        return (error as GatewayError).code
      }
      const end = () => {
        if (ends.delete(end)) release()
      }
      ends.add(end)
      return end
    },
  }
}

describe('the large bodies of running calls', () => {
  it('take half of the memory whoever they are of, and then a share of the rest for each account', () => {
    const { take } = world()
    assert.equal(typeof take('a', 250), 'function')
    assert.equal(take('a', 1), 'concurrency_limited')
    assert.equal(take('b', 63), 'upstream_overloaded')
    assert.equal(typeof take('b', 62), 'function')
    assert.equal(take('b', 1), 'concurrency_limited')
    assert.equal(typeof take(undefined, 40), 'function')
  })

  it('count their values, of which each is an object', () => {
    const { take } = world()
    assert.equal(typeof take('a', 1, 7), 'function')
    assert.equal(take('a', 1, 1), 'concurrency_limited')
  })

  it('have room alone, whatever their size', () => {
    const { take } = world()
    const end = take('a', 10 * MOST) as () => void
    assert.equal(take('b', 1), 'upstream_overloaded')
    end()
    assert.equal(typeof take('b', 10 * MOST), 'function')
  })

  it('never take more than there is, leave another account room, and give all back', () => {
    const step = fc.record({
      account: fc.constantFrom('a', 'b', 'c'),
      length: fc.integer({ min: 1, max: 250 }),
      ends: fc.boolean(),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const { take, ends } = world()
        const held = new Map<() => void, number>()
        for (const { account, length, ends: isEnd } of steps) {
          if (isEnd) {
            const [first] = held.keys()
            first?.()
            if (first) held.delete(first)
            continue
          }
          const taken = take(account, length)
          if (typeof taken === 'function') held.set(taken, 2 * length)
          const sum = [...held.values()].reduce((all, bytes) => all + bytes, 0)
          assert.ok(sum <= MOST)
          const other = take('another', 1)
          if (sum <= MOST - 8) assert.equal(typeof other, 'function')
          if (typeof other === 'function') other()
        }
        for (const end of [...ends]) end()
        assert.equal(typeof take('a', MOST), 'function')
      }),
    )
  })
})

describe('a default number of bytes', () => {
  it('is in proportion to the memory of a small process', () => {
    const GIB = 1024 ** 3
    const rows: [memory: number, bytes: number][] = [
      [Number.POSITIVE_INFINITY, 100],
      [4 * GIB, 100],
      [GIB, 100],
      [GIB / 2, 50],
      [GIB / 1000, 1],
    ]
    for (const [memory, bytes] of rows) assert.equal(withinMemory(100, memory), bytes)
  })
})
