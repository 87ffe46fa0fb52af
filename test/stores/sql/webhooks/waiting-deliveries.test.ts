import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { ClaimedDelivery } from '../../../../lib/management/webhooks/index.ts'
import { newWebhookSecret } from '../../../../lib/management/webhooks/webhook-request.ts'
import { SqlWebhookOutbox, SqlWebhookStore } from '../../../../lib/stores/sql/index.ts'
import { originOf } from '../../../contracts/account-store.ts'
import { DAY_MS, eventOf, NOW } from '../../../contracts/webhook-samples.ts'
import { BACKENDS } from '../support/postgres-database.ts'
import { open } from '../support/temporary-database.ts'

async function opened(t: TestContext, url: string) {
  const db = await open(t, url)
  const [store, outbox] = [new SqlWebhookStore(db), new SqlWebhookOutbox(db)]
  const settings = { events: null, description: null, secret: newWebhookSecret() }
  await store.create({ id: 'wh', url: 'https://wh.example/', ...settings }, originOf())
  return {
    outbox,
    store,
    claim: (now = NOW, limit = 9) =>
      outbox.claim({ webhook: 'wh', owner: 'one', now, until: now + 30_000, limit }),
    fail: ({ id }: ClaimedDelivery, nextAt: number | null) =>
      outbox.finish(id, 'one', { kind: 'failed', status: 500, error: 'answered 500', nextAt }, NOW + 2),
    addressed: async (...events: ReturnType<typeof eventOf>[]) => {
      await outbox.record(events)
      await outbox.createDeliveries(NOW)
    },
  }
}

const numbers = (claimed: readonly ClaimedDelivery[]) =>
  claimed.map(({ event }) => (event.data as { n: number }).n)

for (const { name, url, skip } of BACKENDS) {
  describe(`a delivery that waits in the outbox of ${name}`, { skip }, () => {
    it('is not looked at before what it waits behind, and other subjects are', async (t) => {
      const { store, outbox, claim, fail, addressed } = await opened(t, await url(t))
      await addressed(eventOf(1), eventOf(2), eventOf(3, 'line:b'))
      const [first] = await claim(NOW, 1)
      assert.ok(first)
      await fail(first, NOW + 60_000)
      const nextOf = async () =>
        (await store.deliveries({ webhook: 'wh', limit: 9 }))?.map(({ nextAt }) => Number(nextAt) - NOW)
      assert.deepEqual(await nextOf(), [0, 60_000, 60_000])
      assert.deepEqual(numbers(await claim(NOW + 1)), [3])
      assert.deepEqual(await outbox.due(NOW + 29_999), [])
      const [again, other] = await claim(NOW + 60_000)
      assert.ok(again && other)
      assert.deepEqual(numbers([again, other]).sort(), [1, 3])
      await fail(again, NOW + 61_000)
      assert.deepEqual((await nextOf())?.slice(1), [61_000, 61_000])
      const [last] = await claim(NOW + 61_000)
      assert.ok(last)
      await fail(last, null)
      assert.deepEqual(numbers(await claim(NOW + 61_000)), [2])
    })

    it('is forgotten a day before its event, of which no delivery is made again meanwhile', async (t) => {
      const { outbox, addressed } = await opened(t, await url(t))
      const event = eventOf(5)
      await addressed(event)
      const again = async () => {
        await outbox.record([event])
        return (await outbox.createDeliveries(NOW)).events
      }
      assert.equal(await outbox.prune(NOW + 1, 9), 1)
      assert.equal(await outbox.prune(event.at + DAY_MS, 9), 0)
      assert.equal(await again(), 0)
      await outbox.prune(event.at + DAY_MS + 1, 9)
      assert.equal(await again(), 1)
    })

    it('keeps what was announced as long as it lasts, and forgets what is over', async (t) => {
      const { outbox } = await opened(t, await url(t))
      for (const [subject, state] of [
        ['line:a', 'down'],
        ['account:b', 'low'],
        ['line:c', 'up'],
        ['line:d', 'up'],
      ] as const)
        await outbox.announce(subject, subject === 'line:d' ? NOW + 1 : NOW, () => ({ state }))
      await outbox.prune(NOW + 1, 9)
      const left = await Promise.all(['down', 'low', 'up'].map((state) => outbox.announced(state)))
      assert.deepEqual(
        left.map((states) => [...states.keys()]),
        [['line:a'], ['account:b'], ['line:d']],
      )
    })
  })
}
