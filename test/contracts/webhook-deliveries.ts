import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'
import {
  type ClaimedDelivery,
  LONGEST_WAIT_MS,
  type WebhookOutbox,
  type WebhookStore,
} from '../../lib/management/webhooks/index.ts'
import { newWebhookSecret } from '../../lib/management/webhooks/webhook-request.ts'
import { cleaningUp } from '../support/clean-up.ts'
import { originOf } from './account-store.ts'
import { DAY_MS, eventOf, NOW, type WebhooksUnderTest } from './webhook-samples.ts'

/** The contract of every store of webhooks for what it reports of them and of their deliveries, to the millisecond. */
export function webhookDeliveriesContract(
  name: string,
  open: () => Promise<WebhooksUnderTest>,
  skip: string | false = false,
): void {
  describe(`webhooks and their deliveries: ${name}`, { skip }, () => {
    let opened: WebhooksUnderTest
    let store: WebhookStore
    let outbox: WebhookOutbox
    const cleanUp = cleaningUp(afterEach)
    beforeEach(async () => {
      opened = await open()
      cleanUp.after(() => opened.close())
      store = opened.store
      outbox = opened.outboxes[0]
    })

    const create = (id: string, secret = newWebhookSecret()) =>
      store.create(
        { id, url: `https://${id}.example/x?y`, events: null, description: 'mine', secret },
        originOf(),
      )
    const claim = (now = NOW, limit = 9) =>
      outbox.claim({ webhook: 'wh', owner: 'one', now, until: now + 30_000, limit })
    const numbers = (claimed: readonly ClaimedDelivery[]) =>
      claimed.map(({ event }) => (event.data as { n: number }).n)
    const fail = ({ id }: ClaimedDelivery, nextAt: number | null) =>
      outbox.finish(id, 'one', { kind: 'failed', status: 500, error: 'answered 500', nextAt }, NOW + 2)
    const addressed = async (...events: ReturnType<typeof eventOf>[]) => {
      await outbox.record(events)
      await outbox.createDeliveries(NOW)
    }

    it('are returned, and recorded, with all but their secrets', async () => {
      const [begin, turn, end] = [originOf('ada'), originOf('eve'), originOf('ada')]
      const id = 'wh'
      const settings = { format: 'slack', events: ['line.up', 'line.down'], description: 'é "mine"' } as const
      const url = 'https://hooks.example:8443/a?token=b'
      const made = await store.create({ id, url, ...settings, secret: newWebhookSecret() }, begin)
      const webhook = { id, url, ...settings, createdAt: begin.at, disabledAt: null, dropped: 0 }
      assert.deepEqual([made, await store.list(9)], [webhook, [webhook]])
      assert.deepEqual(await store.rotate(id, newWebhookSecret(), NOW, turn), webhook)
      assert.equal(await store.delete(id, end), true)
      const told = { origin: 'https://hooks.example:8443', ...settings }
      assert.deepEqual(await opened.changes.list({ subject: id, limit: 9 }), [
        { ...end, action: 'webhook.deleted', subject: id, before: told, after: null },
        { ...turn, action: 'webhook.rotated', subject: id, before: told, after: told },
        { ...begin, action: 'webhook.created', subject: id, before: null, after: told },
      ])
    })

    it('are returned with the result of each', async () => {
      await create('wh')
      const events = [1, 2, 3, 4].map((n) => eventOf(n, `line:${n}`))
      await addressed(...events)
      const [one, two, three] = await claim(NOW, 3)
      assert.ok(one && two && three)
      assert.deepEqual(numbers([one, two, three]).sort(), [1, 2, 3])
      assert.deepEqual([one.url, one.webhook, one.attempts], ['https://wh.example/x?y', 'wh', 1])
      await outbox.finish(one.id, 'one', { kind: 'delivered', status: 202 }, NOW + 7)
      await fail(two, NOW + 99)
      await fail(three, null)
      const told = new Map(
        (await store.deliveries({ webhook: 'wh', limit: 9 }))?.map((each) => [each.event, each]),
      )
      const of = ({ id, event }: ClaimedDelivery) => ({
        ...{ id, event: event.id, type: 'line.down', subject: event.subject },
        ...{ createdAt: NOW, attempts: 1 },
      })
      const failed = { status: 500, error: 'answered 500', deliveredAt: null }
      assert.deepEqual(
        [one, two, three].map(({ event }) => told.get(event.id)),
        [
          { ...of(one), status: 202, error: null, nextAt: null, deliveredAt: NOW + 7 },
          { ...of(two), ...failed, nextAt: NOW + 99 },
          { ...of(three), ...failed, nextAt: null },
        ],
      )
      const rest = [...told.values()].filter(({ attempts }) => attempts === 0)
      assert.deepEqual(
        rest.map(({ nextAt, status, error, deliveredAt }) => [nextAt, status, error, deliveredAt]),
        [[NOW, null, null, null]],
      )
    })

    it('are deleted with their webhook, and those of another remain', async () => {
      await create('wh')
      await create('wh_other')
      await addressed(eventOf(1))
      assert.equal(await store.delete('wh', originOf()), true)
      assert.equal(await store.deliveries({ webhook: 'wh', limit: 9 }), undefined)
      assert.deepEqual(await outbox.due(NOW), ['wh_other'])
      assert.deepEqual(await claim(), [])
    })

    it('are signed with the previous secret until it expires, and not after that', async () => {
      const [old, next] = [newWebhookSecret(), newWebhookSecret()]
      await create('wh', old)
      await addressed(eventOf(1), eventOf(2, 'line:b'))
      await store.rotate('wh', next, NOW + 5000, originOf())
      assert.deepEqual((await claim(NOW + 4999, 1))[0]?.secrets, [next, old])
      assert.deepEqual((await claim(NOW + 5000, 1))[0]?.secrets, [next])
    })

    it('are claimed in the order in which they are due, up to the requested number', async () => {
      await create('wh')
      await addressed(...[1, 2, 3, 4].map((n) => eventOf(n, `line:${n}`)))
      for (const [i, each] of (await claim()).entries()) await fail(each, NOW + 100 - 10 * i)
      assert.deepEqual(await claim(NOW + 69), [])
      assert.equal((await claim(NOW + 80, 9)).length, 2)
      assert.equal((await claim(NOW + 100, 1)).length, 1)
      assert.equal((await claim(NOW + 100, 9)).length, 1)
    })

    it('are not claimed by another process for as long as a receiver may take', async () => {
      await create('wh')
      await addressed(eventOf(1))
      const longest = { webhook: 'wh', owner: 'one', now: NOW, until: NOW + 320_000, limit: 9 }
      assert.deepEqual(numbers(await outbox.claim(longest)), [1])
      assert.deepEqual([await outbox.due(NOW), await claim(NOW)], [[], []])
    })

    it('that wait for a retry are due, once each, when the clock is set back further than any retry waits', async () => {
      await create('wh')
      await create('wh_other')
      await addressed(eventOf(1), eventOf(2))
      const [first] = await claim()
      assert.ok(first)
      await fail(first, NOW + LONGEST_WAIT_MS)
      assert.deepEqual(numbers(await claim(NOW)), [])
      assert.deepEqual(await outbox.due(NOW - DAY_MS), ['wh', 'wh_other'])
      assert.deepEqual(numbers(await claim(NOW - DAY_MS)), [1])
      assert.deepEqual(numbers(await claim(NOW - DAY_MS)), [])
    })
  })
}
