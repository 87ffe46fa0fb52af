import type { Request, Response, Router } from 'express'
import { type CallLogEntry, callOf, hasRole, isRequestId } from '../../core/call/index.ts'
import type { CallStore } from '../../core/call-store/index.ts'
import {
  type AccountOption,
  accountScope,
  anAccount,
  listPage,
  newRouter,
  ownQuery,
  readTaggedQuery,
  setNoStore,
} from '../../core/json-api/index.ts'
import { anObjectWith, checkOptions, required } from '../../core/options/index.ts'
import { boundedStore } from '../../core/store-guard/index.ts'
import { allCallsQuerySchema, callQuerySchema, filtersOf } from './call-query.ts'

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
 * filters `key`, `model`, `user`, `tag:<name>`, `status`, `code`, `client_request_id`,
 * `min_duration_ms`, `from` (inclusive) and `to` (exclusive), and pages with `limit` and `cursor`. Calls
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
  const scopeOf = accountScope(options.account)
  const isAll = options.account === 'all'
  const store = boundedStore('call log', options.store)
  const shown = isAll ? (entry: CallLogEntry) => entry : withoutCost
  const router = newRouter()
  router.get('/calls', ownQuery, listCalls)
  router.get('/calls/:request_id', findCall)
  return router

  async function listCalls(req: Request, res: Response): Promise<void> {
    const scope = scopeOf(req)
    const { query, tags } = readTaggedQuery(req, isAll ? allCallsQuerySchema : callQuerySchema)
    const { cursor, limit, ...filters } = query
    const { entries, next } = await store.list({
      ...filtersOf(filters),
      tags,
      ...scope,
      before: cursor,
      limit: limit + 1,
    })
    send(res, listPage(entries, limit, shown, next))
  }

  async function findCall(req: Request, res: Response): Promise<void> {
    const scope = scopeOf(req)
    const id = String(req.params.request_id)
    const entry = isRequestId(id) ? await store.find(id) : undefined
    if (!entry || (scope.account !== undefined && entry.account !== scope.account))
      throw callOf(req).refuse('not_found')
    // What was answered to a caller is not for every operator.
    const readable = hasRole(req, 'support') ? entry : { ...entry, response_body: null }
    send(res, shown(readable))
  }
}

/** What a call cost the operator is not for callers. */
function withoutCost(entry: CallLogEntry): CallLogEntry {
  if (!entry.billing || !('cost' in entry.billing)) return entry
  const { cost: _, ...billing } = entry.billing
  return { ...entry, billing }
}

function send(res: Response, body: object): void {
  setNoStore(res)
  res.json(body)
}
