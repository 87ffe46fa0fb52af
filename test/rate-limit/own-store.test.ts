import assert from 'node:assert/strict'
import { it } from 'node:test'
import { type Demand, type LimitStore, MemoryLimitStore, type Verdict } from '../../lib/rate-limit/index.ts'
import { StoreAway } from '../../lib/store-guard/index.ts'
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
