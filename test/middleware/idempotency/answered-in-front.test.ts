import assert from 'node:assert/strict'
import { it } from 'node:test'
import express from 'express'
import {
  type IdempotencyStore,
  idempotency,
  MemoryIdempotencyStore,
} from '../../../lib/middleware/idempotency/index.ts'
import { serveApp } from '../../support/app-server.ts'
import { until } from '../../support/until.ts'

/** A store whose first claim waits until the test lets it go. */
class LateStore extends MemoryIdempotencyStore {
  readonly go = Promise.withResolvers<void>()
  released = 0

  override async claim(...given: Parameters<IdempotencyStore['claim']>) {
    await this.go.promise
    return super.claim(...given)
  }

  override async release(...given: Parameters<IdempotencyStore['release']>): Promise<void> {
    await super.release(...given)
    this.released++
  }
}

it('a request that a time limit in front has answered before its key is claimed does not run, and frees the key', async (t) => {
  const store = new LateStore()
  let runs = 0
  const app = await serveApp((app) => {
    app.use((_req, res, next) => {
      const timer = setTimeout(() => res.status(504).end(), 30)
      res.once('finish', () => clearTimeout(timer))
      next()
    })
    app.post('/', express.json(), idempotency({ store, storeTimeoutMs: 10_000 }), (_req, res) => {
      runs++
      res.status(201).end()
    })
  })
  t.after(() => app.close())
  const headers = { 'content-type': 'application/json', 'idempotency-key': 'k' }
  const ask = async () => (await fetch(app.url, { method: 'POST', body: '{}', headers })).status
  assert.equal(await ask(), 504)
  store.go.resolve()
  await until(() => store.released > 0, 'the key to be freed')
  assert.equal(runs, 0)
  assert.equal(await ask(), 201)
  assert.equal(runs, 1)
})
