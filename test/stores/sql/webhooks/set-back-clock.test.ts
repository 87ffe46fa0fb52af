import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { newWebhookSecret } from '../../../../lib/management/webhooks/webhook-request.ts'
import { SqlWebhookOutbox, SqlWebhookStore } from '../../../../lib/stores/sql/index.ts'
import { originOf } from '../../../contracts/account-store.ts'
import { eventOf, NOW } from '../../../contracts/webhook-samples.ts'
import { WITHOUT_POSTGRES } from '../../../support/postgres-server.ts'
import { postgresUrl } from '../support/postgres-database.ts'
import { open, temporaryDatabase } from '../support/temporary-database.ts'

const HOUR_MS = 3_600_000

for (const { name, isSqlite, skip } of [
  { name: 'SQLite', isSqlite: true, skip: false },
  { name: 'Postgres', isSqlite: false, skip: WITHOUT_POSTGRES },
])
  describe(`deliveries in ${name} whose process died before its clock was set back`, { skip }, () => {
    it('are another’s soon, in their order, and no attempt is made before its time', async (t) => {
      const { url, remove } = isSqlite ? await temporaryDatabase() : { url: await postgresUrl(), remove() {} }
      t.after(remove)
      const db = await open(t, url)
      const [store, outbox] = [new SqlWebhookStore(db), new SqlWebhookOutbox(db)]
      const webhook = { events: null, description: null, secret: newWebhookSecret() }
      await store.create({ id: 'wh', url: 'https://wh.example/', ...webhook }, originOf())
      const [first, second, waiting] = [eventOf(1), eventOf(2), eventOf(3, 'line:b')]
      await outbox.record([first, second, waiting])
      await outbox.createDeliveries(NOW)
      const claim = async (owner: string, now: number) => {
        const claimed = await outbox.claim({ webhook: 'wh', owner, now, until: now + 30_000, limit: 9 })
        return claimed.map(({ id, event }) => ({ id, event: event.id }))
      }

      const [lost, late] = await claim('ahead', NOW + HOUR_MS)
      assert.deepEqual([lost?.event, late?.event], [first.id, waiting.id])
      const failed = { kind: 'failed', status: 500, error: 'answered 500', nextAt: NOW + HOUR_MS } as const
      await outbox.finish(String(late?.id), 'ahead', failed, NOW + HOUR_MS)

      assert.deepEqual(await outbox.due(NOW), ['wh'])
      const found = await claim('one', NOW)
      assert.deepEqual(found, [lost])
      assert.deepEqual(await claim('other', NOW), [])
      // One that comes back ends nothing.
      await outbox.finish(String(lost?.id), 'ahead', { kind: 'delivered', status: 204 }, NOW)
      assert.deepEqual(await claim('other', NOW + 1), [])
      await outbox.finish(String(lost?.id), 'one', { kind: 'delivered', status: 204 }, NOW)
      assert.deepEqual(
        (await claim('other', NOW + 1)).map(({ event }) => event),
        [second.id],
      )
    })
  })
