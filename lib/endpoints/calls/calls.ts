import { type Request, type Response, Router } from 'express'
import { callOf, isRequestId } from '../../core/call/index.ts'
import type { CallStore } from '../../core/call-store/index.ts'
import { listPage, readQuery } from '../../core/list-page/index.ts'
import { allCallsQuerySchema, callQuerySchema } from './call-query.ts'

/** Options of {@link callLogRoutes}. */
export interface CallLogRoutesOptions {
  /** Where the calls are found. */
  store: CallStore
  /**
   * Whose calls a request may see: the id of an account, or `'all'` behind an operator's own authentication. A request
   * for which the function answers undefined is refused with `missing_credential`. With `'all'`
   * the list can be narrowed by `account`. Defaults to the account that `authenticate` found.
   */
  account?: 'all' | ((req: Request) => string | undefined)
}

/**
 * The call log as its callers see it (spec 7.4): `GET /calls/{request_id}` and `GET /calls`, newest first, narrowed by
 * `model`, `status`, `code`, `from` (inclusive) and `to` (exclusive), paged by `limit` and `cursor`. Another account's
 * call is `not_found`.
 *
 * @throws TypeError at construction without a store.
 * @example
 * app.use('/v1', authenticate({ keys }), callLogRoutes({ store }))
 */
export function callLogRoutes(options: CallLogRoutesOptions): Router {
  const { store, account = (req: Request) => callOf(req).principal?.accountId } = options
  if (typeof store?.find !== 'function') throw new TypeError('callLogRoutes: "store" must be a CallStore')
  const router = Router()
  router.get('/calls', listCalls)
  router.get('/calls/:request_id', findCall)
  return router

  async function listCalls(req: Request, res: Response): Promise<void> {
    const scope = scopeOf(req)
    const { cursor, limit, ...filters } = readQuery(
      req,
      account === 'all' ? allCallsQuerySchema : callQuerySchema,
    )
    // One more than asked for tells whether there is a next page.
    const found = await store.list({ ...filters, ...scope, before: cursor, limit: limit + 1 })
    send(
      res,
      listPage(found, limit, (entry) => entry),
    )
  }

  async function findCall(req: Request, res: Response): Promise<void> {
    const scope = scopeOf(req)
    const id = String(req.params.request_id)
    const entry = isRequestId(id) ? await store.find(id) : undefined
    if (!entry || (scope.account !== undefined && entry.account !== scope.account))
      throw callOf(req).refuse('not_found')
    send(res, entry)
  }

  /** An empty scope is every account: only ever where the options say so. */
  function scopeOf(req: Request): { account?: string } {
    if (account === 'all') return {}
    const own = account(req)
    if (own === undefined) throw callOf(req).refuse('missing_credential')
    return { account: own }
  }
}

/** What a key may see is for its holder alone. */
function send(res: Response, body: object): void {
  res.setHeader('cache-control', 'private, no-store')
  res.json(body)
}
