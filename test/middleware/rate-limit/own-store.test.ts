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

/** The part of a store that these tests do not try. */
class OwnStore {
  readonly inner = new MemoryLimitStore()

  hold(demand: Demand): void {
    this.inner.hold(demand)
  }

  release(demand: Demand): void {
    void this.inner.release(demand)
  }
}

/** Answers as a promise library of its own does: nothing but `then`. */
class ThenableStore extends OwnStore implements LimitStore {
  away = false

  admit(demand: Demand): Verdict {
    const answer = this.away ? Promise.reject(new StoreAway('away')) : this.inner.admit(demand)
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
class ThrowingStore extends OwnStore implements LimitStore {
  readonly released: string[] = []
  error: Error = new StoreAway('away')

  admit(): Verdict {
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
  it(`a slot that such a store may have taken comes back where ${error.name} refuses the request`, async (t) => {
    const store = new ThrowingStore()
    store.error = error
    const app = await limitedApp(t, { concurrency: 1, store, onStoreError: 'refuse' })
    assert.equal((await app.ask()).envelope.error.code, 'internal_error')
    assert.deepEqual(store.released, [app.calls[0]?.id])
    assert.equal(app.handled, 0)
  })
}

/** A store whose answer a test sets. */
class AnsweringStore extends OwnStore implements LimitStore {
  answer: (verdict: Verdict, demand: Demand) => unknown = (verdict) => verdict

  async admit(demand: Demand): Promise<Verdict> {
    return this.answer(await this.inner.admit(demand), demand) as Verdict
  }
}

it('an error that a store throws at the end of a call affects no call, and is logged', async (t) => {
  const told = t.mock.method(console, 'error', () => {})
  const store = new AnsweringStore()
  const err = new Error('a fault in it')
  store.release = () => {
    throw err
  }
  const app = await limitedApp(t, { concurrency: 1, store })
  assert.equal((await app.ask()).status, 200)
  assert.deepEqual(told.mock.calls[0]?.arguments, ['rate limits: the store failed', { err }])
})

for (const [what, answer] of Object.entries<AnsweringStore['answer']>({
  nothing: () => undefined,
  null: () => null,
  true: () => true,
  'no counts': ({ counts: _, ...rest }) => rest,
  'a count too few': (verdict) => ({ ...verdict, counts: verdict.counts.slice(1) }),
  'a count too many': (verdict) => ({ ...verdict, counts: [...verdict.counts, ...verdict.counts] }),
  'null for one count': (verdict) => ({ ...verdict, counts: [verdict.counts[0], null] }),
  'a first count without a number': (verdict) => ({
    ...verdict,
    counts: [{ resetMs: 1 }, verdict.counts[1]],
  }),
  'a last count without an end': (verdict) => ({ ...verdict, counts: [verdict.counts[0], { used: 1 }] }),
  'a count in a string': ({ counts: [, last], ...rest }) => ({
    ...rest,
    counts: [{ ...last, used: '1' }, last],
  }),
  'less than nothing used': ({ counts: [, last], ...rest }) => ({
    ...rest,
    counts: [{ ...last, used: -1 }, last],
  }),
  'no wait': ({ waitMs: _, ...rest }) => rest,
  'a wait that is no number': (verdict) => ({ ...verdict, waitMs: Number.NaN }),
  'a wait without an end': (verdict) => ({ ...verdict, waitMs: Number.POSITIVE_INFINITY }),
  'a limit that was not asked': (verdict, { charges: [limit] }) => ({
    ...verdict,
    refusedBy: { ...limit, key: 'rpm:key:other' },
  }),
})) {
  it(`a store that answers ${what} fails the call, and never counts as a limit`, async (t) => {
    const store = new AnsweringStore()
    const app = await limitedApp(t, { keyRpm: 5, rpm: 5, concurrency: 1, store })
    store.answer = answer
    assert.equal((await app.ask()).envelope.error.code, 'internal_error')
    assert.equal(app.handled, 0)
    assert.equal(app.calls[0]?.limit, null)
  })
}

it('a store that returns null for `refusedBy` admits the request', async (t) => {
  const store = new AnsweringStore()
  const app = await limitedApp(t, { keyRpm: 5, concurrency: 1, store })
  store.answer = (verdict) => ({ ...verdict, refusedBy: null })
  assert.deepEqual([(await app.ask()).status, (await app.ask()).status], [200, 200])
  assert.equal(app.handled, 2)
})

it('a limit that a store names by its key alone is reported as the request has it', async (t) => {
  const store = new AnsweringStore()
  for (const kind of ['rpm', 'concurrency'] as const) {
    const app = await limitedApp(t, { keyRpm: 5, concurrency: 7, store })
    store.answer = (verdict, { charges, slots }) => ({
      ...verdict,
      waitMs: 2000,
      refusedBy: { key: (kind === 'rpm' ? charges : slots)[0]?.key },
    })
    const { status, headers } = await app.ask()
    assert.deepEqual([status, headers.get('retry-after')], [429, '2'])
    const [level, subject, max] = kind === 'rpm' ? ['key', 'k1', 5] : ['account', 'a1', 7]
    assert.deepEqual(app.calls[0]?.limit, { kind, level, subject, limit: max, retryAfter: 2 })
  }
})
