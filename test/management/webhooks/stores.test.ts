import {
  openDatabase,
  SqlChangeLog,
  SqlWebhookOutbox,
  SqlWebhookStore,
} from '../../../lib/stores/sql/index.ts'
import { webhookAnnouncementsContract } from '../../contracts/webhook-announcements.ts'
import { webhookDeliveriesContract } from '../../contracts/webhook-deliveries.ts'
import type { WebhooksUnderTest } from '../../contracts/webhook-samples.ts'
import { webhooksContract } from '../../contracts/webhooks.ts'
import { postgresUrl } from '../../stores/sql/postgres-database.ts'
import { PATIENT, temporaryDatabase } from '../../stores/sql/temporary-database.ts'
import { WITHOUT_POSTGRES } from '../../support/postgres-server.ts'

function contracts(name: string, open: () => Promise<WebhooksUnderTest>, skip: string | false = false): void {
  webhooksContract(name, open, skip)
  webhookAnnouncementsContract(name, open, skip)
  webhookDeliveriesContract(name, open, skip)
}

async function openSql(url: string) {
  const [db, second] = await Promise.all([openDatabase(url, PATIENT), openDatabase(url, PATIENT)])
  return {
    store: new SqlWebhookStore(db),
    outboxes: [new SqlWebhookOutbox(db), new SqlWebhookOutbox(second)] as const,
    changes: new SqlChangeLog(db),
    close: () => Promise.all([db.destroy(), second.destroy()]).then(() => {}),
  }
}

contracts('SQLite', async () => {
  const { url, remove } = await temporaryDatabase()
  const opened = await openSql(url)
  return { ...opened, close: () => opened.close().then(remove) }
})

contracts('Postgres', async () => openSql(await postgresUrl()), WITHOUT_POSTGRES)
