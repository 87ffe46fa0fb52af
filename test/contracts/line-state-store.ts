import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { LineNote, LineStateStore } from '../../lib/middleware/route/index.ts'
import { cleaningUp } from '../support/clean-up.ts'
import { until } from '../support/until.ts'

/** Two handles of one store to try, with nothing in it. */
export interface LineStatesUnderTest {
  stores: readonly [LineStateStore, LineStateStore]
  close(): Promise<void>
}

const LIFE_MS = 60_000

const note = (value: string, given: Partial<LineNote> = {}): LineNote => ({
  id: 'a',
  value,
  lifeMs: LIFE_MS,
  when: 'longer',
  ...given,
})

/** The contract of every store of line states. */
export function lineStateContract(
  name: string,
  open: () => Promise<LineStatesUnderTest>,
  skip: string | false = false,
): void {
  describe(`line states: ${name}`, { skip }, () => {
    let one: LineStateStore
    let other: LineStateStore
    const cleanUp = cleaningUp(afterEach)
    beforeEach(async () => {
      const opened = await open()
      cleanUp.after(() => opened.close())
      ;[one, other] = opened.stores
    })
    /** Leaves notes, and returns the values that stand then. */
    const leave = async (store: LineStateStore, ...notes: LineNote[]) =>
      Object.fromEntries([...(await store.exchange(notes))].map(([id, { value }]) => [id, value]))

    it('are visible to all processes until they expire', async () => {
      assert.deepEqual(await leave(one), {})
      await leave(one, note('first "é', { id: 'a b' }), note('short', { id: 'c', lifeMs: 60 }))
      assert.deepEqual(await leave(other), { 'a b': 'first "é', c: 'short' })
      const { leftMs } = (await other.exchange([])).get('a b') ?? { leftMs: 0 }
      assert.ok(leftMs > LIFE_MS - 10_000 && leftMs <= LIFE_MS, `${leftMs} ms are left`)
      await sleep(80)
      assert.deepEqual(await leave(other), { 'a b': 'first "é' })
      assert.deepEqual(
        await leave(one, note('', { id: 'a b', when: 'unchanged', base: 'first "é', lifeMs: 0 })),
        {},
      )
    })

    it('are written in order, each under its condition', async () => {
      const notes = [
        note('1'),
        note('2', { when: 'unchanged' }),
        note('3', { when: 'unchanged', base: '1' }),
        note('', { id: 'b', when: 'unchanged' }),
      ]
      assert.deepEqual(await leave(one, ...notes), { a: '3', b: '' })
      assert.deepEqual(await leave(other, note('4', { id: 'b', when: 'unchanged', base: '' })), {
        a: '3',
        b: '4',
      })
    })

    it('with an expected value do not replace a changed one', async () => {
      await leave(one, note('one', { when: 'unchanged' }))
      assert.deepEqual(await leave(other, note('other', { when: 'unchanged' })), { a: 'one' })
      const lifted = { when: 'unchanged', lifeMs: 0 } as const
      assert.deepEqual(await leave(other, note('', lifted)), { a: 'one' })
      assert.deepEqual(await leave(other, note('', { ...lifted, base: 'one' })), {})
      assert.deepEqual(await leave(other, note('other', { when: 'unchanged' })), { a: 'other' })
    })

    it('with a condition on their length do not replace a longer one', async () => {
      await leave(one, note('10 s', { when: 'longer', lifeMs: 10_000 }))
      assert.deepEqual(await leave(other, note('5 s', { when: 'longer', lifeMs: 5000 })), { a: '10 s' })
      assert.deepEqual(await leave(other, note('15 s', { when: 'longer', lifeMs: 15_000 })), { a: '15 s' })
    })

    it('are written by exactly one of many concurrent requests for a free place', async () => {
      const values = Array.from({ length: 20 }, (_, i) => `${i}`)
      const seen = await Promise.all(
        values.map((value, i) => leave(i % 2 ? one : other, note(value, { when: 'unchanged' }))),
      )
      assert.equal(new Set(seen.map(({ a }) => a)).size, 1)
    })

    it('are sent to the other processes when they change', async () => {
      const calls = { one: 0, other: 0 }
      const ends = [one.watch(() => calls.one++), other.watch(() => calls.other++)]
      cleanUp.after(async () => {
        for (const end of ends) end()
      })
      // A subscription takes a moment to begin.
      for (let i = 0; calls.other === 0; i++) {
        await leave(one, note(`${i}`, { when: 'longer', lifeMs: LIFE_MS + i }))
        await sleep(20)
      }
      assert.equal(calls.one, 0, 'who changed it knows')
      const before = calls.other
      await leave(one, note('same', { id: 'c' }))
      await until(() => calls.other === before + 1)
      await leave(one, note('same', { id: 'c', lifeMs: LIFE_MS - 1000 }))
      await leave(one, note('another', { id: 'c', when: 'unchanged' }))
      await leave(one, note('same', { id: 'c', lifeMs: 2 * LIFE_MS }))
      await leave(one, note('none', { id: 'd', when: 'unchanged', lifeMs: 0 }))
      await leave(one, note('', { id: 'c', when: 'unchanged', base: 'same', lifeMs: 0 }))
      await until(() => calls.other >= before + 2)
      // A change that Redis sent before this answer has arrived with it.
      await leave(one)
      await leave(other)
      assert.equal(calls.other, before + 2)
    })
  })
}
