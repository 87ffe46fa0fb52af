import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'
import type { WebhookOutbox, WebhookStore } from '../../lib/management/webhooks/index.ts'
import { cleaningUp } from '../support/clean-up.ts'
import { originOf } from './account-store.ts'
import { eventOf, NOW, type WebhooksUnderTest } from './webhook-samples.ts'

/** The contract of every outbox for the changes that it announces. */
export function webhookAnnouncementsContract(
  name: string,
  open: () => Promise<WebhooksUnderTest>,
  skip: string | false = false,
): void {
  describe(`webhooks report changes: ${name}`, { skip }, () => {
    let outbox: WebhookOutbox
    let other: WebhookOutbox
    let store: WebhookStore
    const cleanUp = cleaningUp(afterEach)
    beforeEach(async () => {
      const opened = await open()
      cleanUp.after(() => opened.close())
      outbox = opened.outboxes[0]
      other = opened.outboxes[1]
      store = opened.store
    })

    it('reports a change of state once, of all processes that observe it concurrently', async () => {
      const tell = (from: WebhookOutbox, state: string) =>
        from.announce('line:a', NOW, (told) =>
          told?.state === state ? undefined : { state, event: eventOf(1, 'line:a') },
        )
      const told = await Promise.all([tell(outbox, 'down'), tell(other, 'down'), tell(outbox, 'down')])
      assert.equal(told.filter(Boolean).length, 1)
      assert.deepEqual([...(await other.announced('down'))], [['line:a', { state: 'down', at: NOW }]])
      assert.equal(await tell(other, 'up'), true)
      assert.equal(await tell(outbox, 'up'), false)
      assert.deepEqual([...(await outbox.announced('down'))], [])
      assert.equal((await outbox.createDeliveries(NOW)).events, 2)
    })

    it('delivers the changes of a subject in the order of their reports, with any clocks of the processes', async () => {
      const url = 'https://wh.example/'
      await store.create({ id: 'wh', url, events: null, description: null, secret: 'whsec_' }, originOf())
      const beside = eventOf(2, 'line:b')
      await outbox.record([beside])
      const ahead = 10_000
      const tell = (
        from: WebhookOutbox,
        state: 'down' | 'up',
        after: number,
        type: 'line.down' | 'line.up',
      ) =>
        from.announce('line:a', NOW + after, (told) =>
          told?.state === state ? { state } : { state, event: eventOf(after, 'line:a', type) },
        )
      await tell(outbox, 'down', ahead, 'line.down')
      // It sees that, too, and its clock is right.
      await tell(other, 'down', 3, 'line.down')
      await tell(other, 'up', 4, 'line.up')
      await tell(outbox, 'down', ahead + 5, 'line.down')
      await tell(other, 'up', 6, 'line.up')
      await outbox.createDeliveries(NOW)
      const delivered: string[] = []
      for (;;) {
        const claim = { webhook: 'wh', owner: 'one', now: NOW, until: NOW + 99, limit: 9 }
        const claimed = await outbox.claim(claim)
        if (claimed.length === 0) break
        for (const { id, event } of claimed) {
          if (event.subject === 'line:a') delivered.push(event.type)
          else assert.deepEqual(event, beside)
          await outbox.finish(id, 'one', { kind: 'delivered', status: 204 }, NOW)
        }
      }
      assert.deepEqual(delivered, ['line.down', 'line.up', 'line.down', 'line.up'])
    })

    it('returns the time of the oldest waiting event, addressed or not', async () => {
      const webhook = {
        id: 'wh',
        url: 'https://wh.example/',
        events: null,
        description: null,
        secret: 'whsec_',
      }
      await store.create(webhook, originOf())
      assert.equal(await outbox.oldestWaiting(), null)
      const event = eventOf(1)
      await outbox.record([event, eventOf(5_000, 'line:b')])
      assert.equal(await other.oldestWaiting(), event.at)
      await outbox.createDeliveries(NOW + 10)
      assert.equal(await other.oldestWaiting(), NOW + 10)
      const claim = { webhook: 'wh', owner: 'one', now: NOW + 10, until: NOW + 99, limit: 9 }
      for (const { id } of await outbox.claim(claim))
        await outbox.finish(id, 'one', { kind: 'delivered', status: 204 }, NOW + 20)
      assert.equal(await outbox.oldestWaiting(), null)
    })

    it('gives a turn to one process at a time', async () => {
      const turns = await Promise.all([
        outbox.claimTurn('watch', NOW, 1000),
        other.claimTurn('watch', NOW, 1000),
      ])
      assert.equal(turns.filter(Boolean).length, 1)
      assert.equal(await outbox.claimTurn('watch', NOW + 999, 1000), false)
      assert.equal(await other.claimTurn('watch', NOW + 1000, 1000), true)
      // The clock is set back.
      assert.equal(await outbox.claimTurn('watch', NOW + 500, 1000), false)
      assert.equal(await outbox.claimTurn('watch', NOW - 3_600_000, 1000), true)
      assert.equal(await other.claimTurn('watch', NOW - 3_600_000, 1000), false)
    })
  })
}
