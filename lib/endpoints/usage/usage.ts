import type { Response, Router } from 'express'
import { callOf, operatorOf } from '../../core/call/index.ts'
import {
  type AccountOption,
  accountFrom,
  anAccount,
  type EndpointRequest,
  endpointFor,
  isoTime,
  newRouter,
  serveEndpoints,
  setNoStore,
} from '../../core/json-api/index.ts'
import { anObjectWith, checkOptions, required } from '../../core/options/index.ts'
import { boundedStore } from '../../core/store-guard/index.ts'
import { type UsageStore, UsageSums } from '../../core/usage/index.ts'
import { allUsageQuery, askedUsage, cursorOf, type GivenQuery, ownUsageQuery } from './usage-query.ts'
import { csvOf, describeUsage, USAGE_ANSWERS, type UsageAnswer } from './usage-rows.ts'

/** Options of {@link usageRoutes}. */
export interface UsageRoutesOptions {
  /** The sums of the calls: the `usage` of a `MemoryLedger`, or a `SqlUsageStore`. */
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
 * Returns the route `GET /usage`: requests, tokens, amounts and durations by minute, hour, day, month, key, model, user and tag, as
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
  const store = boundedStore('usage', options.store, { read: READ_MS })
  const { account } = options
  const parts = { store, turns: new ReadTurns() }
  if (account === 'all') return serveEndpoints(newRouter(), ALL_USAGE_ENDPOINTS, () => parts)
  const accountOf = accountFrom(account)
  return serveEndpoints(newRouter(), USAGE_ENDPOINTS, (req) => ({ ...parts, account: accountOf(req) }))
}

interface UsageParts {
  readonly store: UsageStore
  readonly turns: ReadTurns
}

interface OwnUsageParts extends UsageParts {
  /** The account whose usage the request may see. */
  readonly account: string
}

const ownEndpoint = endpointFor<OwnUsageParts>()

/** The endpoint of callers. */
export const USAGE_ENDPOINTS = [
  ownEndpoint({
    id: 'getOwnUsage',
    method: 'get',
    path: '/usage',
    summary: 'Usage of the account, by group; filters by tags are `tag:<name>`',
    query: ownUsageQuery,
    tagged: true,
    answers: USAGE_ANSWERS,
    handle(request, parts) {
      const { account } = parts
      return showUsage({ ...request, query: { ...request.query, account } }, account, parts)
    },
  }),
]

const endpoint = endpointFor<UsageParts>()

/** The endpoint of operators. */
export const ALL_USAGE_ENDPOINTS = [
  endpoint({
    id: 'getUsage',
    method: 'get',
    path: '/usage',
    role: 'viewer',
    summary: 'Usage of all accounts, by group; filters by tags are `tag:<name>`',
    query: allUsageQuery,
    tagged: true,
    answers: USAGE_ANSWERS,
    // Operators see all accounts: each has turns of their own.
    handle: (request, parts) => showUsage(request, operatorOf(request.req)?.name, parts, true),
  }),
]

async function showUsage(
  { req, res, query: given, tags }: EndpointRequest<GivenQuery, unknown>,
  reader: Reader,
  { store, turns }: UsageParts,
  withCost = false,
): Promise<UsageAnswer | undefined> {
  const asked = askedUsage(given, Date.now())
  if ('fault' in asked)
    throw callOf(req).refuse('invalid_request', {
      param: asked.param,
      message: `The query parameter "${asked.param}" ${asked.fault}.`,
    })
  const { from, to, groupBy, limit } = asked
  const turn = await turns.take(reader, res)
  if (turn === 'gone') return undefined
  if (turn === 'too many') throw callOf(req).refuse('concurrency_limited', { retryAfterMs: 1000 })
  const found = await store.read({ ...asked, tags, limit: limit + 1 }).finally(() => turns.end(reader))
  const rows = found.slice(0, limit)
  const last = found.length > limit ? rows.at(-1) : undefined
  const next = last ? cursorOf(last) : null
  const data = rows.map((row) => describeUsage(row, groupBy, withCost))
  if (given.format === 'json')
    return { object: 'list', from: isoTime(from), to: isoTime(to), data, next_cursor: next }
  // The columns are the same without rows.
  const names = Object.keys(
    describeUsage({ groups: groupBy.map(() => ''), sums: new UsageSums() }, groupBy, withCost),
  )
  setNoStore(res)
  if (next !== null) res.set('x-next-cursor', next)
  res.attachment('usage.csv').type('text/csv').send(csvOf(names, data))
  return undefined
}

type Reader = string | null | undefined

/** Lets one request of each account or operator be read at a time, so that a long one delays only their own. */
class ReadTurns {
  /** The requests that wait, of each account or operator that has a turn. */
  readonly #waiting = new Map<Reader, Set<() => void>>()

  /** Resolves when the turn has come, which {@link end} ends, or when there will be none. */
  async take(reader: Reader, res: Response): Promise<'taken' | 'gone' | 'too many'> {
    const waiting = this.#waiting.get(reader)
    if (!waiting) {
      this.#waiting.set(reader, new Set())
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

  end(reader: Reader): void {
    const waiting = this.#waiting.get(reader)
    const [next] = waiting ?? []
    if (!next) this.#waiting.delete(reader)
    else {
      waiting?.delete(next)
      next()
    }
  }
}
