import type { Request, Router } from 'express'
import { z } from 'zod'
import { type CallLogEntry, callOf } from '../../core/call/index.ts'
import { actorOf, changeOrigin } from '../../core/change-log/index.ts'
import {
  type AnswerOf,
  answersWith,
  endpointFor,
  listOf,
  listPage,
  newRouter,
  orNotFound,
  pageMembers,
  serveEndpoints,
} from '../../core/json-api/index.ts'
import { aFunction, anObjectWith, checkOptions, required } from '../../core/options/index.ts'
import { boundedStore } from '../../core/store-guard/index.ts'
import {
  type CallsView,
  TICKET_STATUSES,
  type Ticket,
  type TicketHandling,
  type TicketStore,
} from '../../core/tickets/index.ts'
import { call } from '../../endpoints/calls/call-schema.ts'
import { describeTicket, isTicketId, ticket, ticketText } from '../../endpoints/tickets/ticket.ts'
import type { ResourceParts } from '../resource.ts'

const status = z.enum(TICKET_STATUSES, `must be one of ${TICKET_STATUSES.join(', ')}`)

/** A reply without a status sets the status to `answered`. */
const ticketPatch = z.strictObject({ status, reply: ticketText.nullable() }).partial()

const ticketWithCall = ticket.extend({ call: call.nullable() })
export type TicketWithCallAnswer = AnswerOf<typeof ticketWithCall>

interface TicketParts extends ResourceParts {
  readonly store: TicketStore
  readonly calls: CallsView
}

const endpoint = endpointFor<TicketParts>()

/** Tickets of all accounts, each with the entry of its call. A ticket quotes what a caller asked a model. */
export const ADMIN_TICKET_ENDPOINTS = [
  endpoint({
    id: 'listTickets',
    method: 'get',
    path: '/tickets',
    role: 'support',
    summary: 'Tickets, newest first, each with its call',
    query: z.strictObject({
      ...pageMembers(isTicketId),
      status: status.optional(),
      account: z.string({ error: 'must be the id of an account, sent once' }).optional(),
    }),
    answers: answersWith('TicketWithCallList', listOf(ticketWithCall)),
    async handle({ query: { limit, cursor, status, account } }, { store, calls }) {
      const found = await store.list({ status, account, before: cursor, limit: limit + 1 })
      const entries = await entriesOf(found, calls)
      return listPage(found, limit, (each) => withCall(each, entries))
    },
  }),
  endpoint({
    id: 'getAnyTicket',
    method: 'get',
    path: '/tickets/{id}',
    role: 'support',
    summary: 'One ticket with its call',
    answers: answersWith('TicketWithCall', ticketWithCall),
    async handle({ req, id }, { store, calls }) {
      const found = orNotFound(req, isTicketId(id) ? await store.find(id) : undefined)
      return withCall(found, await entriesOf([found], calls))
    },
  }),
  endpoint({
    id: 'handleTicket',
    method: 'patch',
    path: '/tickets/{id}',
    role: 'support',
    summary: 'Answers a ticket, or changes its status',
    body: ticketPatch,
    answers: answersWith('TicketWithCall', ticketWithCall),
    async handle({ req, id, body }, { store, calls, origin }) {
      const changed = await store.change(id, (handling) => revised(handling, body), origin(req))
      if (changed && 'refused' in changed) throw callOf(req).refuse('conflict', { message: OTHER_OPEN })
      const found = orNotFound(req, changed)
      return withCall(found, await entriesOf([found], calls))
    },
  }),
]

const OTHER_OPEN =
  'The call of this ticket has another open ticket. Close that one before you open this one again.'

/** Options of {@link adminTicketRoutes}. */
export interface AdminTicketRoutesOptions {
  /** The store of tickets. */
  store: TicketStore
  /** The call log with the calls that the tickets are about. */
  calls: CallsView
  /**
   * Returns who makes a change, for the change log. Defaults to the operator's name, with the `ADMIN_TOKEN` to the header
   * `X-Admin-Actor`, else `admin`.
   */
  actor?: (req: Request) => string
}

/**
 * Returns the operators' routes of tickets: `GET /tickets`, `GET` and `PATCH /tickets/{id}`. Each ticket has the entry of
 * its call. The routes do not authenticate: mount them behind `adminAccess` or your own authentication.
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
  const parts: TicketParts = {
    store: boundedStore('tickets', options.store),
    calls: boundedStore('call log', options.calls),
    origin: (req) => changeOrigin(req, actor),
  }
  return serveEndpoints(newRouter(), ADMIN_TICKET_ENDPOINTS, () => parts)
}

async function entriesOf(
  tickets: readonly Ticket[],
  calls: CallsView,
): Promise<ReadonlyMap<string, CallLogEntry>> {
  if (tickets.length === 0) return new Map()
  const ids = [...new Set(tickets.map(({ requestId }) => requestId))]
  const { entries } = await calls.list({ ids, limit: ids.length })
  return new Map(entries.map((entry) => [entry.id, entry]))
}

function revised(handling: TicketHandling, body: z.output<typeof ticketPatch>): TicketHandling {
  const { reply = handling.reply } = body
  const hasReply = typeof body.reply === 'string'
  return { status: body.status ?? (hasReply ? 'answered' : handling.status), reply }
}

/** Returns a ticket with the entry of its call; null if the log no longer has it. */
function withCall(ticket: Ticket, entries: ReadonlyMap<string, CallLogEntry>): TicketWithCallAnswer {
  return { ...describeTicket(ticket), call: entries.get(ticket.requestId) ?? null }
}
