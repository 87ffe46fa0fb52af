import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import express, { type RequestHandler } from 'express'
import { hashSecret } from '../../../lib/core/catalog/index.ts'
import { authenticate, memoryKeyDirectory } from '../../../lib/middleware/authenticate/index.ts'
import { errorEnvelope } from '../../../lib/middleware/error-envelope/index.ts'
import { idempotency, MemoryIdempotencyStore } from '../../../lib/middleware/idempotency/index.ts'
import { MemoryLimitStore, rateLimit } from '../../../lib/middleware/rate-limit/index.ts'
import { recordingLogger } from '../../support/app-server.ts'
import { FAULTS, LATE_MS, nothingUnhandled } from './own-store-faults.ts'

/** The same store, one of whose operations goes wrong while `fault` is set, for the calls that `concerns` it. */
function faulty<Store extends object>(
  store: Store,
  operation: string,
  state: { fault: (() => unknown) | undefined },
): Store {
  return new Proxy(store, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name)
      if (typeof value !== 'function') return value
      return (...given: unknown[]) => {
        const { fault } = state
        const isOther = JSON.stringify(given).includes('other') || given[0] === hashSecret('sk-other')
        return name === operation && fault && !isOther ? fault() : value.apply(target, given)
      }
    },
  })
}

/** Each interface that stands in the way of a call, with the operations that it is asked for. */
const STORES: Record<
  string,
  {
    operations: readonly string[]
    mount(operation: string, state: { fault: (() => unknown) | undefined }): RequestHandler[]
  }
> = {
  'a limit store': {
    operations: ['admit', 'hold', 'release', 'ended'],
    mount: (operation, state) => [
      rateLimit({
        store: faulty(new MemoryLimitStore(), operation, state),
        levels: [{ name: 'user', by: (req) => `${req.headers['x-user']}`, rpm: 1000, concurrency: 100 }],
        onStoreError: 'refuse',
      }),
    ],
  },
  'an idempotency store': {
    operations: ['claim', 'complete', 'release', 'renew', 'prune'],
    mount: (operation, state) => [
      idempotency({
        store: faulty(new MemoryIdempotencyStore(), operation, state),
        by: (req) => `${req.headers['x-user']}`,
        logger: recordingLogger(),
        claimLeaseMs: 400,
      }),
    ],
  },
  'a key directory': {
    operations: ['find'],
    mount: (operation, state) => {
      const accounts = [{ id: 'a' }]
      const seeds = ['mine', 'other'].map((id) => ({ id, account: 'a', secret: `sk-${id}` }))
      const keys = faulty(memoryKeyDirectory({ accounts, keys: seeds }), operation, state)
      return [0, 4000].map((cacheKeysMs) => authenticate({ keys, cacheKeysMs, storeTimeoutMs: 250 }))
    },
  },
}

describe('a store of the app', { concurrency: 24 }, () => {
  nothingUnhandled()

  for (const [store, { operations, mount }] of Object.entries(STORES)) {
    for (const operation of operations) {
      for (const [what, fault] of Object.entries(FAULTS)) {
        it(`costs a call at most an error in time: ${store} whose ${operation} ${what}`, async (t) => {
          const state: { fault: (() => unknown) | undefined } = { fault: undefined }
          const ask = await serve(t, mount(operation, state))
          state.fault = fault
          for (let i = 0; i < 4; i++) {
            const [mine, other] = await Promise.all([ask('mine'), ask('other')])
            assert.equal(other.status, 200, `somebody else: ${other.text}`)
            assert.ok(mine.status === 200 || mine.status >= 400, `${mine.status}`)
            assert.ok(mine.took < 5000, `took ${mine.took} ms`)
          }
          await sleep(LATE_MS + 50)
          state.fault = undefined
          // An outage is over half a second later.
          await sleep(550)
          for (let i = 0; i < 4; i++) assert.equal((await ask('mine')).status, 200, 'nothing is left of it')
        })
      }
    }
  }
})

async function serve(t: TestContext, handlers: RequestHandler[]) {
  const app = express()
  app.post('/', ...handlers, (_req, res) => void res.json({ ok: true }))
  app.use(errorEnvelope({ logger: recordingLogger() }))
  const server = createServer(app)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  let asked = 0
  return async (user: string) => {
    const headers = {
      'x-user': user,
      authorization: `Bearer sk-${user}`,
      // Records are named by hashes, so a fault does not know whose they are.
      ...(user === 'mine' && { 'idempotency-key': `${++asked}` }),
    }
    const begun = performance.now()
    const answer = await fetch(url, { method: 'POST', headers })
    return { status: answer.status, text: await answer.text(), took: performance.now() - begun }
  }
}
