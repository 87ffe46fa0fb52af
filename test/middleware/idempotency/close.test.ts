import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import express from 'express'
import {
  type IdempotencyStore,
  idempotency,
  MemoryIdempotencyStore,
} from '../../../lib/middleware/idempotency/index.ts'
import { recordingLogger, serveApp } from '../../support/app-server.ts'
import { until } from '../../support/until.ts'
import { FaultyStore } from './faulty-store.ts'

/** A store whose completions and releases wait until the test lets them go. */
class SlowStore extends MemoryIdempotencyStore {
  readonly asked: string[] = []
  readonly go = Promise.withResolvers<void>()

  override async complete(...given: Parameters<IdempotencyStore['complete']>): Promise<boolean> {
    this.asked.push('complete')
    await this.go.promise
    return super.complete(...given)
  }

  override async release(...given: Parameters<IdempotencyStore['release']>): Promise<void> {
    this.asked.push('release')
    await this.go.promise
    return super.release(...given)
  }
}

/** A store that takes its time to prune, and counts the prunes that are done. */
class SlowlyPruned extends MemoryIdempotencyStore {
  pruning = 0
  pruned = 0

  override async prune(...given: Parameters<IdempotencyStore['prune']>): Promise<number> {
    this.pruning++
    await new Promise((resolve) => setTimeout(resolve, 200))
    this.pruned++
    return super.prune(...given)
  }
}

async function keyedApp(t: TestContext, store: IdempotencyStore, storeTimeoutMs = 10_000, leaseMs = 60_000) {
  const logger = recordingLogger()
  const once = idempotency({ store, logger, storeTimeoutMs, claimLeaseMs: leaseMs })
  const server = await serveApp((app) => {
    app.post('/orders', express.json(), once, (req, res) => void res.status(req.body.status).json({}))
  })
  t.after(() => server.close())
  const post = (status: number) =>
    fetch(`${server.url}/orders`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': 'k' },
      body: JSON.stringify({ status }),
    })
  const unsettled = () => logger.lines.filter(({ message }) => message.includes('not settled at the end'))
  return { once, post, unsettled }
}

describe('closing idempotency', () => {
  for (const [status, operation] of [
    [201, 'complete'],
    [422, 'release'],
  ] as const) {
    it(`waits for a ${operation} that is on its way`, async (t) => {
      const store = new SlowStore()
      const { once, post, unsettled } = await keyedApp(t, store)
      const answered = post(status)
      await until(() => store.asked.includes(operation), operation)
      let closed = false
      const closing = once.close().then(() => {
        closed = true
      })
      await new Promise((resolve) => setTimeout(resolve, 60))
      assert.equal(closed, false)
      store.go.resolve()
      await closing
      assert.equal((await answered).status, status)
      assert.deepEqual(unsettled(), [])
    })
  }

  it('waits for a pruning that is on its way, so that the store is not closed under it', async (t) => {
    const store = new SlowlyPruned()
    const { once, post } = await keyedApp(t, store, 10_000, 400)
    assert.equal((await post(201)).status, 201)
    await until(() => store.pruning > 0, 'a pruning')
    await once.close()
    assert.deepEqual([store.pruning, store.pruned], [1, 1])
  })

  it('asks again for what was not answered, so that the key is free for the next process', async (t) => {
    const memory = new MemoryIdempotencyStore()
    const store = new FaultyStore(memory)
    const { once, post, unsettled } = await keyedApp(t, store)
    store.faults.set('release', 'fails')
    assert.equal((await post(422)).status, 422)
    const closing = once.close()
    await until(() => store.asked.filter((operation) => operation === 'release').length > 1, 'a second try')
    store.faults.clear()
    await closing
    assert.deepEqual(unsettled(), [])
    const next = await keyedApp(t, memory)
    assert.equal((await next.post(201)).status, 201)
  })

  it('is bounded, and logs each key whose outcome the store does not know', async (t) => {
    const store = new FaultyStore(new MemoryIdempotencyStore())
    const { once, post, unsettled } = await keyedApp(t, store, 50)
    store.faults.set('release', 'hangs')
    assert.equal((await post(422)).status, 422)
    const began = performance.now()
    await once.close(300)
    assert.ok(performance.now() - began < 5000)
    const [line, ...more] = unsettled()
    assert.ok(line)
    assert.deepEqual([(line.fields as { state: string }).state, more], ['releasing', []])
  })

  it('is done at once where nothing is open', async (t) => {
    const { once, post } = await keyedApp(t, new MemoryIdempotencyStore())
    assert.equal((await post(201)).status, 201)
    const began = performance.now()
    await once.close()
    assert.ok(performance.now() - began < 2000)
  })
})
