import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { newEvent } from '../../../../lib/management/webhooks/index.ts'
import { writeTogether } from '../../../../lib/stores/sql/driver/write-together.ts'
import { SqlWebhookOutbox, SqlWebhookStore } from '../../../../lib/stores/sql/index.ts'
import { eventRow, RECORD_EVENTS, recordEvents } from '../../../../lib/stores/sql/webhooks/event-rows.ts'
import { originOf } from '../../../contracts/account-store.ts'
import { emptiedDatabase } from '../support/emptied-database.ts'
import { BACKENDS } from '../support/postgres-database.ts'

const at = Date.now()
const exhausted = (budget: string, once?: string) =>
  newEvent({
    type: 'budget.exhausted',
    subject: `budget:${budget}`,
    at,
    data: { budget, odd: '\0 \ud800 "' },
    ...(once !== undefined && { once }),
  })

for (const { name, url, skip } of BACKENDS) {
  const emptied = emptiedDatabase(url)

  describe(`events in the outbox of ${name}`, { skip }, () => {
    it('are stored with the change that they report, or not at all', async () => {
      const { db } = await emptied()
      const kept = exhausted('b1')
      await db.transaction().execute((trx) => recordEvents(trx, [kept]))
      const failed = db.transaction().execute(async (trx) => {
        await recordEvents(trx, [exhausted('b2')])
        throw new Error('the settlement failed')
      })
      await assert.rejects(failed, /the settlement failed/)
      const rows = await db.selectFrom('webhook_events').selectAll().execute()
      const { id, type, subject, data, at: when } = kept
      assert.deepEqual(rows, [
        { id, type, subject, at: BigInt(when), data: JSON.stringify(data), addressed: 0 },
      ])
    })

    it('are recorded once by their name, also among the writes of a settlement', async () => {
      const { db } = await emptied()
      const write = (events: readonly ReturnType<typeof exhausted>[]) =>
        writeTogether(db, [{ statement: RECORD_EVENTS, rows: events.map(eventRow) }])
      assert.equal(await write([exhausted('b1', 'b1 2026-11'), exhausted('b2', 'b2 2026-11')]), true)
      assert.equal(await write([exhausted('b1', 'b1 2026-11'), exhausted('b1', 'b1 2026-12')]), true)
      assert.equal(await recordEvents(db, [exhausted('b1', 'b1 2026-11')]), 0)
      const rows = await db.selectFrom('webhook_events').select('subject').orderBy('subject').execute()
      assert.deepEqual(
        rows.map(({ subject }) => subject),
        ['budget:b1', 'budget:b1', 'budget:b2'],
      )
    })

    it('have no deliveries to a webhook that is deleted while they are addressed, nor any without an event', async () => {
      const { db } = await emptied()
      const outbox = new SqlWebhookOutbox(db)
      const webhook = { url: 'https://hooks.example/', events: null, description: null, secret: 'whsec_' }
      const store = new SqlWebhookStore(db)
      for (const id of ['wh_gone', 'wh']) await store.create({ id, ...webhook }, originOf())
      await outbox.record([exhausted('b1'), exhausted('b2')])
      await outbox.createDeliveries(at)
      // The rows that the deletion leaves where Postgres runs both at once.
      await db.deleteFrom('webhooks').where('id', '=', 'wh_gone').execute()
      await db.deleteFrom('webhook_events').where('subject', '=', 'budget:b2').execute()
      const claim = { owner: 'one', now: at + 1, until: at + 2, limit: 9 }
      const claimed = [
        await outbox.claim({ webhook: 'wh_gone', ...claim }),
        await outbox.claim({ webhook: 'wh', ...claim }),
      ]
      assert.deepEqual(
        claimed.map((some) => some.map(({ event }) => event.subject)),
        [[], ['budget:b1']],
      )
      assert.deepEqual(await outbox.due(at + 9), ['wh'])
      const left = await db.selectFrom('webhook_deliveries').select(['webhook', 'subject']).execute()
      assert.deepEqual(left, [{ webhook: 'wh', subject: 'budget:b1' }])
    })
  })
}
