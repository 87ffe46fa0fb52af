import assert from 'node:assert/strict'
import type { AddressInfo } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import compression from 'compression'
import cors from 'cors'
import express, { type Express, Router } from 'express'
// @ts-expect-error: its types are those of Express 5, near enough for this.
import express4 from 'express-4'
import session from 'express-session'
import helmet from 'helmet'
import morgan from 'morgan'
import { placeOrder, type Shop, shop } from './shop-chain.ts'

const logged: string[] = []

/** Each way of embedding: mounts the shop in an app and says where its orders are placed. */
const WAYS: Record<string, (app: Express, shop: Shop) => string> = {
  'plain Express 5': (app, { guards, once, order, fail }) => {
    app.post('/orders', ...guards, express.json(), once, order)
    app.use(fail)
    return '/orders'
  },
  'behind helmet, cors, compression, morgan and express-session': (app, { guards, once, order, fail }) => {
    app.use(helmet(), cors({ origin: 'https://shop.example' }), compression({ threshold: 0 }))
    app.use(morgan('tiny', { stream: { write: (line) => void logged.push(line) } }))
    app.use(session({ secret: 'not a secret', resave: false, saveUninitialized: true }))
    app.post('/orders', ...guards, express.json(), once, order)
    app.use(fail)
    return '/orders'
  },
  'in front of them': (app, { guards, once, order, fail }) => {
    app.use(...guards, helmet(), cors({ origin: 'https://shop.example' }), express.json(), once)
    app.use(compression({ threshold: 0 }))
    app.use(morgan('tiny', { stream: { write: (line) => void logged.push(line) } }))
    app.use(session({ secret: 'not a secret', resave: false, saveUninitialized: true }))
    app.post('/orders', order)
    app.use(fail)
    return '/orders'
  },
  'in a Router below a path with parameters': (app, { guards, once, order, fail }) => {
    const router = Router({ mergeParams: true })
    router.use(...guards)
    router.post('/orders', express.json(), once, order)
    app.use('/shops/:shop', router)
    app.use(fail)
    return '/shops/7/orders'
  },
  'in a sub-app': (app, { guards, once, order, fail }) => {
    const sub = express()
    sub.use(...guards, express.json(), once)
    sub.post('/orders', order)
    sub.use(fail)
    app.use('/shop', sub)
    return '/shop/orders'
  },
  'on Express 4': (app, { guards, once, order, fail }) => {
    app.use(...guards)
    app.post('/orders', express4.json(), once, order)
    app.use(fail)
    return '/orders'
  },
}

async function serve(t: TestContext, way: string): Promise<{ url: string; placed: unknown[] }> {
  const app = (way === 'on Express 4' ? express4() : express()) as Express
  const parts = shop()
  const path = WAYS[way]?.(app, parts) ?? ''
  const server = app.listen(0, '127.0.0.1')
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  await new Promise((resolve) => server.once('listening', resolve))
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`, placed: parts.placed }
}

for (const way of Object.keys(WAYS)) {
  describe(way, () => {
    it('refuses without a key, and runs no handler', async (t) => {
      const { url, placed } = await serve(t, way)
      const refused = await placeOrder(url, { key: 'sk-none' })
      assert.deepEqual([refused.status, refused.body], [401, { own: 'invalid_credential' }])
      assert.equal(refused.headers.get('x-should-retry'), 'false')
      assert.match(refused.headers.get('x-request-id') ?? '', /^req_/)
      assert.deepEqual(placed, [])
    })

    it('runs an order once per Idempotency-Key', async (t) => {
      const { url, placed } = await serve(t, way)
      const first = await placeOrder(url, { once: 'a' })
      assert.deepEqual([first.status, first.body.id], [201, 1])
      assert.equal(first.body.call, first.headers.get('x-request-id'))
      const again = await placeOrder(url, { once: 'a' })
      assert.deepEqual([again.status, again.body], [409, { own: 'idempotency_key_replayed' }])
      assert.equal(again.headers.get('x-original-request-id'), first.body.call)
      assert.equal((await placeOrder(url, { once: 'a', item: 'ink' })).status, 400)
      assert.deepEqual(placed, [{ item: 'pen' }])
    })

    it('limits, and says so in headers', async (t) => {
      const { url, placed } = await serve(t, way)
      for (let i = 0; i < 4; i++) {
        const { status, headers } = await placeOrder(url)
        assert.equal(status, 201)
        assert.match(headers.get('ratelimit') ?? '', new RegExp(`^"account";r=${3 - i};t=\\d+$`))
      }
      const refused = await placeOrder(url)
      assert.deepEqual([refused.status, refused.body], [429, { own: 'rate_limited' }])
      assert.ok(Number(refused.headers.get('retry-after')) > 50)
      assert.equal(refused.headers.get('ratelimit-policy'), '"account";q=4;w=60')
      assert.equal(placed.length, 4)
    })
  })
}

it('headers that others set are there, refused or not, and their logs are true', async (t) => {
  for (const way of Object.keys(WAYS).slice(1, 3)) {
    logged.length = 0
    const { url } = await serve(t, way)
    for (const once of ['b', 'b']) {
      const { headers, status } = await placeOrder(url, { once })
      assert.equal(headers.get('access-control-allow-origin'), 'https://shop.example', way)
      assert.ok(headers.get('content-security-policy'), way)
      if (status === 201) assert.equal(headers.get('content-encoding'), 'gzip', way)
      if (status === 201) assert.match(headers.get('set-cookie') ?? '', /^connect\.sid=/, way)
    }
    const lines = logged.map((line) => line.split(' ').slice(0, 3).join(' '))
    assert.deepEqual(
      lines,
      way.startsWith('behind') ? ['POST /orders 201', 'POST /orders 409'] : ['POST /orders 201'],
    )
  }
})
