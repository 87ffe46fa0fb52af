import assert from 'node:assert/strict'
import { after, before, describe, it, type TestContext } from 'node:test'
import { boundedStore, StoreAway } from '../../../lib/core/store-guard/index.ts'

class Store {
  readonly name = 'rows'
  #rows = new Map([['a', 1]])
  async find(id: string) {
    return this.#rows.get(id)
  }
  async never(): Promise<number> {
    return new Promise(() => {})
  }
  throws(): Promise<number> {
    throw new Error('at once')
  }
  async rejects(): Promise<number> {
    throw new Error('rejected')
  }
  async rejectsLate(): Promise<number> {
    await new Promise((resolve) => setTimeout(resolve, 60))
    throw new Error('late')
  }
  plain(): Promise<number> {
    return 7 as unknown as Promise<number>
  }
}

describe('a store with a bound', () => {
  const unhandled: unknown[] = []
  const note = (error: unknown) => void unhandled.push(error)
  before(() => void process.on('unhandledRejection', note))
  after(() => {
    process.off('unhandledRejection', note)
    assert.deepEqual(unhandled, [])
  })
  const limits = { never: 30, rejectsLate: 30 }
  const store = boundedStore('rows', new Store(), limits)

  it('answers as it does without the bound, also if it returns no promise', async () => {
    assert.equal(await store.find('a'), 1)
    assert.equal(await store.plain(), 7)
    assert.equal(store.name, 'rows')
    assert.ok(store instanceof Store)
  })

  it('rejects if an operation throws or rejects', async () => {
    const thrown = store.throws()
    await assert.rejects(thrown, /at once/)
    await assert.rejects(store.rejects(), /rejected/)
  })

  it('rejects after the time limit, and ignores the later result', async () => {
    const late = { name: 'StoreAway', message: 'rows: "never" was not answered in 30 ms' }
    await assert.rejects(store.never(), late)
    await assert.rejects(store.rejectsLate(), StoreAway)
    await new Promise((resolve) => setTimeout(resolve, 60))
    assert.deepEqual(unhandled, [])
  })
})

const turn = () => new Promise((resolve) => setImmediate(resolve))

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

  it('may take ten seconds, or as long as configured', async (t) => {
    const pass = await settled(t, { list: 60_000 })
    assert.deepEqual(await pass(9_999), [])
    const [error] = await pass(1)
    assert.ok(error instanceof StoreAway)
    assert.equal(error.message, 'tickets: "find" was not answered in 10000 ms')
  })

  it('may take longer where that is configured', async (t) => {
    const pass = await settled(t, { list: 60_000 }, 'list')
    assert.deepEqual(await pass(59_999), [])
    const [error] = await pass(1)
    assert.match(String(error), /"list" was not answered in 60000 ms/)
  })
})
