import type { NextFunction, Request, RequestHandler, Response } from 'express'
import {
  type Call,
  callOf,
  consoleLogger,
  type EarlyRefuser,
  holdLastByte,
  holdLastByteOf,
  upgradeOf,
} from '../../core/call/index.ts'
import type { GatewayError } from '../../core/errors/index.ts'
import { StoreAway } from '../../core/store-guard/index.ts'
import {
  accountLevel,
  type DemandPlan,
  demandOf,
  impossibleLimit,
  keyLevel,
  type LimitLevel,
} from './demand.ts'
import { GuardedLimitStore } from './guarded-limit-store.ts'
import { setLimitHeaders } from './limit-headers.ts'
import {
  type Demand,
  type Limit,
  type LimitStore,
  MAX_WAIT_MS,
  PARDON_MS,
  type Verdict,
} from './limit-store.ts'
import { MemoryLimitStore } from './memory-limit-store.ts'
import { SpentWindows, slotVerdict } from './spent-windows.ts'
import { SubjectsOfLevel } from './subjects.ts'

/** Options of {@link rateLimit}. */
export interface RateLimitOptions {
  /**
   * The subjects to limit, with their limits; each limit is a value or a function of the request. A request must pass
   * all of them. The subject of the first level that applies is the sender, whose wait grows if it retries before
   * Retry-After is over. Defaults to the key and the account that `authenticate` found, with their own limits.
   */
  levels?: readonly LimitLevel[]
  /** The tokens of a request. Defaults to the estimated input tokens that `readRequest` found, else none. */
  tokens?: (req: Request, call: Call) => number
  /** Keeps counts and slots. Defaults to a {@link MemoryLimitStore}. */
  store?: LimitStore
  /**
   * What happens while the store is away: `local` counts in the memory of this process until it is back, `refuse` answers
   * `internal_error`. Defaults to `local`.
   */
  onStoreError?: 'local' | 'refuse'
  /** The length of a window in milliseconds, at most 60000. Only 60000 makes `rpm` requests per minute. Defaults to 60000. */
  windowMs?: number
}

/**
 * Limits requests and tokens per window, and requests that run at the same time. A refused request consumes nothing, at any
 * level. Refuses with `rate_limited` or `concurrency_limited`, both with Retry-After, and notes the limit in `call.limit`.
 * A request holds its slots until its call ends.
 *
 * @throws TypeError at construction when an option is unusable.
 * @example
 * app.use('/v1', authenticate({ keys }), readRequest({ catalog }), rateLimit())
 * @example
 * app.use(rateLimit({ levels: [{ name: 'ip', by: (req) => req.ip, rpm: 60, concurrency: 5 }] }))
 */
export function rateLimit(options: RateLimitOptions = {}): RequestHandler & EarlyRefuser {
  const plan = planOf(options)
  const countLocally = (options.onStoreError ?? 'local') === 'local'
  const local = new MemoryLimitStore()
  const given = options.store ?? local
  const store = given === local || isOwn(given) ? given : new GuardedLimitStore(given, consoleLogger)
  // What a store of this process alone gives back is free at once.
  const isShared = given.constructor !== MemoryLimitStore
  const stores: readonly LimitStore[] = store === local ? [local] : [store, local]
  const spent = new SpentWindows()
  const limiter = function rateLimit(req: Request, res: Response, next: NextFunction): void {
    const call = callOf(req)
    const demand = demandOf(plan, req, call)
    if (!demand) {
      next()
      return
    }
    const impossible = impossibleLimit(demand)
    if (impossible) {
      next(refuseForGood(call, impossible))
      return
    }
    let verdict: Verdict | PromiseLike<Verdict>
    try {
      verdict = store.admit(demand)
    } catch (error) {
      verdict = Promise.reject(error)
    }
    if ('then' in verdict) void applyLater(call, demand, verdict, req, res, next)
    else next(apply(call, demand, verdict, req, res))
  }

  return Object.assign(limiter, { refuseEarly })

  /** How many tokens the body has is unknown; it has one at least. */
  function refuseEarly(req: Request, call: Call): GatewayError | undefined {
    const demand = demandOf({ ...plan, tokens: () => 1 }, req, call)
    if (!demand) return undefined
    const impossible = impossibleLimit(demand)
    if (impossible) return refuseForGood(call, impossible)
    const known = spent.verdictOn(demand) ?? slotVerdict(demand, local.fullSlot(demand))
    if (!known) return undefined
    // A store in this memory tells all of it, and takes as little of a demand that it refuses.
    const verdict = store instanceof MemoryLimitStore ? store.admit(demand) : known
    if (verdict.refusedBy) return refuse(call, demand, verdict, verdict.refusedBy)
    store.release(demand)
    return undefined
  }

  async function applyLater(
    call: Call,
    demand: Demand,
    asked: PromiseLike<Verdict>,
    req: Request,
    res: Response,
    next: NextFunction,
  ): Promise<void> {
    let refusal: GatewayError | undefined
    try {
      refusal = apply(call, demand, await verdictOn(demand, asked), req, res)
      // The caller has left and needs no handler.
      if (call.left) refusal = call.refuse('client_closed_request')
    } catch (error) {
      refusal = call.refuse('internal_error', { cause: error, foreseen: error instanceof StoreAway })
    }
    next(refusal)
  }

  /** @throws the store's own error if the call is refused for it: a store that fails causes no 429. */
  async function verdictOn(demand: Demand, asked: PromiseLike<Verdict>): Promise<Verdict> {
    try {
      return await asked
    } catch (error) {
      const verdict = countLocally && error instanceof StoreAway ? local.admit(demand) : undefined
      if (verdict && !verdict.refusedBy) store.hold(demand)
      // The store may have admitted the demand that is refused here.
      else void store.release(demand)
      if (!verdict) throw error
      return verdict
    }
  }

  /** Returns the error that refuses the call, or undefined for one that goes on. */
  function apply(
    call: Call,
    demand: Demand,
    verdict: Verdict,
    req: Request,
    res: Response,
  ): GatewayError | undefined {
    spent.note(demand, verdict)
    if (verdict.refusedBy) return refuse(call, demand, verdict, verdict.refusedBy)
    if (demand.slots.length > 0) {
      // If the store goes away meanwhile, the running calls must count here.
      if (store !== local) local.hold(demand)
      if (isShared) {
        releaseBeforeLastByte(call, store, demand, req, res)
        // What the shared store gives back early is no longer taken here either.
        call.onLastByte(() => void local.release(demand))
      }
    }
    call.onEnd('limits', () => {
      // A shorter call cannot outlive a refusal by {@link PARDON_MS}.
      const excuses = verdict.waitMs > 0 || Date.now() - call.startedAt >= PARDON_MS
      for (let i = 0; i < stores.length; i++) {
        const each = stores[i] as LimitStore
        if (demand.slots.length > 0) void each.release(demand)
        if (excuses && demand.charges.length > 0) each.ended?.(demand.sender)
      }
    })
    if (!res.headersSent) setLimitHeaders(call.protocol.name, demand, verdict, res)
    return undefined
  }
}

