import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { MemoryChangeLog } from '../../../lib/core/change-log/index.ts'
import { MemoryTicketStore } from '../../../lib/endpoints/tickets/index.ts'
import { openDatabase, SqlChangeLog, SqlTicketStore } from '../../../lib/stores/sql/index.ts'
import { ticketStoreContract } from '../../contracts/ticket-store.ts'
import { postgresUrl } from '../../stores/sql/postgres-database.ts'
import { temporaryDatabase } from '../../stores/sql/temporary-database.ts'
import { WITHOUT_POSTGRES } from '../../support/postgres-server.ts'

ticketStoreContract('memory', async () => {
  const changes = new MemoryChangeLog()
  return { tickets: new MemoryTicketStore({ changes }), changes, close: async () => {} }
})

async function storesAt(url: string) {
  const db = await openDatabase(url)
  return { tickets: new SqlTicketStore(db), changes: new SqlChangeLog(db), close: () => db.destroy() }
}

ticketStoreContract('SQLite', async () => {
  const { url, remove } = await temporaryDatabase()
  const stores = await storesAt(url)
  return { ...stores, close: () => stores.close().then(remove) }
})

ticketStoreContract('Postgres', async () => storesAt(await postgresUrl()), WITHOUT_POSTGRES)

describe('tickets in memory', () => {
  it('are bounded: the oldest give way', async () => {
    const store = new MemoryTicketStore({ maxTickets: 2 })
    const rest = { account: 'acme', key: null, requestId: 'req_1', message: 'm', status: 'open' } as const
    for (const id of ['a', 'b', 'c'])
      await store.add({ ...rest, id, reply: null, createdAt: 1, updatedAt: 1 })
    assert.deepEqual(
      (await store.list({ limit: 9 })).map(({ id }) => id),
      ['c', 'b'],
    )
    assert.throws(() => new MemoryTicketStore({ maxTickets: 0 }), /MemoryTicketStore: "maxTickets"/)
  })
})
