import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { type Call, callOf } from '../../core/call/index.ts'
import type { GatewayError } from '../../core/errors/index.ts'
import { StoreAway } from '../../core/store-guard/index.ts'
import { accountLevel, type DemandPlan, demandOf, keyLevel, type LimitLevel, neverPassed } from './demand.ts'
import { limitHeaders } from './limit-headers.ts'
import {
  type Demand,
  type Limit,
  type LimitStore,
  MOST_WAIT_MS,
  PARDON_MS,
  type Verdict,
} from './limit-store.ts'
import { MemoryLimitStore } from './memory-limit-store.ts'
import { SubjectsOfLevel } from './subjects.ts'

/** Options of {@link rateLimit}. */
export interface RateLimitOptions {
  /**
   * Whom to limit and how far, each limit a value or a function of the request. A request has to pass all of them. The
   * subject of the first level that applies is the sender, whose wait grows when it does not honour Retry-After.
   * Defaults to the key and the account that `authenticate` found, with their own limits.
   */
  levels?: readonly LimitLevel[]
  /** The tokens of a request. Defaults to the estimated input tokens that `readRequest` found, else none. */
  tokens?: (req: Request, call: Call) => number
  /** Where counts and slots are kept. Defaults to this process's memory. */
  store?: LimitStore
  /**
   * What happens while the store is away: `local` counts in this process's memory until it is back, `refuse` answers
   * `internal_error`. Defaults to `local`.
   */
  onStoreError?: 'local' | 'refuse'
  /** Length of a window in milliseconds, at most 60000; "per minute" is true of 60000 only. Defaults to 60000. */
  windowMs?: number
}

/**
 * Limits requests, tokens and concurrency (spec 8). All or nothing: a refused request consumes nothing anywhere.
 * Refuses with `rate_limited` or `concurrency_limited`, each with a true Retry-After, and notes the limit in
 * `call.limit`. A slot is held until the call ends.
 *
 * @throws TypeError at construction when an option is unusable.
 * @example
 * app.use('/v1', authenticate({ keys }), readRequest({ catalog }), rateLimit())
 * @example
 * app.use(rateLimit({ levels: [{ name: 'ip', by: (req) => req.ip, rpm: 60, concurrency: 5 }] }))
 */
