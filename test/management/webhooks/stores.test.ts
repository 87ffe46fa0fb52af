import { SqlChangeLog, SqlWebhookOutbox, SqlWebhookStore } from '../../../lib/stores/sql/index.ts'
import { webhookAnnouncementsContract } from '../../contracts/webhook-announcements.ts'
import { webhookDeliveriesContract } from '../../contracts/webhook-deliveries.ts'
import { webhooksContract } from '../../contracts/webhooks.ts'
import { emptiedDatabase } from '../../stores/sql/support/emptied-database.ts'
import { BACKENDS } from '../../stores/sql/support/postgres-database.ts'

for (const { name, url, skip } of BACKENDS) {
  const emptied = emptiedDatabase(url)
  const open = async () => {
    const { db, other } = await emptied()
    const outboxes = [new SqlWebhookOutbox(db), new SqlWebhookOutbox(other)] as const
    return { store: new SqlWebhookStore(db), outboxes, changes: new SqlChangeLog(db), close: async () => {} }
  }
  webhooksContract(name, open, skip)
  webhookAnnouncementsContract(name, open, skip)
  webhookDeliveriesContract(name, open, skip)
}
