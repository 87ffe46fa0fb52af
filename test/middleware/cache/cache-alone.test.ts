import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import express, { type RequestHandler } from 'express'
import { Keyv, type KeyvStoreAdapter } from 'keyv'
import { type CacheOptions, cache, callOf, guard, rateLimit } from '../../../lib/index.ts'
import { eventually, recordingLogger, serveApp } from '../../support/app-server.ts'

/** An app whose handler answers with the number of its run. */
async function countingApp(
  t: { after(run: () => unknown): void },
  options: Partial<CacheOptions> = {},
  { before = [], handler }: { before?: RequestHandler[]; handler?: RequestHandler } = {},
) {
  let runs = 0
  const count: RequestHandler = (req, res, next) => {
    runs++
    if (handler) return handler(req, res, next)
    res.json({ run: runs })
  }
  const server = await serveApp((app) => {
    const cached = cache({ ttl: 60_000, by: (req) => req.get('x-user'), ...options })
    app.all('/ask', express.json(), ...before, cached, count)
  })
  t.after(() => server.close())
  const ask = (body: unknown = { q: 1 }, headers: Record<string, string> = {}, path = '/ask') =>
    fetch(server.url + path, {
      method: 'POST',
      body: typeof body === 'string' ? body : JSON.stringify(body),
      headers: { 'content-type': 'application/json', 'x-user': 'ann', ...headers },
    })
  return { ask, runs: () => runs, url: server.url }
}

const outcomeOf = (response: Response) => response.headers.get('x-gateway-cache')

