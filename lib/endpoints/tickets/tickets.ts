import { setTimeout as sleep } from 'node:timers/promises'
import type { Request, Router } from 'express'
import { z } from 'zod'
import { type CallLogEntry, callOf, isRequestId } from '../../core/call/index.ts'
import {
  accountFrom,
  answersWith,
  endpointFor,
  newRouter,
  orNotFound,
  serveEndpoints,
} from '../../core/json-api/index.ts'
import { aFunction, aNumber, anObjectWith, checkOptions, required } from '../../core/options/index.ts'
import { boundedStore } from '../../core/store-guard/index.ts'
import {
  type CallsView,
  MAX_OPEN_TICKETS,
  type Ticket,
  type TicketRefusal,
  type TicketStore,
} from '../../core/tickets/index.ts'
import { describeTicket, isTicketId, newTicketId, questionText, ticket } from './ticket.ts'

interface TicketParts {
  readonly store: TicketStore
  readonly calls: CallsView
  readonly entryWithinMs: number
  /** The account whose tickets the request may create and see. */
  readonly account: string
}

const endpoint = endpointFor<TicketParts>()

export const TICKET_ENDPOINTS = [
  endpoint({
    id: 'createTicket',
    method: 'post',
    path: '/tickets',
    summary: 'Creates a ticket about a call',
    body: z.strictObject({
      request_id: z
        .string()
        .refine(isRequestId, { error: 'must be a request id, as in X-Request-Id' })
        .describe('The call that the ticket is about, of the same account.'),
      message: questionText,
    }),
    answers: answersWith('Ticket', ticket, 201),
    async handle({ req, body: { request_id: requestId, message } }, parts) {
      const entry = await waitForEntry(requestId, parts)
      if (entry?.account !== parts.account)
        throw callOf(req).refuse('not_found', {
          message:
            'This account has no call with this request id. A call has an entry once it has ended; if it is running, wait for its end.',
        })
      const made = newTicket({ account: parts.account, requestId, message }, req)
      const refusal = await parts.store.add(made)
      if (refusal) throw callOf(req).refuse('conflict', { message: messageOf(refusal) })
      return describeTicket(made)
    },
  }),
  endpoint({
    id: 'getTicket',
    method: 'get',
    path: '/tickets/{id}',
    summary: 'One ticket',
    answers: answersWith('Ticket', ticket),
    async handle({ req, id }, { store, account }) {
      const found = orNotFound(req, isTicketId(id) ? await store.find(id) : undefined)
      return describeTicket(orNotFound(req, found.account === account && found))
    },
  }),
]

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
 * and tickets of other accounts are `not_found`. A call has one open ticket, and an account at most 100: beyond that a new
 * one is a `conflict`.
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
  const accountOf = accountFrom(options.account)
  const store = boundedStore('tickets', options.store)
  const calls = boundedStore('call log', options.calls)
  return serveEndpoints(newRouter(), TICKET_ENDPOINTS, (req) => {
    return { store, calls, entryWithinMs, account: accountOf(req) }
  })
}

/** Waits for the entry of a call, because callers report a failed call right after its end. */
async function waitForEntry(
  requestId: string,
  { calls, entryWithinMs }: TicketParts,
): Promise<CallLogEntry | undefined> {
  const deadline = performance.now() + entryWithinMs
  for (;;) {
    const {
      entries: [entry],
    } = await calls.list({ ids: [requestId], limit: 1 })
    if (entry || performance.now() >= deadline) return entry
    await sleep(POLL_INTERVAL_MS)
  }
}

function messageOf(refusal: TicketRefusal): string {
  return refusal.refused === 'too_many_open'
    ? `This account has ${MAX_OPEN_TICKETS} open tickets, which is the most. Wait until some of them are answered or closed.`
    : `This call has an open ticket, ${refusal.ticket}. Read it with GET /v1/tickets/${refusal.ticket}; you can create another once it is answered or closed.`
}

function newTicket(question: Pick<Ticket, 'account' | 'requestId' | 'message'>, req: Request): Ticket {
  const now = Date.now()
  const key = callOf(req).principal?.keyId ?? null
  const times = { createdAt: now, updatedAt: now }
  return { ...question, ...times, id: newTicketId(now), key, status: 'open', reply: null }
}
