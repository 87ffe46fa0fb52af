import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'
import type { ChangeLog } from '../../lib/core/change-log/index.ts'
import { MAX_OPEN_TICKETS } from '../../lib/core/tickets/index.ts'
import type { Ticket, TicketHandling, TicketStore } from '../../lib/endpoints/tickets/index.ts'
import { cleaningUp } from '../support/clean-up.ts'
import { originOf } from './account-money.ts'

/** A store to try, with nothing in it. */
export interface TicketStoreUnderTest {
  tickets: TicketStore
  /** Another handle to the same store, as another process has. */
  other: TicketStore
  /** Where changes are recorded; undefined: nowhere. */
  changes?: ChangeLog
  close(): Promise<void>
}

const ticketOf = (id: string, more: Partial<Ticket> = {}): Ticket => ({
  id,
  account: 'acme',
  key: 'key_acme',
  requestId: `req_of_${id}`,
  message: 'Why did this fail?',
  status: 'open',
  reply: null,
  createdAt: 1_767_225_600_000,
  updatedAt: 1_767_225_600_000,
  ...more,
})

/** The contract of every store of tickets. */
export function ticketStoreContract(
  name: string,
  open: () => Promise<TicketStoreUnderTest>,
  skip: string | false = false,
): void {
  describe(`ticket store: ${name}`, { skip }, () => {
    let opened: TicketStoreUnderTest
    let tickets: TicketStore
    const cleanUp = cleaningUp(afterEach)
    beforeEach(async () => {
      opened = await open()
      cleanUp.after(() => opened.close())
      tickets = opened.tickets
    })

    it('finds a ticket as it was created, with any characters in its text', async () => {
      const ticket = ticketOf('tkt_1', { key: null, message: 'Wörüm?\u0000\n"\u{1f9ea}"' })
      await tickets.add(ticket)
      assert.deepEqual(await tickets.find('tkt_1'), ticket)
      assert.equal(await tickets.find('tkt_2'), undefined)
    })

    it('lists newest first, by status and account, page by page', async () => {
      await tickets.add(ticketOf('tkt_2', { account: 'globex' }))
      await tickets.add(ticketOf('tkt_1'))
      await tickets.add(ticketOf('tkt_3', { status: 'closed' }))
      const idsOf = async (query: object) => (await tickets.list({ limit: 9, ...query })).map(({ id }) => id)
      assert.deepEqual(await idsOf({}), ['tkt_3', 'tkt_2', 'tkt_1'])
      assert.deepEqual(await idsOf({ limit: 2 }), ['tkt_3', 'tkt_2'])
      assert.deepEqual(await idsOf({ before: 'tkt_2' }), ['tkt_1'])
      assert.deepEqual(await idsOf({ status: 'open' }), ['tkt_2', 'tkt_1'])
      assert.deepEqual(await idsOf({ status: 'open', account: 'acme' }), ['tkt_1'])
      assert.deepEqual(await idsOf({ status: 'answered' }), [])
    })

    it('changes a ticket, and records its state before and after', async () => {
      const ticket = ticketOf('tkt_1')
      await tickets.add(ticket)
      const origin = originOf('ada')
      const answered = { status: 'answered', reply: 'The line was away.' } as const
      const handled = await tickets.change('tkt_1', () => answered, origin)
      assert.deepEqual(handled, { ...ticket, ...answered, updatedAt: origin.at })
      assert.deepEqual(await tickets.find('tkt_1'), handled)
      const before = { status: 'open', reply: null }
      const change = { action: 'ticket.changed', subject: 'tkt_1', before, after: answered }
      const recorded = await opened.changes?.list({ limit: 9 })
      if (recorded) assert.deepEqual(recorded, [{ ...origin, ...change }])
    })

    it('records nothing if nothing is changed, or the ticket is unknown', async (t) => {
      const ticket = ticketOf('tkt_1')
      await tickets.add(ticket)
      assert.deepEqual(await tickets.change('tkt_1', (handling) => ({ ...handling }), originOf()), ticket)
      const revise = t.mock.fn((handling: TicketHandling) => handling)
      assert.equal(await tickets.change('tkt_2', revise, originOf()), undefined)
      assert.equal(revise.mock.callCount(), 0)
      assert.deepEqual((await opened.changes?.list({ limit: 9 })) ?? [], [])
    })

    it('has one open ticket for each call, for any processes that add them concurrently', async () => {
      const requestId = 'req_1'
      const adding = Array.from({ length: 8 }, (_, n) =>
        (n % 2 ? tickets : opened.other).add(ticketOf(`tkt_${n}`, { requestId })),
      )
      const refusals = (await Promise.all(adding)).filter((refusal) => refusal !== undefined)
      const [open, ...more] = await tickets.list({ limit: 9 })
      assert.ok(open)
      assert.deepEqual(more, [])
      assert.deepEqual(refusals, Array(7).fill({ refused: 'call_has_ticket', ticket: open.id }))
      assert.equal(await tickets.add(ticketOf('tkt_8')), undefined, 'another call may have one')
    })

    it('accepts another ticket for a call after the first was closed, which then cannot be opened again', async () => {
      const requestId = 'req_1'
      await tickets.add(ticketOf('tkt_1', { requestId }))
      const closed = { status: 'closed', reply: null } as const
      await tickets.change('tkt_1', () => closed, originOf())
      assert.equal(await tickets.add(ticketOf('tkt_2', { requestId })), undefined)
      const reopened = await tickets.change('tkt_1', () => ({ status: 'open', reply: null }), originOf())
      assert.deepEqual(reopened, { refused: 'call_has_ticket', ticket: 'tkt_2' })
      assert.equal((await tickets.find('tkt_1'))?.status, 'closed')
      await tickets.change('tkt_2', () => closed, originOf())
      const open = await tickets.change('tkt_1', () => ({ status: 'open', reply: null }), originOf())
      assert.ok(open && 'status' in open && open.status === 'open')
    })

    it('has a limited number of open tickets for each account', async () => {
      for (let n = 0; n < MAX_OPEN_TICKETS - 2; n++) await tickets.add(ticketOf(`tkt_${n}`))
      const last = [1, 2, 3, 4, 5, 6].map((n) =>
        (n % 2 ? tickets : opened.other).add(ticketOf(`tkt_last_${n}`)),
      )
      const refusals = (await Promise.all(last)).filter((refusal) => refusal !== undefined)
      assert.deepEqual(refusals, Array(4).fill({ refused: 'too_many_open' }))
      assert.equal(await tickets.add(ticketOf('tkt_globex', { account: 'globex' })), undefined)
      await tickets.change('tkt_0', () => ({ status: 'answered', reply: 'Yes.' }), originOf())
      assert.equal(await tickets.add(ticketOf('tkt_next')), undefined)
      assert.deepEqual(await tickets.add(ticketOf('tkt_over')), { refused: 'too_many_open' })
    })

    it('loses no concurrent change', async () => {
      await tickets.add(ticketOf('tkt_1', { reply: '' }))
      const addLetter = ({ reply }: TicketHandling) => ({ status: 'open' as const, reply: `${reply}x` })
      await Promise.all(Array.from({ length: 8 }, () => tickets.change('tkt_1', addLetter, originOf())))
      assert.equal((await tickets.find('tkt_1'))?.reply, 'x'.repeat(8))
    })
  })
}