/** Whether a store is one of ours, which keep time and do not fail otherwise. */
function isOwn(store: LimitStore): boolean {
  return store.keepsTime === true || store.constructor === MemoryLimitStore
}

/** Gives slots back so early that whoever has read the whole answer finds them free at any process. */
function releaseBeforeLastByte(
  call: Call,
  store: LimitStore,
  demand: Demand,
  req: Request,
  res: Response,
): void {
  call.onLastByte(() => store.release(demand) || undefined)
  const run = () => call.lastByte()
  holdLastByte(res, run)
  const upgrade = upgradeOf(req)
  if (upgrade) holdLastByteOf(upgrade.socket, run)
}

function refuse(call: Call, demand: Demand, verdict: Verdict, limit: Limit): GatewayError {
  const headers: Record<string, string> = {}
  const setHeader = (name: string, value: string) => {
    headers[name] = value
  }
  setLimitHeaders(call.protocol.name, demand, verdict, { setHeader })
  note(call, limit, verdict.waitMs)
  return call.refuse(codeOf(limit), { retryAfterMs: verdict.waitMs, headers })
}

const IMPOSSIBLE = {
  rpm: 'This request can never pass: the rate limit allows no requests at all. Ask for a higher limit.',
  tpm: 'This request can never pass: alone it is larger than the token rate limit allows. Shorten it, or ask for a higher limit.',
  concurrency:
    'This request can never pass: the concurrency limit allows no requests at all. Ask for a higher limit.',
} as const

/** Refuses a request that can never pass. Every 429 has a Retry-After, even if waiting is useless. */
function refuseForGood(call: Call, limit: Limit): GatewayError {
  note(call, limit, MAX_WAIT_MS)
  return call.refuse(codeOf(limit), {
    message: IMPOSSIBLE[limit.kind],
    retryAfterMs: MAX_WAIT_MS,
    shouldRetry: false,
  })
}

function codeOf({ kind }: Limit): 'concurrency_limited' | 'rate_limited' {
  return kind === 'concurrency' ? 'concurrency_limited' : 'rate_limited'
}

function note(call: Call, { kind, level, subject, max }: Limit, waitMs: number): void {
  const retryAfter = Math.max(1, Math.ceil(waitMs / 1000))
  call.limit = { kind, level, subject, limit: max, retryAfter }
}

function planOf(options: RateLimitOptions): DemandPlan {
  const { levels = [keyLevel, accountLevel], windowMs = MAX_WAIT_MS, onStoreError = 'local', store } = options
  const { tokens = (_req, call) => call.request?.estimatedInputTokens ?? 0 } = options
  if (levels.length === 0)
    throw new TypeError('rateLimit: "levels" is empty: leave it out, or name whom to limit')
  for (const { name, by } of levels) {
    if (!name || typeof by !== 'function')
      throw new TypeError(
        'rateLimit: each of "levels" needs a "name" and "by", a function that returns the subject',
      )
  }
  if (new Set(levels.map(({ name }) => name)).size < levels.length)
    throw new TypeError('rateLimit: two of "levels" have the same "name"; they would count as one')
  if (!(Number.isInteger(windowMs) && windowMs >= 1 && windowMs <= MAX_WAIT_MS))
    throw new TypeError('rateLimit: "windowMs" must be whole milliseconds between 1 and 60000')
  if (onStoreError !== 'local' && onStoreError !== 'refuse')
    throw new TypeError('rateLimit: "onStoreError" must be "local" or "refuse"')
  if (store !== undefined && typeof store.admit !== 'function')
    throw new TypeError('rateLimit: "store" must be a LimitStore, such as new RedisLimitStore({ redis })')
  const named = levels.map((level) => ({ level: { ...level }, subjects: new SubjectsOfLevel(level.name) }))
  return { levels: named, tokens, windowMs }
}
