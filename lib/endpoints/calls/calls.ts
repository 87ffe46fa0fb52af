import type { Request, Router } from 'express'
import type { z } from 'zod'
import { type CallLogEntry, hasRole, isRequestId } from '../../core/call/index.ts'
import type { CallStore } from '../../core/call-store/index.ts'
import type { Tags } from '../../core/catalog/index.ts'
import {
  type AccountOption,
  accountFrom,
  anAccount,
  answersWith,
  endpointFor,
  listOf,
  listPage,
  newRouter,
  orNotFound,
  serveEndpoints,
} from '../../core/json-api/index.ts'
import { anObjectWith, checkOptions, required } from '../../core/options/index.ts'
import { boundedStore } from '../../core/store-guard/index.ts'
import { allCallsQuery, callQuery, filtersOf } from './call-query.ts'
import { call } from './call-schema.ts'

interface CallParts {
  readonly store: CallStore
}

interface OwnCallParts extends CallParts {
  /** The account whose calls the request may see. */
  readonly account: string
}

const ownEndpoint = endpointFor<OwnCallParts>()

/** The endpoints of callers. */
export const CALL_ENDPOINTS = [
  ownEndpoint({
    id: 'listCalls',
    method: 'get',
    path: '/calls',
    summary: "The account's calls, newest first; filters by tags are `tag:<name>`",
    query: callQuery,
    tagged: true,
    answers: answersWith('CallList', listOf(call)),
    handle: ({ query, tags }, { store, account }) => list({ ...query, account }, tags, store, withoutCost),
  }),
  ownEndpoint({
    id: 'getCall',
    method: 'get',
    path: '/calls/{request_id}',
    summary: 'One call',
    answers: answersWith('Call', call),
    async handle({ req, id }, { store, account }) {
      const entry = await find(req, id, store)
      return withoutCost(orNotFound(req, entry.account === account && entry))
    },
  }),
]

const endpoint = endpointFor<CallParts>()

/** The endpoints of operators. */
export const ALL_CALL_ENDPOINTS = [
  endpoint({
    id: 'listAllCalls',
    method: 'get',
    path: '/calls',
    role: 'viewer',
    summary: 'Calls of all accounts, newest first; filters by tags are `tag:<name>`',
    query: allCallsQuery,
    tagged: true,
    answers: answersWith('CallList', listOf(call)),
    handle: ({ query, tags }, { store }) => list(query, tags, store, (entry) => entry),
  }),
  endpoint({
    id: 'getAnyCall',
    method: 'get',
    path: '/calls/{request_id}',
    role: 'viewer',
    summary: 'One call, of any account',
    answers: answersWith('Call', call),
    handle: ({ req, id }, { store }) => find(req, id, store),
  }),
]

async function list(
  { cursor, limit, ...filters }: z.output<typeof allCallsQuery>,
  tags: Tags | undefined,
  store: CallStore,
  shown: (entry: CallLogEntry) => CallLogEntry,
) {
  const query = { ...filtersOf(filters), tags, before: cursor, limit: limit + 1 }
  const { entries, next } = await store.list(query)
  return listPage(entries, limit, shown, next)
}

async function find(req: Request, id: string, store: CallStore): Promise<CallLogEntry> {
  const entry = orNotFound(req, isRequestId(id) ? await store.find(id) : undefined)
  // Not every operator may read answers to callers.
  return hasRole(req, 'support') ? entry : { ...entry, response_body: null }
}

/** Options of {@link callLogRoutes}. */
export interface CallLogRoutesOptions {
  /** The store of the call log. */
  store: CallStore
  /**
   * Returns the id of the account whose calls a request may see. If it returns undefined, the request is refused with
   * `missing_credential`. `'all'` gives access to all accounts, with a filter `account`: mount it behind your own
   * authentication of operators. Defaults to the account that `authenticate` found.
   */
  account?: AccountOption
}

/**
 * Returns the callers' routes of the call log: `GET /calls/{request_id}`, and `GET /calls`, newest first. The list has the
 * filters `key`, `model`, `user`, `tag:<name>`, `status`, `code`, `outcome`, `counted`,
 * `client_request_id`, `min_duration_ms`, `from` (inclusive) and `to` (exclusive), and pages with `limit` and `cursor`. Calls
 * of other accounts are `not_found`.
 *
 * @throws TypeError at construction without a store.
 * @example
 * app.use('/v1', authenticate({ keys }), callLogRoutes({ store }))
 */
export function callLogRoutes(options: CallLogRoutesOptions): Router {
  checkOptions('callLogRoutes', options, {
    store: required(anObjectWith('a CallStore, such as new MemoryCallStore()', 'find', 'list')),
    account: anAccount,
  })
  const { account } = options
  const store = boundedStore('call log', options.store)
  if (account === 'all') return serveEndpoints(newRouter(), ALL_CALL_ENDPOINTS, () => ({ store }))
  const accountOf = accountFrom(account)
  return serveEndpoints(newRouter(), CALL_ENDPOINTS, (req) => ({ store, account: accountOf(req) }))
}

/** Callers do not see the operator's cost of a call. */
function withoutCost(entry: CallLogEntry): CallLogEntry {
  if (!entry.billing || !('cost' in entry.billing)) return entry
  const { cost: _, ...billing } = entry.billing
  return { ...entry, billing }
}
