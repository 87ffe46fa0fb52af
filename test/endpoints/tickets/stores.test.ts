import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { MemoryTicketStore } from '../../../lib/endpoints/tickets/index.ts'
import { SqlChangeLog, SqlTicketStore } from '../../../lib/stores/sql/index.ts'
import { ticketStoreContract } from '../../contracts/ticket-store.ts'
import { onEachDatabase } from '../../stores/sql/support/on-each-database.ts'

ticketStoreContract('memory', async () => {
  const tickets = new MemoryTicketStore()
  return { tickets, other: tickets, close: async () => {} }
})

onEachDatabase(ticketStoreContract, ({ db, other }) => ({
  tickets: new SqlTicketStore(db),
  other: new SqlTicketStore(other),
  changes: new SqlChangeLog(db),
}))

describe('tickets in memory', () => {
  it('are bounded: the oldest of the account with the most give way', async () => {
    const store = new MemoryTicketStore({ maxTickets: 3 })
    const rest = { key: null, message: 'm', status: 'open', reply: null, createdAt: 1, updatedAt: 1 } as const
    for (const [id, account] of [
      ['a', 'globex'],
      ['b', 'acme'],
      ['c', 'acme'],
      ['d', 'acme'],
    ] as const)
      await store.add({ ...rest, id, account, requestId: `req_${id}` })
    assert.deepEqual(
      (await store.list({ limit: 9 })).map(({ id }) => id),
      ['d', 'c', 'a'],
    )
    assert.throws(() => new MemoryTicketStore({ maxTickets: 0 }), /MemoryTicketStore: "maxTickets"/)
  })
})
