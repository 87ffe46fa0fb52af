import { type NextFunction, type Request, type Response, Router } from 'express'
import type { z } from 'zod'
import { type CallLogEntry, callOf } from '../../core/call/index.ts'
import { actorOfHeader, changeOrigin } from '../../core/change-log/index.ts'
import { jsonBody, readBody } from '../../core/json-body/index.ts'
import { listPage, readQuery } from '../../core/list-page/index.ts'
import type { CallsView } from './calls-view.ts'
import { describeTicket } from './describe-ticket.ts'
import { isTicketId } from './ticket-id.ts'
import { ticketChangeSchema, ticketQuery } from './ticket-schemas.ts'
import type { Ticket, TicketHandling, TicketStore } from './ticket-store.ts'

/** Options of {@link ticketDeskRoutes}. */
export interface TicketDeskRoutesOptions {
  /** Where tickets are kept. */
  store: TicketStore
  /** Where the calls are found that tickets are about. */
  calls: CallsView
  /**
   * Who makes a change, recorded with it. Defaults to the header `X-Admin-Actor`, in which whoever has the token names
   * himself, else `admin`.
   */
  actor?: (req: Request) => string
}

/**
 * Tickets as those see and answer them who run the service: `GET /tickets`, `GET` and `PATCH /tickets/{id}`, each with
 * the call beside it. It asks nobody who they are: mount it behind `adminAccess`, or your own authentication.
 *
 * @throws TypeError at construction without stores.
 * @example
 * app.use('/admin', adminAccess({ token }), ticketDeskRoutes({ store, calls }))
 */
export function ticketDeskRoutes({ store, calls, actor = actorOfHeader }: TicketDeskRoutesOptions): Router {
  if (typeof store?.change !== 'function')
    throw new TypeError('ticketDeskRoutes: "store" must be a TicketStore, such as a MemoryTicketStore')
  if (typeof calls?.list !== 'function')
    throw new TypeError('ticketDeskRoutes: "calls" must be the CallStore of the call log')
  const router = Router()
  router.get('/tickets', keepFromCaches, listTickets)
  router.get('/tickets/:id', keepFromCaches, showTicket)
  router.patch('/tickets/:id', keepFromCaches, jsonBody, handleTicket)
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
    const said = readBody(req, ticketChangeSchema)
    const id = String(req.params.id)
    const origin = changeOrigin(req, actor)
    await send(req, res, await store.change(id, (handling) => revised(handling, said), origin))
  }

  async function send(req: Request, res: Response, ticket: Ticket | undefined): Promise<void> {
    if (!ticket) throw callOf(req).refuse('not_found')
    res.json(withCall(ticket, await entriesOf([ticket])))
  }

  async function entriesOf(tickets: readonly Ticket[]): Promise<Map<string, CallLogEntry>> {
    if (tickets.length === 0) return new Map()
    const ids = [...new Set(tickets.map(({ requestId }) => requestId))]
    const entries = await calls.list({ ids, limit: ids.length })
    return new Map(entries.map((entry) => [entry.id, entry]))
  }
}

function revised(handling: TicketHandling, said: z.output<typeof ticketChangeSchema>): TicketHandling {
  const { reply = handling.reply } = said
  const answers = typeof said.reply === 'string'
  return { status: said.status ?? (answers ? 'answered' : handling.status), reply }
}

/** The call is null once the log has forgotten it. */
function withCall(ticket: Ticket, entries: ReadonlyMap<string, CallLogEntry>): object {
  return { ...describeTicket(ticket), call: entries.get(ticket.requestId) ?? null }
}

function keepFromCaches(_req: Request, res: Response, next: NextFunction): void {
  res.setHeader('cache-control', 'private, no-store')
  next()
}
