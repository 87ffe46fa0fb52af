import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { KeyRecord } from '../../../lib/middleware/authenticate/index.ts'
import { KeyCache, type KeyCacheOptions } from '../../../lib/middleware/authenticate/key-cache.ts'

const OPTIONS: KeyCacheOptions = { freshMs: 1000, staleKeysMs: 10_000, storeTimeoutMs: 2000, maxEntries: 30 }
const record = (id: string) => ({ id }) as KeyRecord

/** A cache on the clock of the test, and what it asks for. Keys whose name begins with "no" are not known. */
function cached(t: TestContext, options: Partial<KeyCacheOptions> = {}) {
  let now = 5000
  t.mock.timers.enable({ apis: ['setTimeout'] })
  t.mock.method(performance, 'now', () => now)
  let asked: string[] = []
  const directory = {
    find(hash: string): KeyRecord | undefined | Promise<KeyRecord | undefined> {
      asked.push(hash)
      return hash.startsWith('no') ? undefined : record(hash)
    },
  }
  const cache = new KeyCache(directory, { ...OPTIONS, ...options })
  return {
    cache,
    directory,
    async pass(ms: number) {
      now += ms
      t.mock.timers.tick(ms)
      for (let i = 0; i < 10; i++) await new Promise(setImmediate)
    },
    /** Looks keys up, and returns those that the directory was asked for. */
    looks(...hashes: string[]): string[] {
      asked = []
      for (const hash of hashes) void cache.find(hash)
      return asked
    },
  }
}

const names = (prefix: string, count: number) => Array.from({ length: count }, (_, i) => `${prefix}-${i}`)

describe('the key cache', () => {
  it('has room for so many keys, and for a tenth as many unknown secrets, rounded up', (t) => {
    for (const [maxEntries, unknown] of [
      [30, 3],
      [31, 4],
      [9, 1],
      [1, 1],
    ] as const) {
      const { looks } = cached(t, { maxEntries })
      const [keys, guesses] = [names('key', maxEntries), names('no', unknown)]
      looks(...keys, ...guesses)
      assert.deepEqual(looks(...keys, ...guesses), [], `${maxEntries}`)
      looks('key-more', 'no-more')
      assert.deepEqual(looks(...keys.slice(1), ...guesses.slice(1), 'key-more', 'no-more'), [])
      assert.deepEqual(looks('key-0'), ['key-0'])
      assert.deepEqual(looks('no-0'), ['no-0'])
      t.mock.timers.reset()
      t.mock.restoreAll()
    }
  })

  it('forgets those first that were asked for longest ago', async (t) => {
    const { looks, pass } = cached(t, { maxEntries: 3 })
    looks('a', 'b', 'c')
    await pass(999)
    assert.deepEqual(looks('a'), [])
    await pass(1)
    assert.deepEqual(looks('a', 'b'), ['a', 'b'])
    looks('d')
    // "c" has made room. "a" and "b" have been asked for again since.
    assert.deepEqual(looks('a', 'b', 'd'), [])
    assert.deepEqual(looks('c'), ['c'])
    assert.deepEqual(looks('b', 'd', 'c'), [])
  })

  it('remembers the last value, and takes no room for earlier ones', async (t) => {
    const { cache, looks, pass, directory } = cached(t, { maxEntries: 2 })
    let known = true
    const find = t.mock.method(directory, 'find', (hash: string) =>
      hash === 'x' && !known ? undefined : record(hash),
    )
    for (const isKnown of [true, false, true, false]) {
      known = isKnown
      await pass(1000)
      for (let i = 0; i < 3; i++) assert.equal(cache.find('x') !== undefined, isKnown)
    }
    assert.equal(find.mock.callCount(), 4)
    looks('y', 'z')
    find.mock.resetCalls()
    // Neither has made room for the "x" that is not known any more.
    looks('x', 'y', 'z')
    assert.equal(find.mock.callCount(), 0)
  })

  it('takes a late answer only if none is newer, and one of the same time', async (t) => {
    const { cache, directory, pass } = cached(t, { freshMs: 5000, storeTimeoutMs: 100 })
    const answers: ((found: KeyRecord | undefined) => void)[] = []
    t.mock.method(directory, 'find', () => new Promise((resolve) => answers.push(resolve)))
    const first = cache.find('a')
    const failed = assert.rejects(async () => first, /has not answered for 100 ms/)
    await pass(100)
    await failed
    const second = cache.find('a')
    answers[1]?.(record('new'))
    assert.equal((await second)?.id, 'new')
    answers[0]?.(record('old'))
    await pass(0)
    assert.equal((await cache.find('a'))?.id, 'new')
    assert.equal(answers.length, 2)
  })

  it('asks again at once after a look-up has failed, and shares one while it runs', async (t) => {
    const { cache, directory, pass } = cached(t)
    let asked = 0
    let fail = (_error: Error): void => {}
    t.mock.method(directory, 'find', () => {
      asked++
      return new Promise((_resolve, reject) => {
        fail = reject
      })
    })
    for (const round of [1, 2]) {
      const both = [cache.find('a'), cache.find('a')]
      assert.equal(asked, round)
      fail(new Error(`away ${round}`))
      for (const each of both) await assert.rejects(async () => each, new RegExp(`away ${round}`))
      await pass(0)
    }
  })

  for (const [age, standsIn] of [
    [9999, true],
    [10_000, false],
  ] as const)
    it(`${standsIn ? 'has' : 'does not have'} an answer of ${age} ms ago stand in, and waits accordingly`, async (t) => {
      const { cache, directory, pass } = cached(t, { storeTimeoutMs: 700 })
      await cache.find('a')
      await pass(age)
      t.mock.method(directory, 'find', () => new Promise(() => {}))
      let told: string | undefined
      void Promise.resolve(cache.find('a')).then(
        (found) => (told = `found ${found?.id}`),
        (error: Error) => (told = error.message),
      )
      await pass(499)
      assert.equal(told, undefined)
      await pass(1)
      assert.equal(told, standsIn ? 'found a' : undefined)
      await pass(200)
      assert.equal(told, standsIn ? 'found a' : 'the key directory has not answered for 700 ms')
    })

  it('waits no longer than it may, where that is less than half a second', async (t) => {
    const { cache, directory, pass } = cached(t, { storeTimeoutMs: 50 })
    await cache.find('a')
    await pass(2000)
    t.mock.method(directory, 'find', () => new Promise(() => {}))
    const found = cache.find('a')
    await pass(50)
    assert.equal((await found)?.id, 'a')
  })
})
