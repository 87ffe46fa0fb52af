import assert from 'node:assert/strict'
import { it } from 'node:test'
import { StoreAway } from '../../../lib/core/store-guard/index.ts'
import {
  type Demand,
  type LimitStore,
  MemoryLimitStore,
  type Verdict,
} from '../../../lib/middleware/rate-limit/index.ts'
import { limitedApp } from './limited-app.ts'

/** Answers as a promise library of its own does: nothing but `then`. */
class ThenableStore extends MemoryLimitStore implements LimitStore {
  away = false

  override admit(demand: Demand): Verdict {
    const answer = this.away ? Promise.reject(new StoreAway('away')) : Promise.resolve(super.admit(demand))
    // biome-ignore lint/suspicious/noThenProperty: that is what is tried
    return { then: answer.then.bind(answer) } as unknown as Verdict
  }
}

it('a store that answers with another promise than the runtime’s is waited for', async (t) => {
  const store = new ThenableStore()
  const app = await limitedApp(t, { keyRpm: 2, store })
  const statuses: number[] = []
  for (let i = 0; i < 4; i++) statuses.push((await app.ask()).status)
  assert.deepEqual(statuses, [200, 200, 429, 429])
  assert.equal(app.handled, 2)
})

it('a failure of such a store is one of the store', async (t) => {
  const store = new ThenableStore()
  store.away = true
  const app = await limitedApp(t, { keyRpm: 2, store, onStoreError: 'refuse' })
  assert.equal((await app.ask()).envelope.error.code, 'internal_error')
  assert.equal(app.handled, 0)
})

/** A store that works without promises, as one on SQLite may. */
class ThrowingStore extends MemoryLimitStore implements LimitStore {
  readonly released: string[] = []
  error: Error = new StoreAway('away')

  override admit(): Verdict {
    throw this.error
  }

  override release({ id }: Demand): void {
    this.released.push(id)
  }
}

it('a store that throws that it is away is away as one that rejects so', async (t) => {
  const app = await limitedApp(t, { keyRpm: 1, concurrency: 1, store: new ThrowingStore() })
  assert.deepEqual([(await app.ask()).status, (await app.ask()).status], [200, 429])
  assert.equal(app.handled, 1)
})

for (const error of [new StoreAway('away'), new Error('a fault in it')]) {
  it(`what such a store may have taken comes back where ${error.name} refuses the request`, async (t) => {
    const store = new ThrowingStore()
    store.error = error
    const app = await limitedApp(t, { concurrency: 1, store, onStoreError: 'refuse' })
    assert.equal((await app.ask()).envelope.error.code, 'internal_error')
    assert.deepEqual(store.released, [app.calls[0]?.id])
    assert.equal(app.handled, 0)
  })
}
