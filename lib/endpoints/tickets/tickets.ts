import { setTimeout as wait } from 'node:timers/promises'
import { type NextFunction, type Request, type Response, Router } from 'express'
import { type CallLogEntry, callOf } from '../../core/call/index.ts'
import { jsonBody, readBody } from '../../core/json-body/index.ts'
import type { CallsView } from './calls-view.ts'
import { describeTicket } from './describe-ticket.ts'
import { isTicketId, newTicketId } from './ticket-id.ts'
import { newTicketSchema } from './ticket-schemas.ts'
import type { Ticket, TicketStore } from './ticket-store.ts'

/** Options of {@link ticketRoutes}. */
export interface TicketRoutesOptions {
  /** Where tickets are kept. */
  store: TicketStore
  /** Where the calls are found that tickets are about. */
  calls: CallsView
  /**
   * Whose tickets a request may make and see: the id of an account. A request for which the function answers undefined is
   * refused with `missing_credential`. Defaults to the account that `authenticate` found.
   */
  account?: (req: Request) => string | undefined
  /**
   * How long the entry of a call is waited for that has only just ended, in milliseconds. Defaults to 1500: all entries
   * are there within a second.
   */
  entryWithinMs?: number
}

const ASK_AGAIN_MS = 100

/**
 * Tickets as callers make and see them (spec 7.4): `POST /tickets` with the request id of a call of theirs, which no body
 * need be sent along for, and `GET /tickets/{id}`. Another account's call or ticket is `not_found`.
 *
 * @throws TypeError at construction without stores.
 * @example
 * app.use('/v1', authenticate({ keys }), ticketRoutes({ store: new MemoryTicketStore(), calls }))
 */
export function ticketRoutes(options: TicketRoutesOptions): Router {
  const { store, calls, entryWithinMs = 1500 } = options
  const { account = (req: Request) => callOf(req).principal?.accountId } = options
  if (typeof store?.add !== 'function')
    throw new TypeError('ticketRoutes: "store" must be a TicketStore, such as a MemoryTicketStore')
  if (typeof calls?.list !== 'function')
    throw new TypeError('ticketRoutes: "calls" must be the CallStore of the call log')
  if (!(entryWithinMs >= 0)) throw new TypeError('ticketRoutes: "entryWithinMs" must not be negative')
  const router = Router()
  router.post('/tickets', keepFromCaches, jsonBody, createTicket)
  router.get('/tickets/:id', keepFromCaches, showTicket)
  return router

  async function createTicket(req: Request, res: Response): Promise<void> {
    const owner = ownerOf(req)
    const { request_id: requestId, message } = readBody(req, newTicketSchema)
    const entry = await entryOf(requestId)
    if (entry?.account !== owner)
      throw callOf(req).refuse('not_found', {
        param: 'request_id',
        message:
          'There is no call of this account with this request id. Its entry is there once it has ended.',
      })
    const ticket = newTicket({ account: owner, requestId, message }, req)
    await store.add(ticket)
    res.status(201).json(describeTicket(ticket))
  }

  async function showTicket(req: Request, res: Response): Promise<void> {
    const owner = ownerOf(req)
    const id = String(req.params.id)
    const ticket = isTicketId(id) ? await store.find(id) : undefined
    if (ticket?.account !== owner) throw callOf(req).refuse('not_found')
    res.json(describeTicket(ticket))
  }

  /** Those who ask about a call that has failed ask at once. */
  async function entryOf(requestId: string): Promise<CallLogEntry | undefined> {
    const deadline = performance.now() + entryWithinMs
    for (;;) {
      const [entry] = await calls.list({ ids: [requestId], limit: 1 })
      if (entry || performance.now() >= deadline) return entry
      await wait(ASK_AGAIN_MS)
    }
  }

  function ownerOf(req: Request): string {
    const owner = account(req)
    if (owner === undefined) throw callOf(req).refuse('missing_credential')
    return owner
  }
}

function newTicket(said: Pick<Ticket, 'account' | 'requestId' | 'message'>, req: Request): Ticket {
  const now = Date.now()
  const key = callOf(req).principal?.keyId ?? null
  return { ...said, id: newTicketId(now), key, status: 'open', reply: null, createdAt: now, updatedAt: now }
}

/** What a key may see is for its holder alone. */
function keepFromCaches(_req: Request, res: Response, next: NextFunction): void {
  res.setHeader('cache-control', 'private, no-store')
  next()
}
