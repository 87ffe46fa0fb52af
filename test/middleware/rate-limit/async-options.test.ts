import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Request } from 'express'
import { MemoryLimitStore, type RateLimitOptions } from '../../../lib/middleware/rate-limit/index.ts'
import { shop } from './shop-app.ts'

describe('functions of the options', () => {
  it('may all answer by promise, and see the request', async (t) => {
    const seen: string[] = []
    const later = async <T>(name: string, value: T): Promise<T> => {
      await sleep(1)
      seen.push(name)
      return value
    }
    const app = await shop(t, {
      skip: async (req) => later('skip', req.headers['x-user'] === 'staff'),
      tokens: () => later('tokens', 10),
      levels: [
        {
          name: 'user',
          by: (req) => later('by', req.headers['x-user'] as string | undefined),
          rpm: () => later('rpm', 2),
          tpm: () => later('tpm', 1000),
          concurrency: () => later('concurrency', 3),
        },
      ],
    })
    const statuses = async (user: string, times: number) => {
      const all: number[] = []
      for (let i = 0; i < times; i++) all.push((await app.ask({ 'x-user': user })).status)
      return all
    }
    assert.deepEqual(await statuses('ann', 3), [200, 200, 429])
    assert.deepEqual(await statuses('bob', 1), [200])
    assert.deepEqual(await statuses('staff', 4), [200, 200, 200, 200])
    assert.equal(app.handled, 7)
    assert.deepEqual(new Set(seen), new Set(['skip', 'by', 'rpm', 'tpm', 'concurrency', 'tokens']))
    const refused = await app.ask({ 'x-user': 'ann' })
    assert.equal(refused.headers.get('x-ratelimit-limit-requests'), '2')
    assert.equal(refused.headers.get('x-ratelimit-limit-tokens'), '1000')
  })

  for (const none of [null, undefined])
    it(`are not asked for tokens where no level limits them: ${none}`, async (t) => {
      let asked = 0
      const tokens = async () => {
        asked++
        return 1
      }
      const levels = [{ name: 'a', by: async () => 'x', rpm: 2, tpm: async () => none as null }]
      const app = await shop(t, { tokens, levels })
      assert.deepEqual([(await app.ask()).status, asked], [200, 0])
    })

  it('may answer by promise now and then', async (t) => {
    let asked = 0
    const by = (): string | Promise<string> => (asked++ % 2 === 0 ? 'one' : Promise.resolve('one'))
    const app = await shop(t, { levels: [{ name: 'all', by, rpm: 4 }] })
    const statuses: number[] = []
    for (let i = 0; i < 6; i++) statuses.push((await app.ask()).status)
    assert.deepEqual(statuses, [200, 200, 200, 200, 429, 429])
  })

  for (const [name, options] of Object.entries({
    'skip throws': { skip: () => fail() },
    'skip rejects': { skip: async () => fail() },
    'by throws': { levels: [{ name: 'a', by: () => fail(), rpm: 1 }] },
    'by rejects': { levels: [{ name: 'a', by: async () => fail(), rpm: 1 }] },
    'a limit rejects': { levels: [{ name: 'a', by: () => 'a', rpm: async () => fail() }] },
    'tokens rejects': { levels: [{ name: 'a', by: () => 'a', tpm: 1 }], tokens: async () => fail() },
    'by returns a number': { levels: [{ name: 'a', by: (() => 7) as never, rpm: 1 }] },
    'a limit is digits': { levels: [{ name: 'a', by: () => 'a', rpm: (async () => '7') as never }] },
  } satisfies Record<string, RateLimitOptions>)) {
    it(`fail the request with 500 and no other where ${name}`, async (t) => {
      const app = await shop(t, options)
      for (let i = 0; i < 2; i++) assert.equal((await app.ask()).status, 500)
      assert.equal(app.handled, 0)
    })
  }

  it('that answer by promise take nothing for a caller who has left meanwhile', async (t) => {
    const { promise, resolve } = Promise.withResolvers<string>()
    const store = new MemoryLimitStore()
    const admit = t.mock.method(store, 'admit')
    const asked = Promise.withResolvers<Request>()
    const by = (req: Request): Promise<string> => {
      asked.resolve(req)
      return promise
    }
    const app = await shop(t, { store, levels: [{ name: 'a', by, rpm: 9 }] })
    const leaving = new AbortController()
    const left = app.ask({}, leaving.signal).catch(() => 'left')
    const req = await asked.promise
    leaving.abort()
    assert.equal(await left, 'left')
    await once(req.socket, 'close')
    resolve('x')
    await sleep(20)
    assert.equal(admit.mock.callCount(), 0)
    assert.equal(app.handled, 0)
  })
})

function fail(): never {
  throw new Error('no database')
}
