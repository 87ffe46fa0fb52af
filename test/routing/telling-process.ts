import type { TestContext } from 'node:test'
import { type LineNote, type LineStateStore, MemoryLineStateStore } from '../../lib/middleware/route/index.ts'
import { processOn } from './line-processes.ts'

export const WINDOW_MS = 10_000

/** A process on a clock that the test sets, what it leaves at each exchange, and another process on the same store. */
export function telling(t: TestContext, resetMs = 20_000) {
  let now = 1_000_000
  t.mock.method(performance, 'now', () => now)
  let store = new MemoryLineStateStore()
  let left: LineNote[] = []
  let exchanges = 0
  let meanwhile: (() => unknown) | undefined
  const recording: LineStateStore = {
    async exchange(notes) {
      exchanges++
      left.push(...notes)
      const standing = await store.exchange(notes)
      const happens = meanwhile
      meanwhile = undefined
      await happens?.()
      return standing
    },
    watch: (changed) => store.watch(changed),
  }
  const settings = { resetMs, windowMs: WINDOW_MS }
  const process = processOn(t, recording, settings)
  const other = processOn(t, new MemoryLineStateStore(store), settings)
  return {
    process,
    other,
    exchanges: () => exchanges,
    pass(ms: number): void {
      now += ms
    },
    /** Has something happen while the next exchange is under way, when the store has taken the notes. */
    during(happens: () => unknown): void {
      meanwhile = happens
    },
    /** The store of the first process forgets everything, and the second process has it no more. */
    lose(): void {
      store = new MemoryLineStateStore()
    },
    /** The notes of one exchange: their kind, life and condition. */
    async told(): Promise<[kind: string | undefined, lifeMs: number, when: string][]> {
      left = []
      await process.sharing.refresh()
      return left.map(({ id, lifeMs, when }) => [/^(probe \w+|\w+)/.exec(id)?.[0], lifeMs, when])
    },
  }
}
