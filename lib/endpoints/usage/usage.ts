import type { Request, Response, Router } from 'express'
import { callOf, operatorOf } from '../../core/call/index.ts'
import {
  type AccountOption,
  accountScope,
  anAccount,
  isoTime,
  newRouter,
  ownQuery,
  readTaggedQuery,
  setNoStore,
} from '../../core/json-api/index.ts'
import { anObjectWith, checkOptions, required } from '../../core/options/index.ts'
import { boundedStore } from '../../core/store-guard/index.ts'
import { type UsageStore, UsageSums } from '../../core/usage/index.ts'
import { allUsageQuerySchema, askedUsage, cursorAfter, usageQuerySchema } from './usage-query.ts'
import { csvOf, describeUsage } from './usage-rows.ts'

/** Options of {@link usageRoutes}. */
export interface UsageRoutesOptions {
  /** What the calls have come to: the `usage` of a `MemoryLedger`, or a `SqlUsageStore`. */
  store: UsageStore
  /**
   * Returns the id of the account whose usage a request may see. If it returns undefined, the request is refused with
   * `missing_credential`. `'all'` gives access to all accounts, lines and costs: mount it behind your own authentication of
   * operators. Defaults to the account that `authenticate` found.
   */
  account?: AccountOption
}

/** A year of a large account by users takes seconds. */
const READ_MS = 30_000
/** The most requests of an account or operator that wait while another of it is read. */
const MAX_WAITING = 16

/**
 * Returns the route `GET /usage`: requests, tokens, amounts and durations by hour, day, month, key, model, user and tag, as
 * JSON or CSV.
 *
 * @throws TypeError at construction without a store.
 * @example
 * app.use('/v1', authenticate({ keys }), usageRoutes({ store: ledger.usage }))
 */
export function usageRoutes(options: UsageRoutesOptions): Router {
  checkOptions('usageRoutes', options, {
    store: required(anObjectWith('a UsageStore, such as new SqlUsageStore(db)', 'read')),
    account: anAccount,
  })
  const scopeOf = accountScope(options.account)
  const store = boundedStore('usage', options.store, { read: READ_MS })
  const isAll = options.account === 'all'
  const turns = new ReadTurns()
  const router = newRouter()
  router.get('/usage', ownQuery, showUsage)
  return router

  async function showUsage(req: Request, res: Response): Promise<void> {
    const scope = scopeOf(req)
    const { query: given, tags } = readTaggedQuery(req, isAll ? allUsageQuerySchema : usageQuerySchema)
    const asked = askedUsage(given, Date.now())
    if ('fault' in asked)
      throw callOf(req).refuse('invalid_request', {
        param: asked.param,
        message: `The query parameter "${asked.param}" ${asked.fault}.`,
      })
    const { from, to, groupBy, limit } = asked
    // Operators see all accounts: each has turns of their own.
    const whose = scope.account ?? operatorOf(req)?.name
    const turn = await turns.take(whose, res)
    if (turn === 'gone') return
    if (turn === 'too many') throw callOf(req).refuse('concurrency_limited', { retryAfterMs: 1000 })
    const query = { ...asked, ...scope, tags, limit: limit + 1 }
    const found = await store.read(query).finally(() => turns.end(whose))
    const rows = found.slice(0, limit)
    const last = found.length > limit ? rows.at(-1) : undefined
    const next = last ? cursorAfter(last) : null
    setNoStore(res)
    if (given.format === 'csv') {
      // The columns are the same without rows.
      const names = Object.keys(
        describeUsage({ groups: groupBy.map(() => ''), sums: new UsageSums() }, groupBy, isAll),
      )
      if (next !== null) res.set('x-next-cursor', next)
      res.attachment('usage.csv').type('text/csv')
      res.send(
        csvOf(
          names,
          rows.map((row) => describeUsage(row, groupBy, isAll)),
        ),
      )
      return
    }
    res.json({
      object: 'list',
      from: isoTime(from),
      to: isoTime(to),
      data: rows.map((row) => describeUsage(row, groupBy, isAll)),
      next_cursor: next,
    })
  }
}

type Whose = string | null | undefined

/** Lets one request of each account or operator be read at a time, so that a long one delays only their own. */
class ReadTurns {
  /** The requests that wait, of each account or operator that has a turn. */
  readonly #waiting = new Map<Whose, Set<() => void>>()

  /** Resolves when the turn has come, which {@link end} ends, or when there will be none. */
  async take(whose: Whose, res: Response): Promise<'taken' | 'gone' | 'too many'> {
    const waiting = this.#waiting.get(whose)
    if (!waiting) {
      this.#waiting.set(whose, new Set())
      return 'taken'
    }
    if (waiting.size >= MAX_WAITING) return 'too many'
    return new Promise((resolve) => {
      const begin = (): void => {
        res.off('close', leave)
        resolve('taken')
      }
      const leave = (): void => {
        waiting.delete(begin)
        resolve('gone')
      }
      waiting.add(begin)
      res.once('close', leave)
    })
  }

  end(whose: Whose): void {
    const waiting = this.#waiting.get(whose)
    const [next] = waiting ?? []
    if (!next) this.#waiting.delete(whose)
    else {
      waiting?.delete(next)
      next()
    }
  }
}