describe('cache in front of a handler', () => {
  it('answers a repetition with status, headers and body of the first, and a request id of its own', async (t) => {
    const { ask, runs } = await countingApp(
      t,
      {},
      { handler: (_req, res) => void res.set('x-made-by', 'me').type('text/plain').send('ünï') },
    )
    const first = await ask({ a: 1, b: [2, { c: 3 }] })
    const again = await ask('{ "b":[2,{"c":3}],  "a":1.0 }')
    assert.deepEqual([outcomeOf(first), outcomeOf(again), runs()], ['miss', 'hit', 1])
    for (const name of ['content-type', 'x-made-by', 'content-length', 'etag'])
      assert.equal(again.headers.get(name), first.headers.get(name), name)
    assert.notEqual(again.headers.get('x-request-id'), first.headers.get('x-request-id'))
    assert.deepEqual([await first.text(), await again.text()], ['ünï', 'ünï'])
  })

  it('runs what differs: the body, the path, the query, the method, the language, the owner', async (t) => {
    const { ask, runs, url } = await countingApp(t)
    await ask()
    const others = [
      await ask({ q: 2 }),
      await ask({ q: '1' }),
      await ask(undefined, {}, '/ask?page=2'),
      await ask(undefined, { 'accept-language': 'de' }),
      await ask(undefined, { accept: 'text/plain' }),
      await ask(undefined, { 'x-user': 'ben' }),
      await fetch(`${url}/ask`, { headers: { 'x-user': 'ann' } }),
    ]
    assert.deepEqual(others.map(outcomeOf), Array(7).fill('miss'))
    assert.equal(runs(), 8)
  })

  it('does not keep what a caller must not get twice', async (t) => {
    const handlers: Record<string, RequestHandler> = {
      created: (_req, res) => void res.status(201).json({}),
      failed: (_req, _res, next) => next(new Error('broken')),
      private: (_req, res) => void res.set('cache-control', 'private').json({}),
      'private by members': (_req, res) => void res.set('cache-control', 'Private="x-name, x-mail"').json({}),
      'no-store': (_req, res) => void res.set('cache-control', 'max-age=5, no-store').json({}),
      'varies by cookie': (_req, res) => void res.vary('Cookie').json({}),
      encoded: (_req, res) => void res.set('content-encoding', 'gzip').end(),
      'too large': (_req, res) => void res.json('x'.repeat(200)),
    }
    for (const [name, handler] of Object.entries(handlers)) {
      const { ask, runs } = await countingApp(t, { answerLimitBytes: 100 }, { handler })
      await (await ask()).arrayBuffer().catch(() => {})
      await (await ask()).arrayBuffer().catch(() => {})
      assert.equal(runs(), 2, name)
    }
  })

  it('does not keep what an earlier middleware has forbidden to store', async (t) => {
    const noStore: RequestHandler = (_req, res, next) => {
      res.set('cache-control', 'no-store')
      next()
    }
    const { ask, runs } = await countingApp(t, {}, { before: [noStore] })
    await ask()
    assert.equal(outcomeOf(await ask()), 'miss')
    assert.equal(runs(), 2)
  })

  it('keeps what varies by what earlier middlewares vary it by', async (t) => {
    const cors: RequestHandler = (_req, res, next) => {
      res.vary('Origin')
      next()
    }
    const handler: RequestHandler = (_req, res) => void res.vary('Accept').json({})
    const { ask } = await countingApp(t, {}, { before: [cors], handler })
    await ask()
    const again = await ask()
    assert.deepEqual([outcomeOf(again), again.headers.get('vary')], ['hit', 'Origin, Accept'])
  })

  it('keeps no cookie of the first caller', async (t) => {
    const { ask } = await countingApp(
      t,
      {},
      { handler: (_req, res) => void res.cookie('sid', 'first').json({}) },
    )
    assert.match(String((await ask()).headers.get('set-cookie')), /first/)
    const again = await ask()
    assert.deepEqual([outcomeOf(again), again.headers.get('set-cookie')], ['hit', null])
  })

  it('passes by what is not for it: other methods, an Idempotency-Key, a ttl of 0, a caller without a name', async (t) => {
    const { ask, runs, url } = await countingApp(t, {
      ttl: (req) => (req.get('x-fresh') ? 0 : 60_000),
      by: (req) => (req.get('x-user') === 'nobody' ? null : req.get('x-user')),
    })
    await ask()
    const passed = [
      await ask(undefined, { 'idempotency-key': 'k' }),
      await ask(undefined, { 'x-fresh': '1' }),
      await ask(undefined, { 'x-user': 'nobody' }),
      await fetch(`${url}/ask`, {
        method: 'PUT',
        body: '{"q":1}',
        headers: { 'content-type': 'application/json', 'x-user': 'ann' },
      }),
    ]
    assert.deepEqual(passed.map(outcomeOf), [null, null, null, null])
    assert.equal(runs(), 5)
    assert.equal(outcomeOf(await ask()), 'hit')
  })

  it('respects no-store, which neither reads nor keeps, and no-cache, which keeps', async (t) => {
    const { ask, runs } = await countingApp(t)
    const bodyOf = async (response: Response) => ((await response.json()) as { run: number }).run
    const noStore = await ask(undefined, { 'cache-control': 'no-store' })
    assert.deepEqual([outcomeOf(noStore), await bodyOf(noStore)], [null, 1])
    assert.equal(await bodyOf(await ask()), 2)
    assert.equal(await bodyOf(await ask(undefined, { 'cache-control': 'no-store' })), 3)
    assert.equal(await bodyOf(await ask()), 2)
    const fresh = await ask(undefined, { 'cache-control': 'max-age=0, No-Cache' })
    assert.deepEqual([outcomeOf(fresh), await bodyOf(fresh)], ['miss', 4])
    assert.equal(await bodyOf(await ask()), 4)
    assert.equal(runs(), 4)
  })

  it('forgets an answer after its ttl, also one that was kept for longer', async (t) => {
    t.mock.timers.enable({ apis: ['Date'], now: 1_000_000 })
    let ttl = 10_000
    const { ask } = await countingApp(t, { ttl: () => ttl })
    await ask()
    t.mock.timers.setTime(1_009_999)
    assert.equal(outcomeOf(await ask()), 'hit')
    t.mock.timers.setTime(1_010_001)
    assert.equal(outcomeOf(await ask()), 'miss')
    ttl = 500
    t.mock.timers.setTime(1_010_502)
    assert.equal(outcomeOf(await ask()), 'miss')
  })

  it('gives a stream again as a stream', async (t) => {
    const { ask, runs } = await countingApp(
      t,
      {},
      {
        async handler(_req, res) {
          res.writeHead(200, { 'content-type': 'text/event-stream' })
          for (const each of ['a', 'b']) {
            res.write(`data: ${each}\n\n`)
            await new Promise(setImmediate)
          }
          res.end()
        },
      },
    )
    for (const outcome of ['miss', 'hit']) {
      const response = await ask()
      assert.equal(outcomeOf(response), outcome)
      assert.equal(response.headers.get('content-type'), 'text/event-stream')
      assert.equal(await response.text(), 'data: a\n\ndata: b\n\n')
    }
    assert.equal(runs(), 1)
  })

  it('does not keep an answer whose caller has left', async (t) => {
    const left = Promise.withResolvers<void>()
    const ended = Promise.withResolvers<void>()
    let isFirst = true
    const { ask } = await countingApp(
      t,
      {},
      {
        async handler(req, res) {
          if (!isFirst) return void res.end('part and rest')
          isFirst = false
          res.write('part')
          callOf(req).onLeave(left.resolve)
          await left.promise
          res.end(' and rest')
          ended.resolve()
        },
      },
    )
    const first = await ask()
    await first.body?.cancel()
    await ended.promise
    const again = await ask()
    assert.deepEqual([outcomeOf(again), await again.text()], ['miss', 'part and rest'])
  })

  it('lets a hit pass a limit first, and does not give the limits of the first request again', async (t) => {
    const limit = rateLimit({ levels: [{ name: 'user', by: (req) => req.get('x-user'), rpm: 2 }] })
    const { ask, runs } = await countingApp(
      t,
      { onHit: limit },
      {
        handler: (req, res, next) =>
          limit(req, res, (error?: unknown) => (error ? next(error) : void res.json({ ok: true }))),
      },
    )
    const all = [await ask(), await ask(), await ask()]
    assert.deepEqual(
      all.map((each) => [each.status, each.headers.get('x-ratelimit-remaining-requests')]),
      [
        [200, '1'],
        [200, '0'],
        [429, '0'],
      ],
    )
    assert.equal(runs(), 1)
  })

  it('has an answer checked by the guards of the request that gets it', async (t) => {
    let masks = false
    const { ask, runs } = await countingApp(
      t,
      {},
      {
        before: [
          guard({ output: (text) => (masks ? { replace: text.replace('secret', '[removed]') } : 'allow') }),
        ],
        handler: (_req, res) => void res.json({ said: 'a secret' }),
      },
    )
    assert.match(await (await ask()).text(), /a secret/)
    masks = true
    const again = await ask()
    assert.deepEqual([outcomeOf(again), await again.text()], ['hit', '{"said":"a [removed]"}'])
    assert.equal(runs(), 1)
  })

  it('says at the first request what is missing: an owner, a parser', async (t) => {
    const logger = recordingLogger()
    const server = await serveApp((app) => {
      app.post('/nobody', express.json(), cache({ ttl: 1 }), (_req, res) => void res.end())
      app.post('/unread', cache({ ttl: 1, by: () => '' }), (_req, res) => void res.end())
      app.use(((error: Error, _req, res, _next) => {
        logger.error({}, error.message)
        res.status(500).end()
      }) as express.ErrorRequestHandler)
    })
    t.after(() => server.close())
    for (const path of ['/nobody', '/unread'])
      await fetch(server.url + path, {
        method: 'POST',
        body: '{}',
        headers: { 'content-type': 'application/json' },
      })
    const [nobody, unread] = logger.lines.map(({ message }) => message)
    assert.match(String(nobody), /^cache: .*mount authenticate before it, or give "by"/)
    assert.match(String(unread), /^cache: the body was not read/)
  })
})

