import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { MAX_TIMER_MS } from '../../../lib/core/options/index.ts'
import {
  type IdempotencyOptions,
  idempotency,
  MemoryIdempotencyStore,
} from '../../../lib/middleware/idempotency/index.ts'
import { payments } from './payments-app.ts'

describe('the options of idempotency', () => {
  const answers = { partBytes: 10, write() {}, drop() {} }
  for (const [name, value] of [
    ['store', {}],
    ['store', { renew() {} }],
    ['by', 'all'],
    ['keepRecordsMs', 0],
    ['claimLeaseMs', 399],
    ['claimLeaseMs', 400.5],
    ['claimLeaseMs', MAX_TIMER_MS + 1],
    ['answerLimitBytes', -1],
    ['answers', {}],
    ['answers', { ...answers, write: undefined }],
    ['answers', { ...answers, drop: undefined }],
    ['replay', 'true'],
    ['keepWhen', true],
    ['handlerMs', 0],
    ['settledBy', 'me'],
    ['storeTimeoutMs', 0],
    ['onStoreChange', {}],
    ['logger', {}],
  ] as const)
    it(`refuse "${name}" of ${JSON.stringify(value)}, by its name`, () => {
      assert.throws(() => idempotency({ [name]: value } as IdempotencyOptions), {
        name: 'TypeError',
        message: new RegExp(`^idempotency: .*"${name}"`),
      })
    })

  for (const options of [
    { claimLeaseMs: 400 },
    { claimLeaseMs: MAX_TIMER_MS },
    { answerLimitBytes: 0 },
    { answers: answers as never },
    { replay: true, keepWhen: () => true },
    { replay: false },
    { replay: true, settledBy: 'store' },
    { settledBy: 'ledger' },
    { storeTimeoutMs: 1 },
  ] satisfies IdempotencyOptions[])
    it(`may be ${Object.keys(options)}: ${Object.values(options)}`, () => {
      assert.doesNotThrow(() => idempotency(options))
    })
})

describe('a status that the app says nothing of', () => {
  for (const [status, isKept] of [
    ...[200, 201, 204, 303, 400, 404, 408, 410, 422, 428, 430, 498, 500, 502, 504].map(
      (each) => [each, true] as const,
    ),
    ...[409, 429, 499, 503].map((each) => [each, false] as const),
  ])
    it(`${isKept ? 'uses the key up' : 'frees the key'}: ${status}`, async (t) => {
      const app = await payments(t, (_req, res) => void res.status(status).end())
      await app.pay('a')
      const again = await app.pay('a')
      assert.equal(again.status, status)
      assert.equal(again.headers.get('idempotent-replayed'), isKept ? 'true' : null)
      assert.equal(app.runs, isKept ? 1 : 2)
    })
})

describe('the owner that an app names', () => {
  for (const [name, by] of [
    ['no text', () => 7 as never],
    ['a promise', async () => 'acme'],
    ['nothing', () => undefined as never],
  ] as const)
    it(`is refused where it is ${name}, and nothing is run`, async (t) => {
      const app = await payments(t, (_req, res) => void res.end(), { by: by as never })
      assert.equal((await app.pay('a')).status, 500)
      assert.equal(app.runs, 0)
    })
})

describe('the times of a key, where the app says nothing of them,', () => {
  const opened = (options: IdempotencyOptions = {}) => {
    const store = new MemoryIdempotencyStore()
    const asked: [operation: string, ms: number][] = []
    const claim = store.claim.bind(store)
    store.claim = async (request) => {
      asked.push(['lease', request.leaseUntil - request.now])
      return claim(request)
    }
    const complete = store.complete.bind(store)
    store.complete = async (record, keepUntil, answer) => {
      asked.push(['keep', Math.round((keepUntil - Date.now()) / 1000)])
      return complete(record, keepUntil, answer)
    }
    return { asked, options: { ...options, store } }
  }

  it('are a lease of a minute and a day for what has run', async (t) => {
    const { asked, options } = opened()
    const app = await payments(t, (_req, res) => void res.end(), options)
    await app.pay('a')
    assert.deepEqual(asked, [
      ['lease', 60_000],
      ['keep', 86_400],
    ])
  })

  it('are otherwise as the app says', async (t) => {
    const { asked, options } = opened({ claimLeaseMs: 5000, keepRecordsMs: 7_000_000 })
    const app = await payments(t, (_req, res) => void res.end(), options)
    await app.pay('a')
    assert.deepEqual(asked, [
      ['lease', 5000],
      ['keep', 7000],
    ])
  })
})
