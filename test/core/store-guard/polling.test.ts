import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { boundedStore, StoreAway } from '../../../lib/core/store-guard/index.ts'
import { aPollTime, Polling } from '../../../lib/core/store-guard/polling.ts'

const turn = () => new Promise((resolve) => setImmediate(resolve))

/** A polling on a clock that stands, and the reads that have begun. */
function polled(t: TestContext, pollMs?: number) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const reads: PromiseWithResolvers<void>[] = []
  const polling = new Polling(() => {
    const read = Promise.withResolvers<void>()
    reads.push(read)
    return read.promise
  }, pollMs)
  t.after(() => polling.close())
  const pass = async (ms: number) => {
    t.mock.timers.tick(ms)
    await turn()
    return reads.length
  }
  return { polling, reads, pass }
}

describe('a store that is read again and again', () => {
  for (const pollMs of [undefined, 500]) {
    const ms = pollMs ?? 2000
    it(`is read ${ms} ms after each read has ended, also after one that failed`, async (t) => {
      const { reads, pass } = polled(t, pollMs)
      assert.deepEqual([await pass(ms - 1), await pass(1)], [0, 1])
      assert.equal(await pass(10 * ms), 1, 'one read at a time')
      reads[0]?.reject(new Error('away'))
      await turn()
      assert.deepEqual([await pass(ms - 1), await pass(1)], [1, 2])
      reads[1]?.resolve()
      await turn()
      assert.equal(await pass(ms), 3)
    })
  }

  it('is read at once where somebody asks, after the read that has begun before', async (t) => {
    const { polling, reads } = polled(t)
    let done = 0
    const first = polling.now().then(() => done++)
    await turn()
    const others = [polling.now(), polling.now()].map((read) => read.then(() => done++))
    await turn()
    assert.equal(reads.length, 1)
    reads[0]?.resolve()
    await first
    await turn()
    assert.deepEqual([reads.length, done], [2, 1], 'one read is enough for both')
    reads[1]?.resolve()
    await Promise.all(others)
    assert.equal(done, 3)
  })

  it('tells who asked of a failure, and those who ask behind it nothing of that', async (t) => {
    const { polling, reads } = polled(t)
    const failed = assert.rejects(polling.now(), /away/)
    await turn()
    const next = polling.now()
    reads[0]?.reject(new Error('away'))
    await failed
    await turn()
    reads[1]?.resolve()
    await next
  })

  it('is read no more once it is closed, also where a read was under way', async (t) => {
    const { polling, reads, pass } = polled(t)
    assert.equal(polling.closed, false)
    await pass(2000)
    polling.close()
    reads[0]?.resolve()
    await turn()
    assert.deepEqual([await pass(10_000), polling.closed], [1, true])
    const other = new Polling(async () => assert.fail('it is closed'))
    other.close()
    await pass(10_000)
  })

  it('is read at least every four seconds', () => {
    for (const ms of [1, 0.5, 4000]) assert.equal(aPollTime.accepts(ms), true)
    for (const ms of [0, -1, 4001, '5', undefined, Number.NaN]) assert.equal(aPollTime.accepts(ms), false)
  })
})

describe('an operation of a bounded store', () => {
  const settled = async (t: TestContext, longer?: Record<string, number>, name: 'find' | 'list' = 'find') => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const never = () => new Promise<void>(() => {})
    const ends: unknown[] = []
    const store = boundedStore('tickets', { find: never, list: never }, longer)
    void store[name]().catch((error: unknown) => ends.push(error))
    return async (ms: number) => {
      t.mock.timers.tick(ms)
      await turn()
      await turn()
      return ends
    }
  }

  it('may take ten seconds, or as long as it is told', async (t) => {
    const pass = await settled(t, { list: 60_000 })
    assert.deepEqual(await pass(9_999), [])
    const [error] = await pass(1)
    assert.ok(error instanceof StoreAway)
    assert.equal(error.message, 'tickets: "find" was not answered in 10000 ms')
  })

  it('may take longer where it is told so', async (t) => {
    const pass = await settled(t, { list: 60_000 }, 'list')
    assert.deepEqual(await pass(59_999), [])
    const [error] = await pass(1)
    assert.match(String(error), /"list" was not answered in 60000 ms/)
  })
})
