import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'
import {
  type ClaimedDelivery,
  MAX_WAITING,
  MAX_WEBHOOKS,
  newEvent,
  type WebhookEventType,
  type WebhookOutbox,
  type WebhookStore,
} from '../../lib/management/webhooks/index.ts'
import { newWebhookSecret } from '../../lib/management/webhooks/webhook-request.ts'
import { cleaningUp } from '../support/clean-up.ts'
import { originOf } from './account-store.ts'
import { DAY_MS, eventOf, NOW, type WebhooksUnderTest } from './webhook-samples.ts'

/** The contract of every store of webhooks and its outbox. */
export function webhooksContract(
  name: string,
  open: () => Promise<WebhooksUnderTest>,
  skip: string | false = false,
): void {
  describe(`webhooks: ${name}`, { skip }, () => {
    let opened: WebhooksUnderTest
    let store: WebhookStore
    let outbox: WebhookOutbox
    let other: WebhookOutbox
    const cleanUp = cleaningUp(afterEach)
    beforeEach(async () => {
      opened = await open()
      cleanUp.after(() => opened.close())
      store = opened.store
      outbox = opened.outboxes[0]
      other = opened.outboxes[1]
    })

    const create = (
      id: string,
      events: readonly WebhookEventType[] | null = null,
      secret = newWebhookSecret(),
    ) => store.create({ id, url: `https://${id}.example/`, events, description: null, secret }, originOf())
    const claim = (webhook: string, { from = outbox, owner = 'one', now = NOW + 1000, limit = 9 } = {}) =>
      from.claim({ webhook, owner, now, until: now + 30_000, limit })
    const numbers = (claimed: readonly ClaimedDelivery[]) =>
      claimed.map(({ event }) => (event.data as { n: number }).n)
    const byNumber = (one: ClaimedDelivery, other: ClaimedDelivery) =>
      Number(numbers([one])) - Number(numbers([other]))
    const delivered = ({ id }: ClaimedDelivery, owner = 'one') =>
      outbox.finish(id, owner, { kind: 'delivered', status: 204 }, NOW + 2000)
    const failed = ({ id }: ClaimedDelivery, nextAt: number | null) =>
      outbox.finish(id, 'one', { kind: 'failed', status: 500, error: 'answered 500', nextAt }, NOW + 2000)
    const states = async (webhook: string) =>
      (await store.deliveries({ webhook, limit: 99 }))?.map(({ nextAt, deliveredAt, error, attempts }) => [
        deliveredAt !== null ? 'delivered' : nextAt === null ? 'ended' : 'waits',
        attempts,
        error,
      ])

    it('stores webhooks, and records their changes without a secret', async () => {
      const secret = newWebhookSecret()
      const made = await create('wh_b', ['line.up', 'line.down'], secret)
      await create('wh_a')
      assert.deepEqual(made?.events, ['line.up', 'line.down'])
      const ids = async (limit: number, after?: string) =>
        (await store.list(limit, after)).map(({ id }) => id)
      assert.deepEqual(await ids(9), ['wh_a', 'wh_b'])
      assert.deepEqual(await ids(1), ['wh_a'])
      assert.deepEqual(await ids(1, 'wh_a'), ['wh_b'])
      const next = newWebhookSecret()
      assert.equal((await store.rotate('wh_b', next, NOW + DAY_MS, originOf()))?.id, 'wh_b')
      assert.equal(await store.rotate('wh_c', next, NOW, originOf()), undefined)
      assert.equal(await store.delete('wh_a', originOf()), true)
      assert.equal(await store.delete('wh_a', originOf()), false)
      assert.deepEqual(await ids(9), ['wh_b'])
      const changes = await opened.changes.list({ limit: 99 })
      assert.deepEqual(
        changes.map(({ action, subject }) => `${action} ${subject}`),
        ['webhook.deleted wh_a', 'webhook.rotated wh_b', 'webhook.created wh_a', 'webhook.created wh_b'],
      )
      const text = JSON.stringify(changes)
      assert.ok(!text.includes(secret) && !text.includes(next))
    })

    it('has a limited number of webhooks', async () => {
      for (let i = 0; i < MAX_WEBHOOKS; i++) assert.ok(await create(`wh_${i}`))
      assert.equal(await create('wh_more'), undefined)
      assert.equal((await store.list(99)).length, MAX_WEBHOOKS)
    })

    it('addresses an event once, to the matching webhooks that existed then', async () => {
      await create('wh_all')
      await create('wh_lines', ['line.down'])
      await create('wh_tickets', ['ticket.opened'])
      const event = eventOf(1)
      await outbox.record([event, event])
      await other.record([event])
      assert.equal((await outbox.createDeliveries(NOW)).events, 1)
      assert.equal((await other.createDeliveries(NOW)).events, 0)
      await create('wh_late')
      assert.deepEqual([...(await outbox.due(NOW))].sort(), ['wh_all', 'wh_lines'])
      assert.deepEqual(await store.deliveries({ webhook: 'wh_tickets', limit: 9 }), [])
      assert.deepEqual(await store.deliveries({ webhook: 'wh_late', limit: 9 }), [])
      assert.equal(await store.deliveries({ webhook: 'wh_none', limit: 9 }), undefined)
      const [first] = await claim('wh_all')
      assert.deepEqual(first?.event, event)
    })

    it('returns the first delivery of each subject, and the next when that is finished', async () => {
      await create('wh')
      await outbox.record([eventOf(1), eventOf(2), eventOf(3, 'line:b'), eventOf(4, 'line:b')])
      await outbox.createDeliveries(NOW)
      const [one, three, ...none] = await claim('wh')
      assert.ok(one && three)
      assert.deepEqual([numbers([one, three]), none], [[1, 3], []])
      assert.deepEqual(await claim('wh', { from: other, owner: 'two' }), [])
      await delivered(one)
      assert.deepEqual(numbers(await claim('wh', { from: other, owner: 'two' })), [2])
      await failed(three, NOW + 60_000)
      assert.deepEqual(await claim('wh'), [])
      const [two, again] = (await claim('wh', { now: NOW + 60_000 })).toSorted(byNumber)
      assert.ok(two && again)
      assert.deepEqual(numbers([two, again]), [2, 3], 'the claim of another process has ended')
      assert.deepEqual([again.event.id, again.attempts], [three.event.id, 2])
      await failed(again, null)
      assert.deepEqual(numbers(await claim('wh', { now: NOW + 60_000 })), [4])
    })

    it('gives a delivery to one of two concurrent claims', async () => {
      await create('wh')
      await outbox.record(Array.from({ length: 20 }, (_, n) => eventOf(n, `line:${n}`)))
      await outbox.createDeliveries(NOW)
      const claims = await Promise.all(
        Array.from({ length: 10 }, (_, n) =>
          claim('wh', { from: n % 2 ? other : outbox, owner: `process ${n}`, limit: 2 }),
        ),
      )
      const all = numbers(claims.flat())
      assert.equal(new Set(all).size, all.length)
      assert.equal(all.length + numbers(await claim('wh', { limit: 99 })).length, 20)
    })

    it('gives a delivery of a dead process to another one, and ignores a late result of the first', async () => {
      await create('wh')
      await outbox.record([eventOf(1)])
      await outbox.createDeliveries(NOW)
      const [lost] = await claim('wh')
      assert.ok(lost)
      const [found] = await claim('wh', { from: other, owner: 'two', now: NOW + 31_000 })
      assert.equal(found?.event.id, lost.event.id)
      await delivered(lost, 'one')
      assert.deepEqual(await states('wh'), [['waits', 2, null]])
      await delivered(lost, 'two')
      assert.deepEqual(await states('wh'), [['delivered', 2, null]])
    })

    it('takes back a delivery that was not attempted', async () => {
      await create('wh')
      await outbox.record([eventOf(1)])
      await outbox.createDeliveries(NOW)
      const [first] = await claim('wh')
      assert.ok(first)
      await outbox.finish(first.id, 'one', { kind: 'handed_back' }, NOW + 1500)
      assert.equal((await claim('wh', { from: other, owner: 'two', now: NOW + 1500 }))[0]?.attempts, 1)
    })

    it('ends all deliveries of a removed receiver, and of no other', async () => {
      await create('wh')
      await create('wh_other')
      await outbox.record([eventOf(1), eventOf(2)])
      await outbox.createDeliveries(NOW)
      const [first] = await claim('wh')
      assert.ok(first)
      await outbox.finish(first.id, 'one', { kind: 'gone', status: 410 }, NOW)
      await outbox.record([eventOf(3)])
      await outbox.createDeliveries(NOW)
      const gone = 'the receiver answered 410'
      assert.deepEqual(await states('wh'), [
        ['ended', 0, gone],
        ['ended', 1, gone],
      ])
      assert.deepEqual(
        (await store.list(9)).map(({ disabledAt }) => disabledAt),
        [NOW, null],
      )
      assert.deepEqual(await outbox.due(NOW), ['wh_other'])
      assert.equal((await states('wh_other'))?.length, 3)
    })

    it('drops the oldest deliveries beyond the limit, and returns their number', async () => {
      await create('wh')
      await create('wh_other', ['ticket.opened'])
      await outbox.record([eventOf(0, 'ticket:1', 'ticket.opened')])
      for (let n = 1; n <= MAX_WAITING + 4; n += 100)
        await outbox.record(
          Array.from({ length: 100 }, (_, i) => eventOf(n + i)).slice(0, MAX_WAITING + 5 - n),
        )
      const dropped = new Map<string, number>()
      for (let addressed = 1; addressed > 0; ) {
        const round = await outbox.createDeliveries(NOW)
        addressed = round.events
        for (const [id, count] of round.dropped) dropped.set(id, (dropped.get(id) ?? 0) + count)
      }
      assert.deepEqual([...dropped], [['wh', 4]])
      assert.deepEqual(
        (await store.list(9)).map((webhook) => webhook.dropped),
        [4, 0],
      )
      assert.deepEqual(numbers((await claim('wh', { now: NOW + DAY_MS })).toSorted(byNumber)), [0, 5])
      assert.equal((await claim('wh_other')).length, 1)
    })

    const ticketOf = (account: string, n: number) =>
      newEvent({
        type: 'ticket.opened',
        subject: `ticket:${account} ${n}`,
        at: NOW + n,
        data: { n, account },
      })
    const flood = async (account: string, count: number) => {
      for (let n = 0; n < count; n += 100)
        await outbox.record(Array.from({ length: 100 }, (_, i) => ticketOf(account, n + i)))
    }
    const createAll = async () => {
      for (let events = 1; events > 0; ) events = (await outbox.createDeliveries(NOW)).events
    }
    const subjects = (claimed: readonly ClaimedDelivery[]) => claimed.map(({ event }) => event.subject)

    it('drops the excess deliveries of one account, and none of other accounts, of money or of lines', async () => {
      await create('wh')
      const money = newEvent({ type: 'budget.exhausted', subject: 'budget:b', at: NOW, data: { n: 0 } })
      const low = newEvent({
        type: 'balance.low',
        subject: 'account:globex',
        at: NOW,
        data: { account: 'globex' },
      })
      await outbox.record([money, low, eventOf(1, 'line:a'), ticketOf('globex', 0), ticketOf('globex', 1)])
      await flood('acme', MAX_WAITING + 400)
      await createAll()
      await outbox.record([ticketOf('initech', 0)])
      await createAll()
      assert.equal((await store.list(9))[0]?.dropped, 403)
      const waiting = await claim('wh', { limit: 2 * MAX_WAITING })
      const others = subjects(waiting).filter((subject) => !subject.startsWith('ticket:acme'))
      assert.deepEqual(others.sort(), [
        'account:globex',
        'budget:b',
        'line:a',
        'ticket:globex 0',
        'ticket:globex 1',
        'ticket:initech 0',
      ])
      assert.equal(waiting.length, MAX_WAITING + 3)
      const left = numbers(waiting.filter(({ event }) => event.subject.startsWith('ticket:acme')))
      assert.equal(Math.min(...left), 403, 'its oldest were dropped')
    })

    it('returns deliveries about money and lines first, and then those of the accounts in turn', async () => {
      await create('wh')
      await flood('acme', 300)
      await createAll()
      const first = await claim('wh', { limit: 2 })
      assert.deepEqual(subjects(first), ['ticket:acme 0', 'ticket:acme 1'].sort())
      for (const each of first) await delivered(each)
      const low = newEvent({
        type: 'balance.low',
        subject: 'account:globex',
        at: NOW,
        data: { account: 'globex' },
      })
      await outbox.record([ticketOf('globex', 0), ticketOf('globex', 1), low])
      await createAll()
      const next: string[] = []
      for (let i = 0; i < 5; i++) {
        const [each] = await claim('wh', { limit: 1 })
        assert.ok(each)
        next.push(each.event.subject)
        await delivered(each)
      }
      const [balance, ...tickets] = next
      assert.equal(balance, 'account:globex')
      assert.deepEqual(tickets, ['ticket:acme 2', 'ticket:globex 0', 'ticket:acme 3', 'ticket:globex 1'])
    })

    it('never uses the id of a deleted delivery again', async () => {
      await create('wh_a')
      await outbox.record([eventOf(1)])
      await outbox.createDeliveries(NOW)
      const [deleted] = (await store.deliveries({ webhook: 'wh_a', limit: 9 })) ?? []
      await store.delete('wh_a', originOf())
      await create('wh_b')
      await outbox.record([eventOf(2)])
      await other.createDeliveries(NOW)
      const [next] = (await store.deliveries({ webhook: 'wh_b', limit: 9 })) ?? []
      assert.ok(Number(next?.id) > Number(deleted?.id), `${next?.id} after ${deleted?.id}`)
    })

    it('signs with both secrets for a while after a rotation', async () => {
      const [old, next] = [newWebhookSecret(), newWebhookSecret()]
      await create('wh', null, old)
      await outbox.record([eventOf(1), eventOf(2, 'line:b')])
      await outbox.createDeliveries(NOW)
      assert.deepEqual((await claim('wh', { limit: 1 }))[0]?.secrets, [old])
      await store.rotate('wh', next, NOW + 5000, originOf())
      assert.deepEqual((await claim('wh'))[0]?.secrets, [next, old])
      const later = await claim('wh', { now: NOW + 60_000 })
      assert.deepEqual(
        later.map(({ secrets }) => secrets),
        [[next], [next]],
      )
    })

    it('lists deliveries newest first, page by page, and deletes the old ones', async () => {
      await create('wh')
      await outbox.record([eventOf(1), eventOf(2), eventOf(3)])
      await outbox.createDeliveries(NOW)
      const page = async (before?: string) =>
        (await store.deliveries({ webhook: 'wh', limit: 2, before })) ?? []
      const [three, two] = await page()
      assert.deepEqual([three?.type, three?.subject, three?.createdAt], ['line.down', 'line:a', NOW])
      assert.equal(three?.event === two?.event, false)
      assert.equal((await page(two?.id)).length, 1)
      assert.equal(await outbox.prune(NOW, 9), 0)
      assert.equal(await outbox.prune(NOW + 1, 2), 2)
      assert.equal(await outbox.prune(NOW + 1, 2), 1)
      assert.deepEqual(await page(), [])
    })
  })
}
