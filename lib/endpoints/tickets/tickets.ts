import { setTimeout as sleep } from 'node:timers/promises'
import type { Request, Response, Router } from 'express'
import { type CallLogEntry, callOf } from '../../core/call/index.ts'
import { jsonBody, newRouter, noStore, readBody } from '../../core/json-api/index.ts'
import { aFunction, aNumber, anObjectWith, checkOptions, required } from '../../core/options/index.ts'
import { boundedStore } from '../../core/store-guard/index.ts'
import type { CallsView } from './calls-view.ts'
import { describeTicket } from './describe-ticket.ts'
import { isTicketId, newTicketId } from './ticket-id.ts'
import { newTicketSchema } from './ticket-schemas.ts'
import type { Ticket, TicketStore } from './ticket-store.ts'

/** Options of {@link ticketRoutes}. */
export interface TicketRoutesOptions {
  /** The store of tickets. */
  store: TicketStore
  /** The call log with the calls that the tickets are about. */
  calls: CallsView
  /**
   * Returns the id of the account whose tickets a request may create and see. If it returns undefined, the request is
   * refused with `missing_credential`. Defaults to the account that `authenticate` found.
   */
  account?: (req: Request) => string | undefined
  /**
   * How long to wait for the entry of a call that has just ended, in milliseconds. Defaults to 1500; entries are written
   * within a second.
   */
  entryWithinMs?: number
}

const POLL_INTERVAL_MS = 100

/**
 * Returns the callers' routes of tickets: `POST /tickets` with the request id of a call, and `GET /tickets/{id}`. Calls
 * and tickets of other accounts are `not_found`.
 *
 * @throws TypeError at construction if a store is missing.
 * @example
 * app.use('/v1', authenticate({ keys }), ticketRoutes({ store: new MemoryTicketStore(), calls }))
 */
export function ticketRoutes(options: TicketRoutesOptions): Router {
  checkOptions('ticketRoutes', options, {
    store: required(anObjectWith('a TicketStore, such as new MemoryTicketStore()', 'add')),
    calls: required(anObjectWith('the CallStore of the call log', 'list')),
    account: aFunction('a function of the request that returns an account'),
    entryWithinMs: aNumber('a number of milliseconds from 0 up', 0),
  })
  const { entryWithinMs = 1500 } = options
  const { account = (req: Request) => callOf(req).principal?.accountId } = options
  const store = boundedStore('tickets', options.store)
  const calls = boundedStore('call log', options.calls)
  const router = newRouter()
  router.post('/tickets', noStore, jsonBody, createTicket)
  router.get('/tickets/:id', noStore, showTicket)
  return router

  async function createTicket(req: Request, res: Response): Promise<void> {
    const owner = ownerOf(req)
    const { request_id: requestId, message } = readBody(req, newTicketSchema)
    const entry = await entryOf(requestId)
    if (entry?.account !== owner)
      throw callOf(req).refuse('not_found', {
        message:
          'This account has no call with this request id. A call has an entry once it has ended; if it is running, wait for its end.',
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

  /** Waits for the entry of a call, because callers report a failed call right after its end. */
  async function entryOf(requestId: string): Promise<CallLogEntry | undefined> {
    const deadline = performance.now() + entryWithinMs
    for (;;) {
      const {
        entries: [entry],
      } = await calls.list({ ids: [requestId], limit: 1 })
      if (entry || performance.now() >= deadline) return entry
      await sleep(POLL_INTERVAL_MS)
    }
  }

  function ownerOf(req: Request): string {
    const owner = account(req)
    if (owner === undefined) throw callOf(req).refuse('missing_credential')
    return owner
  }
}

function newTicket(question: Pick<Ticket, 'account' | 'requestId' | 'message'>, req: Request): Ticket {
  const now = Date.now()
  const key = callOf(req).principal?.keyId ?? null
  const times = { createdAt: now, updatedAt: now }
  return { ...question, ...times, id: newTicketId(now), key, status: 'open', reply: null }
}