describe('the store of a cache', () => {
  it('can be a Keyv, whose settings stay, or an adapter', async (t) => {
    const adapter = (): KeyvStoreAdapter & { kept: Map<string, string> } => {
      const kept = new Map<string, string>()
      return {
        opts: {},
        kept,
        on() {
          return this
        },
        async get<Value>(key: string) {
          return kept.get(key) as Value
        },
        async set(key, value) {
          kept.set(key, value)
        },
        delete: async (key) => kept.delete(key),
        clear: async () => kept.clear(),
      }
    }
    for (const [prefix, storeOf] of [
      ['mine:', (store: KeyvStoreAdapter) => new Keyv({ store, namespace: 'mine' })],
      ['gateway:cache:', (store: KeyvStoreAdapter) => store],
    ] as const) {
      const store = adapter()
      const { ask, runs } = await countingApp(t, { store: storeOf(store) })
      await ask()
      assert.equal(outcomeOf(await ask()), 'hit')
      assert.equal(runs(), 1)
      const [key = ''] = store.kept.keys()
      assert.ok(key.startsWith(prefix), key)
      // A kept text that cannot be read is no answer.
      store.kept.set(key, '{"value":')
      assert.equal(outcomeOf(await ask()), 'miss')
      store.kept.set(key, '{"value":{"answer":1}}')
      assert.equal(outcomeOf(await ask()), 'miss')
      for (const answer of ['', 'null', '[]', '{}', '{"status":200,"body":"","encoding":"utf8"}']) {
        store.kept.set(key, JSON.stringify({ value: { id: 'req_1', at: Date.now(), answer } }))
        const anew = await ask()
        assert.deepEqual([anew.status, outcomeOf(anew)], [200, 'miss'], answer)
        assert.equal(outcomeOf(await ask()), 'hit', 'the new answer has its place')
      }
    }
  })

  for (const [how, fail] of [
    ['rejects', () => Promise.reject(new Error('gone'))],
    ['never answers', () => new Promise<never>(() => {})],
  ] as const)
    it(`that ${how} costs no answer, little time and one line`, async (t) => {
      let isAway = true
      const changes: boolean[] = []
      const kept = new Map<string, unknown>()
      const store = {
        opts: {},
        on() {
          return this
        },
        get: (key: string) => (isAway ? fail() : Promise.resolve(kept.get(key))),
        set: (key: string, value: unknown) => (isAway ? fail() : Promise.resolve(kept.set(key, value))),
        delete: async () => true,
        clear: async () => {},
      } as unknown as KeyvStoreAdapter
      const logger = recordingLogger()
      const { ask, runs } = await countingApp(t, {
        store,
        logger,
        onStoreChange: (away) => changes.push(away),
      })
      const begun = performance.now()
      for (let i = 0; i < 5; i++) assert.equal((await ask()).status, 200)
      // Of five requests at most two try the store.
      assert.ok(performance.now() - begun < 2500, 'requests do not wait')
      assert.equal(runs(), 5)
      isAway = false
      await eventually(() => {
        void ask().then((each) => each.arrayBuffer())
        return changes.length === 2
      }, 'the store is back')
      assert.deepEqual(
        logger.lines.map(({ message }) => message),
        ['store is away', 'store is back'],
      )
      assert.deepEqual(changes, [true, false])
      assert.equal(outcomeOf(await ask()), 'hit')
    })

  it('that reports a failure as an event only is away, too', async (t) => {
    const changes: boolean[] = []
    const listeners: ((error: Error) => void)[] = []
    const store = {
      opts: {},
      on: (_event: string, listener: (error: Error) => void) => listeners.push(listener),
      get: async () => void listeners.map((each) => each(new Error('gone'))),
      set: async () => {},
      delete: async () => true,
      clear: async () => {},
    } as unknown as KeyvStoreAdapter
    const { ask } = await countingApp(t, {
      store,
      logger: recordingLogger(),
      onStoreChange: (away) => changes.push(away),
    })
    assert.equal((await ask()).status, 200)
    assert.deepEqual(changes, [true])
  })

  it('in memory holds no more than its bytes, and keeps what is asked for', async () => {
    const { memoryStore } = await import('../../../lib/middleware/cache/memory-store.ts')
    const store = memoryStore(100_000)
    const value = 'x'.repeat(10_000)
    await store.set('used', value)
    for (let i = 0; i < 100; i++) {
      await store.set(`k${i}`, value)
      await store.get('used')
    }
    const there = await Promise.all(Array.from({ length: 100 }, (_, i) => store.get(`k${i}`)))
    const count = there.filter((each) => each !== undefined).length
    assert.ok(count > 0 && count <= 4, `${count} beside the one that is used`)
    assert.equal(await store.get('used'), value)
    await store.set('large', 'x'.repeat(60_000))
    assert.equal(await store.get('large'), undefined)
  })

  for (const tenants of [2, 20])
    it(`in memory leaves a tenant its share, although ${tenants} others fill it together`, async (t) => {
      const { memoryStore } = await import('../../../lib/middleware/cache/memory-store.ts')
      // About 17 KB an answer: each of 21 tenants can have five of them.
      const store = memoryStore(17_500 * 5 * (tenants + 1))
      const handler: RequestHandler = (_req, res) => void res.json('x'.repeat(8000))
      const { ask } = await countingApp(t, { store }, { handler })
      const questions = [0, 1, 2, 3]
      const ben = { 'x-user': 'ben' }
      for (const q of questions) await ask({ q }, ben)
      for (let q = 0; q < 12; q++)
        for (let i = 0; i < tenants; i++) await ask({ q }, { 'x-user': `flood-${i}` })
      for (const q of questions) assert.equal(outcomeOf(await ask({ q }, ben)), 'hit', `${q} of ben`)
      for (let i = 0; i < tenants; i++) {
        const user = { 'x-user': `flood-${i}` }
        assert.equal(outcomeOf(await ask({ q: 11 }, user)), 'hit', `the last of ${i}`)
        assert.equal(outcomeOf(await ask({ q: 0 }, user)), 'miss', `the first of ${i}`)
      }
    })

  it('in memory leaves half of it to others, however much one owner has kept', async (t) => {
    const { memoryStore } = await import('../../../lib/middleware/cache/memory-store.ts')
    const store = memoryStore(100_000)
    const handler: RequestHandler = (_req, res) => void res.json('x'.repeat(8000))
    const { ask, runs } = await countingApp(t, { store }, { handler })
    const ben = { 'x-user': 'ben' }
    for (const q of [1, 2]) await ask({ q }, ben)
    for (let i = 0; i < 50; i++) await ask({ q: `${i}` })
    assert.equal(outcomeOf(await ask({ q: '49' })), 'hit')
    assert.equal(outcomeOf(await ask({ q: '0' })), 'miss')
    for (const q of [1, 2]) assert.equal(outcomeOf(await ask({ q }, ben)), 'hit')
    // Alone, an owner has all of it.
    const alone = memoryStore(100_000)
    for (let i = 0; i < 4; i++) await alone.set(`one:${i}`, 'x'.repeat(12_000))
    for (let i = 0; i < 4; i++) assert.notEqual(await alone.get(`one:${i}`), undefined)
    assert.equal(runs(), 53)
  })
})
