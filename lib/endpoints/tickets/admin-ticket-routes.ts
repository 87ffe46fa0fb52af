import type { Request, Response, Router } from 'express'
import type { z } from 'zod'
import type { CallLogEntry } from '../../core/call/index.ts'
import { actorOf, changeOrigin } from '../../core/change-log/index.ts'
import {
  jsonBody,
  listPage,
  newRouter,
  noStore,
  orNotFound,
  ownQuery,
  readBody,
  readQuery,
} from '../../core/json-api/index.ts'
import { aFunction, anObjectWith, checkOptions, required } from '../../core/options/index.ts'
import { boundedStore } from '../../core/store-guard/index.ts'
import type { CallsView } from './calls-view.ts'
import { describeTicket } from './describe-ticket.ts'
import { isTicketId } from './ticket-id.ts'
import { ticketChangeSchema, ticketQuery } from './ticket-schemas.ts'
import type { Ticket, TicketHandling, TicketStore } from './ticket-store.ts'

/** Options of {@link adminTicketRoutes}. */
export interface AdminTicketRoutesOptions {
  /** The store of tickets. */
  store: TicketStore
  /** The call log with the calls that the tickets are about. */
  calls: CallsView
  /** Returns who makes a change, for the change log. Defaults to the operator's name, with the
   * `ADMIN_TOKEN` to the header `X-Admin-Actor`, else `admin`. */
  actor?: (req: Request) => string
}

/**
 * Returns the operators' routes of tickets: `GET /tickets`, `GET` and `PATCH /tickets/{id}`. Each ticket has the entry of
 * its call. The routes authenticate nobody: mount them behind `adminAccess` or your own authentication.
 *
 * @throws TypeError at construction if a store is missing.
 * @example
 * app.use('/admin', adminAccess({ token }), adminTicketRoutes({ store, calls }))
 */
export function adminTicketRoutes(options: AdminTicketRoutesOptions): Router {
  checkOptions('adminTicketRoutes', options, {
    store: required(anObjectWith('a TicketStore, such as new MemoryTicketStore()', 'change')),
    calls: required(anObjectWith('the CallStore of the call log', 'list')),
    actor: aFunction('a function of the request that returns who makes a change'),
  })
  const { actor = actorOf } = options
  const store = boundedStore('tickets', options.store)
  const calls = boundedStore('call log', options.calls)
  const router = newRouter()
  router.get('/tickets', ownQuery, noStore, listTickets)
  router.get('/tickets/:id', noStore, showTicket)
  router.patch('/tickets/:id', noStore, jsonBody, handleTicket)
  return router

  async function listTickets(req: Request, res: Response): Promise<void> {
    const { limit, cursor, status, account } = readQuery(req, ticketQuery)
    const found = await store.list({ status, account, before: cursor, limit: limit + 1 })
    const entries = await entriesOf(found)
    res.json(listPage(found, limit, (ticket) => withCall(ticket, entries)))
  }

  async function showTicket(req: Request, res: Response): Promise<void> {
    const id = String(req.params.id)
    await send(req, res, isTicketId(id) ? await store.find(id) : undefined)
  }

  async function handleTicket(req: Request, res: Response): Promise<void> {
    const body = readBody(req, ticketChangeSchema)
    const id = String(req.params.id)
    const origin = changeOrigin(req, actor)
    await send(req, res, await store.change(id, (handling) => revised(handling, body), origin))
  }

  async function send(req: Request, res: Response, ticket: Ticket | undefined): Promise<void> {
    const found = orNotFound(req, ticket)
    res.json(withCall(found, await entriesOf([found])))
  }

  async function entriesOf(tickets: readonly Ticket[]): Promise<Map<string, CallLogEntry>> {
    if (tickets.length === 0) return new Map()
    const ids = [...new Set(tickets.map(({ requestId }) => requestId))]
    const { entries } = await calls.list({ ids, limit: ids.length })
    return new Map(entries.map((entry) => [entry.id, entry]))
  }
}

function revised(handling: TicketHandling, body: z.output<typeof ticketChangeSchema>): TicketHandling {
  const { reply = handling.reply } = body
  const hasReply = typeof body.reply === 'string'
  return { status: body.status ?? (hasReply ? 'answered' : handling.status), reply }
}

/** Returns a ticket with the entry of its call; null if the log no longer has it. */
function withCall(ticket: Ticket, entries: ReadonlyMap<string, CallLogEntry>): object {
  return { ...describeTicket(ticket), call: entries.get(ticket.requestId) ?? null }
}
