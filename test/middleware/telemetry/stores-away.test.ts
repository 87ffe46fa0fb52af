import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { GatewayError } from '../../../lib/core/errors/index.ts'
import { StoreWatch } from '../../../lib/middleware/telemetry/index.ts'
import { chatBody } from '../../support/gateway.ts'
import { chatAnswer, startUpstream } from '../../support/scripted-upstream.ts'
import { startObserved } from './observed-gateway.ts'
import type { Scrape } from './scrape.ts'

const ADMIN = 'an-admin-token-of-some-length'

/** A store all of whose operations fail while `away` says so. */
function failing<S extends object>(store: S, away: () => boolean): S {
  return new Proxy(store, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name, target)
      if (typeof member !== 'function') return member
      return (...args: unknown[]) =>
        away() ? Promise.reject(new Error('the database is down')) : Reflect.apply(member, target, args)
    },
  })
}

test('each store that is away is reported by its name, and again when it is back', async (t) => {
  const upstream = await startUpstream((res) => chatAnswer(res))
  t.after(() => upstream.close())
  let down = true
  const away = () => down
  const gateway = await startObserved(t, {
    lines: [{ url: upstream.url }],
    adminToken: ADMIN,
    stores: ({ keys, tasks, tickets, changes, resources: kept, lineSwitches }) => ({
      keys: failing(keys, away),
      tasks: failing(tasks, away),
      tickets: failing(tickets, away),
      changes: failing(changes, away),
      resources: failing(kept, away),
      lineSwitches: failing(lineSwitches, away),
    }),
  })
  const admin = { authorization: `Bearer ${ADMIN}` }
  const askAll = async () => {
    await (await gateway.post('/v1/chat/completions', chatBody())).text()
    await (await gateway.get('/v1/tickets')).text()
    await (await gateway.get('/v1/responses/resp_none')).text()
    await (await gateway.get('/admin/changes', admin)).text()
    await (await gateway.get('/admin/tickets', admin)).text()
  }
  const names = ['keys', 'video_tasks', 'tickets', 'changes', 'line_switches']
  const told = (scrape: Scrape, metric: string) =>
    names.map((model_gateway_store) => scrape.sum(metric, { model_gateway_store }))

  // Nobody gets past the keys, so nothing is asked of the stored responses.
  await askAll()
  let scrape = await gateway.scrape()
  while (told(scrape, 'model_gateway_store_away').includes(0)) {
    await sleep(50)
    scrape = await gateway.scrape()
  }
  assert.deepEqual(told(scrape, 'model_gateway_store_outages_total'), [1, 1, 1, 1, 1])
  assert.equal(scrape.sum('model_gateway_store_away', { model_gateway_store: 'kept_things' }), 0)

  down = false
  do {
    await sleep(50)
    await askAll()
    scrape = await gateway.scrape()
  } while (told(scrape, 'model_gateway_store_away').includes(1))
  assert.deepEqual(told(scrape, 'model_gateway_store_outages_total'), [1, 1, 1, 1, 1])
})

test('stored responses that cannot be looked up', async (t) => {
  const upstream = await startUpstream((res) => chatAnswer(res))
  t.after(() => upstream.close())
  const gateway = await startObserved(t, {
    lines: [{ url: upstream.url }],
    stores: ({ resources: kept }) => ({ resources: failing(kept, () => true) }),
  })
  const kept = { model_gateway_store: 'kept_things' }
  let scrape = await gateway.scrape()
  // A store that only rejects is away after a while. Asked without a pause, it would be asked more often than a key may.
  while (scrape.sum('model_gateway_store_away', kept) === 0) {
    assert.equal((await gateway.get('/v1/responses/resp_none')).status, 500)
    await sleep(50)
    scrape = await gateway.scrape()
  }
  assert.equal(scrape.sum('model_gateway_store_outages_total', kept), 1)
})

test('a watched store answers as it does unwatched, and what it refuses is an answer', async (t) => {
  class Store {
    readonly #name = 'of its own'
    now(): string {
      return this.#name
    }
    async refuse(): Promise<never> {
      throw new GatewayError('conflict')
    }
    fail(): never {
      throw new TypeError('not open')
    }
    hang(): Promise<never> {
      return new Promise(() => {})
    }
  }
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const watch = new StoreWatch()
  const store = watch.watching(new Store())
  assert.ok(store instanceof Store)
  assert.equal(store.now(), 'of its own')
  await assert.rejects(store.refuse(), { code: 'conflict' })
  assert.equal(watch.away, false)

  assert.throws(() => store.fail(), /not open/)
  await new Promise(setImmediate)
  assert.deepEqual([watch.away, watch.outages], [true, 1])
  store.now()
  assert.equal(watch.away, false)

  void store.hang()
  t.mock.timers.tick(1999)
  await new Promise(setImmediate)
  assert.equal(watch.away, false)
  t.mock.timers.tick(1)
  await new Promise(setImmediate)
  assert.deepEqual([watch.away, watch.outages], [true, 2])
  await assert.rejects(store.refuse())
  assert.equal(watch.away, false, 'whoever refuses is there')

  void store.hang()
  t.mock.timers.tick(1000)
  store.now()
  t.mock.timers.tick(1000)
  await new Promise(setImmediate)
  assert.equal(watch.away, false, 'one that is late while others are answered')
})
