import assert from 'node:assert/strict'
import { it, type TestContext } from 'node:test'
import express, { type RequestHandler } from 'express'
import {
  type IdempotencyStore,
  idempotency,
  MemoryIdempotencyStore,
} from '../../../lib/middleware/idempotency/index.ts'
import { serveApp } from '../../support/app-server.ts'
import { until } from '../../support/until.ts'

/** A store whose first claim waits until the test lets it go. */
class LateStore extends MemoryIdempotencyStore {
  go = Promise.withResolvers<void>()
  claims = 0
  released = 0

  override async claim(...given: Parameters<IdempotencyStore['claim']>) {
    this.claims++
    await this.go.promise
    return super.claim(...given)
  }

  override async release(...given: Parameters<IdempotencyStore['release']>): Promise<void> {
    await super.release(...given)
    this.released++
  }
}

/** An app whose handler counts its runs, behind `front` and a key that is claimed late. */
async function lateApp(t: TestContext, front: RequestHandler, replay = false) {
  const store = new LateStore()
  const runs: string[] = []
  const app = await serveApp((app) => {
    app.use(front)
    app.post('/', express.json(), idempotency({ store, storeTimeoutMs: 10_000, replay }), (req, res) => {
      runs.push(req.path)
      res.status(201).end()
    })
  })
  t.after(() => app.close())
  const headers = { 'content-type': 'application/json', 'idempotency-key': 'k' }
  const ask = async (signal: AbortSignal | null = null) =>
    (await fetch(app.url, { method: 'POST', body: '{}', headers, signal })).status
  return { store, runs, ask }
}

it('a request that a time limit in front has answered before its key is claimed does not run, and frees the key', async (t) => {
  const { store, runs, ask } = await lateApp(t, (_req, res, next) => {
    const timer = setTimeout(() => res.status(504).end(), 30)
    res.once('finish', () => clearTimeout(timer))
    next()
  })
  assert.equal(await ask(), 504)
  store.go.resolve()
  await until(() => store.released > 0, 'the key to be freed')
  assert.equal(runs.length, 0)
  assert.equal(await ask(), 201)
  assert.equal(runs.length, 1)
})

it('a request whose caller has left before its key is claimed does not run, and frees the key', async (t) => {
  const left = Promise.withResolvers<void>()
  const { store, runs, ask } = await lateApp(t, (_req, res, next) => {
    res.once('close', () => left.resolve())
    next()
  })
  const leaving = new AbortController()
  const asked = assert.rejects(ask(leaving.signal), { name: 'AbortError' })
  await until(() => store.claims > 0, 'the claim')
  leaving.abort()
  await Promise.all([asked, left.promise])
  store.go.resolve()
  await until(() => store.released > 0, 'the key to be freed')
  assert.equal(runs.length, 0)
  assert.equal(await ask(), 201)
  assert.equal(runs.length, 1)
})

for (const replay of [true, false])
  it(`a repetition that a time limit in front has answered is over: with "replay" ${replay}`, async (t) => {
    const late = Promise.withResolvers<void>()
    let isLate = false
    const { store, runs, ask } = await lateApp(
      t,
      (_req, res, next) => {
        if (isLate) void late.promise.then(() => res.status(504).end(() => store.go.resolve()))
        next()
      },
      replay,
    )
    store.go.resolve()
    assert.equal(await ask(), 201)
    store.go = Promise.withResolvers<void>()
    isLate = true
    const asked = ask()
    await until(() => store.claims === 2, 'the claim of the repetition')
    late.resolve()
    assert.equal(await asked, 504)
    isLate = false
    assert.equal(await ask(), replay ? 201 : 409, 'the process lives')
    assert.equal(runs.length, 1)
  })
