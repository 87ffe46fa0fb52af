import assert from 'node:assert/strict'
import { describe, it, mock, type TestContext } from 'node:test'
import { type KeyStore, KeyUses } from '../../../lib/management/index.ts'
import { recordingLogger } from '../../support/app-server.ts'

/** A store that keeps the uses that it is sent, and fails while `away` is set. */
class ToldStore implements Pick<KeyStore, 'noteUses'> {
  readonly told: Record<string, number>[] = []
  away = false

  async noteUses(uses: ReadonlyMap<string, number>): Promise<void> {
    if (this.away) throw new Error('away')
    this.told.push(Object.fromEntries(uses))
  }
}

function usesOf(t: TestContext) {
  // Both clocks, so that a minute passes at once.
  const timers = mock.timers
  timers.enable({ apis: ['setTimeout', 'Date'], now: 1_000_000 })
  let now = 0
  const clock = t.mock.method(performance, 'now', () => now)
  t.after(() => {
    timers.reset()
    clock.mock.restore()
  })
  const keys = new ToldStore()
  const logger = recordingLogger()
  const uses = new KeyUses({ keys, logger })
  const pass = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 1000) {
      now += 1000
      timers.tick(1000)
      for (let i = 0; i < 10; i++) await Promise.resolve()
    }
  }
  return { keys, uses, pass, logger }
}

describe('the last uses of keys', () => {
  it('are written together, each key at most once a minute, and the last one at the end', async (t) => {
    const { keys, uses, pass } = usesOf(t)
    uses.note('a', 1)
    uses.note('a', 3)
    uses.note('a', 2)
    uses.note('b', 1)
    assert.deepEqual(keys.told, [], 'nothing on the path of a call')
    await pass(5000)
    assert.deepEqual(keys.told, [{ a: 3, b: 1 }])
    for (let at = 10; at < 40; at++) {
      uses.note('a', at)
      await pass(1000)
    }
    assert.equal(keys.told.length, 1)
    await pass(60_000)
    assert.deepEqual(keys.told.slice(1), [{ a: 39 }])
    uses.note('b', 50)
    await uses.close()
    assert.deepEqual(keys.told.slice(2), [{ b: 50 }])
  })

  it('wait while the store is away, which is logged once', async (t) => {
    const { keys, uses, pass, logger } = usesOf(t)
    keys.away = true
    uses.note('a', 1)
    await pass(30_000)
    uses.note('a', 2)
    assert.equal(logger.lines.filter(({ level }) => level === 'warn').length, 1)
    keys.away = false
    await pass(10_000)
    assert.deepEqual(keys.told, [{ a: 2 }])
  })

  it('of many keys are written in parts', async (t) => {
    const { keys, uses, pass } = usesOf(t)
    for (let i = 0; i < 1200; i++) uses.note(`k${i}`, i)
    await pass(5000)
    await pass(1000)
    assert.deepEqual(
      keys.told.map((told) => Object.keys(told).length),
      [500, 500, 200],
    )
  })
})
