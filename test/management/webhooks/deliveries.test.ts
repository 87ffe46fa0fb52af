import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import {
  type Delivery,
  newEvent,
  WebhookSender,
  type WebhookSenderOptions,
} from '../../../lib/management/webhooks/index.ts'
import { newWebhookSecret } from '../../../lib/management/webhooks/webhook-request.ts'
import { openDatabase, SqlWebhookOutbox, SqlWebhookStore } from '../../../lib/stores/sql/index.ts'
import { originOf } from '../../contracts/account-store.ts'
import { BACKENDS } from '../../stores/sql/support/postgres-database.ts'
import { PATIENT } from '../../stores/sql/support/temporary-database.ts'
import { until, untilAsync } from '../../support/until.ts'
import { numbersOf, startReceiver } from './receivers.ts'

const quiet = { info: () => {}, warn: () => {}, error: () => {} }
const MINUTE_MS = 60_000

/** Opens a database as a process does, with a sender. */
async function startProcess(t: TestContext, url: string, more: Partial<WebhookSenderOptions> = {}) {
  const db = await openDatabase(url, PATIENT)
  t.after(() => db.destroy())
  const outbox = new SqlWebhookOutbox(db)
  const options = { outbox, allowPrivate: true, pollMs: 10, logger: quiet, ...more }
  const sender = new WebhookSender(options)
  t.after(() => sender.close())
  return { db, outbox, store: new SqlWebhookStore(db), sender }
}

const eventOf = (n: number, subject: string, at = Date.now()) =>
  newEvent({ type: 'line.down', subject, at, data: { n } })

for (const { name, url, skip } of BACKENDS) {
  describe(`deliveries over ${name}`, { skip }, () => {
    it('of two processes: each event is delivered once, in the order of its subject, verified', async (t) => {
      const database = await url(t)
      const [one, two] = [await startProcess(t, database), await startProcess(t, database)]
      const secrets = [newWebhookSecret(), newWebhookSecret()]
      const receivers = await Promise.all(secrets.map((secret) => startReceiver(t, () => secret)))
      for (const [i, { url: at }] of receivers.entries()) {
        const webhook = {
          id: `wh_${i}`,
          url: at,
          events: null,
          description: null,
          secret: String(secrets[i]),
        }
        await one.store.create(webhook, originOf())
      }
      const subjects = ['line:a', 'line:b', 'line:c']
      for (let n = 0; n < 30; n++)
        await (n % 2 ? one : two).outbox.record([eventOf(n, String(subjects[n % 3]))])
      await until(() => receivers.every(({ received }) => received.length >= 30), 'all deliveries')
      for (const receiver of receivers) {
        assert.equal(receiver.requests, 30, 'none comes twice')
        for (let of = 0; of < 3; of++) {
          const own = numbersOf(receiver).filter((n) => Number(n) % 3 === of)
          assert.deepEqual(
            own,
            own.toSorted((a, b) => Number(a) - Number(b)),
          )
        }
      }
    })

    it('to a receiver that was down for hours: all come, in order, with the same id and body, and others wait for none', async (t) => {
      const database = await url(t)
      let now = Date.now()
      const { db, outbox, store } = await startProcess(t, database, { now: () => now })
      const secret = newWebhookSecret()
      const [down, well] = [await startReceiver(t, () => secret), await startReceiver(t, () => secret)]
      const ids = new Set<string>()
      down.answer = (req, res) => {
        ids.add(String(req.headers['webhook-id']))
        res.writeHead(503).end()
      }
      for (const [id, { url: at }] of Object.entries({ wh_down: down, wh_well: well }))
        await store.create({ id, url: at, events: null, description: null, secret }, originOf())
      await outbox.record([eventOf(1, 'line:a', now), eventOf(2, 'line:a', now), eventOf(3, 'line:b', now)])
      await until(() => well.received.length === 3, 'the healthy receiver')
      const attempts = async () =>
        ((await store.deliveries({ webhook: 'wh_down', limit: 9 })) as Delivery[]).map((one) => one.attempts)
      for (let tries = 1; tries <= 6; tries++) {
        await untilAsync(async () => (await attempts()).join() === [tries, 0, tries].join(), `try ${tries}`)
        await untilAsync(async () => {
          const running = await db
            .selectFrom('webhook_deliveries')
            .where('owner', 'is not', null)
            .select('owner')
            .execute()
          return running.length === 0
        }, 'the end of the attempts')
        now += 60 * MINUTE_MS
      }
      assert.equal(ids.size, 2)
      // The signatures are of the faked hour.
      t.mock.method(Date, 'now', () => now)
      down.answer = undefined
      now += 60 * MINUTE_MS
      await until(() => down.received.length === 3, 'the receiver that is back')
      assert.deepEqual(
        numbersOf(down).filter((n) => n !== 3),
        [1, 2],
      )
      assert.ok(down.received.filter(({ data }) => data.n !== 2).every(({ id }) => ids.has(id)))
      assert.equal(well.requests, 3)
    })

    it('are given up after a day, and logged', async (t) => {
      const database = await url(t)
      let now = Date.now()
      const told: object[] = []
      const logger = { ...quiet, warn: (fields: object) => void told.push(fields) }
      const { outbox, store } = await startProcess(t, database, { now: () => now, logger })
      const receiver = await startReceiver(t, () => '')
      receiver.answer = (_, res) => void res.writeHead(500).end()
      const secret = newWebhookSecret()
      await store.create({ id: 'wh', url: receiver.url, events: null, description: null, secret }, originOf())
      await outbox.record([eventOf(1, 'line:a', now), eventOf(2, 'line:a', now)])
      const first = async () => (await store.deliveries({ webhook: 'wh', limit: 9 }))?.at(-1)
      await untilAsync(async () => (await first())?.status === 500, 'the first attempt')
      now += 25 * 60 * MINUTE_MS
      await until(() => told.length === 2, 'the end of both')
      const deliveries = (await store.deliveries({ webhook: 'wh', limit: 9 })) as Delivery[]
      assert.deepEqual(
        deliveries.map(({ attempts, nextAt, deliveredAt, error }) => [attempts, nextAt, deliveredAt, error]),
        [
          [1, null, null, 'answered 500'],
          [2, null, null, 'answered 500'],
        ],
      )
    })

    it('that run when a process ends are made by the next, at once and with the same id', async (t) => {
      const database = await url(t)
      const first = await startProcess(t, database)
      const secret = newWebhookSecret()
      const receiver = await startReceiver(t, () => secret)
      const ids: unknown[] = []
      receiver.answer = (req) => void ids.push(req.headers['webhook-id'])
      const webhook = { id: 'wh', url: receiver.url, events: null, description: null, secret }
      await first.store.create(webhook, originOf())
      await first.outbox.record([eventOf(1, 'line:a')])
      await until(() => ids.length === 1, 'the first attempt')
      await first.sender.close()
      receiver.answer = undefined
      await startProcess(t, database)
      await until(() => receiver.received.length === 1, 'the second attempt')
      assert.deepEqual([receiver.received[0]?.id, receiver.requests], [ids[0], 2])
    })
  })
}