export function rateLimit(options: RateLimitOptions = {}): RequestHandler {
  const plan = planOf(options)
  const countLocally = (options.onStoreError ?? 'local') === 'local'
  const local = new MemoryLimitStore()
  const store = options.store ?? local
  const stores: readonly LimitStore[] = store === local ? [local] : [store, local]
  return function rateLimit(req: Request, res: Response, next: NextFunction): void {
    const call = callOf(req)
    const demand = demandOf(plan, req, call)
    if (!demand) {
      next()
      return
    }
    const tooSmall = neverPassed(demand)
    if (tooSmall) {
      next(refuseForever(call, tooSmall))
      return
    }
    const verdict = ask(demand)
    if ('then' in verdict) void waitFor(call, demand, verdict, res, next)
    else next(apply(call, demand, verdict, res))
  }

  /** What a store throws is its failure as what it rejects with is. */
  function ask(demand: Demand): Verdict | PromiseLike<Verdict> {
    try {
      return store.admit(demand)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  async function waitFor(
    call: Call,
    demand: Demand,
    asked: PromiseLike<Verdict>,
    res: Response,
    next: NextFunction,
  ): Promise<void> {
    let refusal: GatewayError | undefined
    try {
      refusal = afterWaiting(call, demand, await answerTo(demand, asked), res)
    } catch (error) {
      refusal = call.refuse('internal_error', { cause: error, foreseen: error instanceof StoreAway })
    }
    next(refusal)
  }

  /** Undefined: the request may go on. */
  function apply(call: Call, demand: Demand, verdict: Verdict, res: Response): GatewayError | undefined {
    if (verdict.refusedBy) return refuse(call, demand, verdict, verdict.refusedBy)
    // Should the store go away meanwhile, what runs here has to count.
    if (demand.slots.length > 0 && store !== local) local.hold(demand)
    const duringWait = verdict.waitMs > 0
    call.onEnd('limits', () => end(call, demand, duringWait))
    if (!res.headersSent) limitHeaders(call.protocol.name, demand, verdict, res)
    return undefined
  }

  /** A caller that left while the store was asked has no use for the handler behind. */
  function afterWaiting(
    call: Call,
    demand: Demand,
    verdict: Verdict,
    res: Response,
  ): GatewayError | undefined {
    const refusal = apply(call, demand, verdict, res)
    return call.left ? call.refuse('client_closed_request') : refusal
  }

  async function answerTo(demand: Demand, asked: PromiseLike<Verdict>): Promise<Verdict> {
    try {
      return await asked
    } catch (error) {
      return withoutStore(demand, error)
    }
  }

  /** @throws the store's own error where that is to refuse the call: it is never a 429. */
  function withoutStore(demand: Demand, error: unknown): Verdict {
    const verdict = countLocally && error instanceof StoreAway ? local.admit(demand) : undefined
    if (verdict && !verdict.refusedBy) store.hold(demand)
    // The store may have admitted unheard what is refused here.
    else store.release(demand)
    if (!verdict) throw error
    return verdict
  }

  function end({ startedAt }: Call, demand: Demand, duringWait: boolean): void {
    // A call that was shorter cannot have ended that long after a refusal that it outlived.
    const outlives = duringWait || Date.now() - startedAt >= PARDON_MS
    const pardons = demand.charges.length > 0 && outlives
    for (const each of stores) {
      if (demand.slots.length > 0) each.release(demand)
      if (pardons) each.ended?.(demand.sender)
    }
  }
}

function refuse(call: Call, demand: Demand, verdict: Verdict, limit: Limit): GatewayError {
  const headers: Record<string, string> = {}
  const setHeader = (name: string, value: string) => {
    headers[name] = value
  }
  limitHeaders(call.protocol.name, demand, verdict, { setHeader })
  note(call, limit, verdict.waitMs)
  return call.refuse(limit.kind === 'concurrency' ? 'concurrency_limited' : 'rate_limited', {
    retryAfterMs: verdict.waitMs,
    headers,
  })
}

const NEVER = {
  rpm: 'This request can never pass: the rate limit allows no requests at all. Ask for a higher limit.',
  tpm: 'This request can never pass: alone it is larger than the token rate limit allows. Shorten it, or ask for a higher limit.',
  concurrency:
    'This request can never pass: the concurrency limit allows no requests at all. Ask for a higher limit.',
} as const

/** Every 429 has a Retry-After, but here waiting is of no use, so clients are told not to retry. */
function refuseForever(call: Call, limit: Limit): GatewayError {
  note(call, limit, MOST_WAIT_MS)
  return call.refuse(limit.kind === 'concurrency' ? 'concurrency_limited' : 'rate_limited', {
    message: NEVER[limit.kind],
    retryAfterMs: MOST_WAIT_MS,
    shouldRetry: false,
  })
}

function note(call: Call, { kind, level, subject, most }: Limit, waitMs: number): void {
  const retryAfter = Math.max(1, Math.ceil(waitMs / 1000))
  call.limit = { kind, level, subject, limit: most, retryAfter }
}

function planOf(options: RateLimitOptions): DemandPlan {
  const {
    levels = [keyLevel, accountLevel],
    windowMs = MOST_WAIT_MS,
    onStoreError = 'local',
    store,
  } = options
  const { tokens = (_req, call) => call.request?.estimatedInputTokens ?? 0 } = options
  if (levels.length === 0)
    throw new TypeError('rateLimit: "levels" is empty: leave it out, or name whom to limit')
  for (const { name, by } of levels) {
    if (!name || typeof by !== 'function')
      throw new TypeError(
        'rateLimit: each of "levels" needs a "name" and "by", a function that gives the subject',
      )
  }
  if (new Set(levels.map(({ name }) => name)).size < levels.length)
    throw new TypeError('rateLimit: two of "levels" have the same "name"; they would count as one')
  if (!(Number.isInteger(windowMs) && windowMs >= 1 && windowMs <= MOST_WAIT_MS))
    throw new TypeError('rateLimit: "windowMs" must be whole milliseconds between 1 and 60000')
  if (onStoreError !== 'local' && onStoreError !== 'refuse')
    throw new TypeError('rateLimit: "onStoreError" must be "local" or "refuse"')
  if (store !== undefined && typeof store.admit !== 'function')
    throw new TypeError('rateLimit: "store" must be a LimitStore, such as new RedisLimitStore({ redis })')
  const named = levels.map((level) => ({ level: { ...level }, subjects: new SubjectsOfLevel(level.name) }))
  return { levels: named, tokens, windowMs }
}
