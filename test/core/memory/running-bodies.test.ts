import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import type { OpenCall } from '../../../lib/core/call/index.ts'
import type { GatewayError } from '../../../lib/core/errors/index.ts'
import { withinMemory } from '../../../lib/core/memory/index.ts'
import { RunningBodies } from '../../../lib/core/memory/running-bodies.ts'

const MOST = 1000

/** Calls that have bodies, and what became of them. */
function world() {
  const bodies = new RunningBodies(MOST)
  const ends = new Set<() => void>()
  return {
    ends,
    /** Returns the code of the refusal, or a function that ends the call. */
    take(accountId: string | undefined, bytes: number): string | (() => void) {
      let release = () => {}
      const principal = accountId === undefined ? null : { accountId }
      const onEnd = (_name: string, run: () => void) => {
        release = run
      }
      try {
        bodies.take({ principal, onEnd } as unknown as OpenCall, bytes)
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
  it('take half of the memory of any account, and then a share of the rest for each account', () => {
    const { take } = world()
    assert.equal(typeof take('a', 500), 'function')
    assert.equal(take('a', 1), 'concurrency_limited')
    assert.equal(take('b', 126), 'upstream_overloaded')
    assert.equal(typeof take('b', 125), 'function')
    assert.equal(take('b', 1), 'concurrency_limited')
    assert.equal(typeof take(undefined, 80), 'function')
  })

  it('are accepted alone, at any size', () => {
    const { take } = world()
    const end = take('a', 10 * MOST) as () => void
    assert.equal(take('b', 1), 'upstream_overloaded')
    end()
    assert.equal(typeof take('b', 10 * MOST), 'function')
  })

  it('never exceed the memory, leave a share to another account, and release everything', () => {
    const step = fc.record({
      account: fc.constantFrom('a', 'b', 'c'),
      bytes: fc.integer({ min: 1, max: 500 }),
      ends: fc.boolean(),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const { take, ends } = world()
        const held = new Map<() => void, number>()
        for (const { account, bytes, ends: isEnd } of steps) {
          if (isEnd) {
            const [first] = held.keys()
            first?.()
            if (first) held.delete(first)
            continue
          }
          const taken = take(account, bytes)
          if (typeof taken === 'function') held.set(taken, bytes)
          const sum = [...held.values()].reduce((all, one) => all + one, 0)
          assert.ok(sum <= MOST)
          const other = take('another', 1)
          if (sum <= MOST - 4) assert.equal(typeof other, 'function')
          if (typeof other === 'function') other()
        }
        for (const end of [...ends]) end()
        assert.equal(typeof take('a', MOST), 'function')
      }),
    )
  })
})

describe('a default number of bytes', () => {
  it('is proportional to the memory of a small process', () => {
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
