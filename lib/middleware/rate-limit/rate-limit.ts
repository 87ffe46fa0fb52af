import type { NextFunction, Request, RequestHandler, Response } from 'express'
import {
  type Call,
  callOf,
  type EarlyRefuser,
  holdLastByte,
  holdLastByteOf,
  type Logger,
  type OpenCall,
  quietLogger,
  upgradeOf,
} from '../../core/call/index.ts'
import type { GatewayError } from '../../core/errors/index.ts'
import {
  type Count,
  type Demand,
  type Limit,
  type LimitStore,
  MAX_WINDOW_MS,
  type Verdict,
  WINDOW_END_MS,
} from '../../core/limit-store/index.ts'
import {
  aFunction,
  aLogger,
  anObjectWith,
  aString,
  aWholeNumber,
  checkOptions,
  errorOf,
  inTime,
  kindOf,
  type OptionRule,
  type OptionRules,
  oneOf,
  required,
} from '../../core/options/index.ts'
import { StoreAway } from '../../core/store-guard/index.ts'
import { isPromise } from '../../core/timing/index.ts'
import {
  accountLevel,
  type DemandPlan,
  demandOf,
  impossibleLimit,
  keyLevel,
  type LimitLevel,
  type LimitValue,
  type OfRequest,
  OPTION_FUNCTION,
  plannedLevel,
} from './demand.ts'
import { GuardedLimitStore } from './guarded-limit-store.ts'
import { ipSubject } from './ip-subject.ts'
import { type HeaderStyle, setLimitHeaders } from './limit-headers.ts'
import { MemoryLimitStore } from './memory-limit-store.ts'
import { refuse, refusePermanently, withHeaders } from './refusals.ts'
import { UnlimitedNotice } from './unlimited-notice.ts'

/** Options of {@link rateLimit}. */
export interface RateLimitOptions {
  /**
   * Requests of an address per window: short for `levels: [{ name: 'ip', by: ipSubject(), requests: limit }]`. Defaults to
   * none.
   */
  limit?: OfRequest<LimitValue>
  /**
   * The subjects to limit, with their limits; each limit is a value or a function of the request. A request must pass
   * all of them. Its subjects together are its sender, whose wait grows if it retries before Retry-After is over. Defaults
   * to the key and the account that `authenticate` found, with their own limits.
   */
  levels?: readonly LimitLevel[]
  /**
   * The tokens of a request: `input` are the estimated input tokens that `readRequest` found. `total` counts these first, and
   * at the end of the call what it really used, output included. A function returns them itself. Defaults to `input`.
   */
  tokens?: 'input' | 'total' | ((req: Request, call: Call) => number | Promise<number>)
  /** Returns whether a request passes without being counted. Defaults to none. */
  skip?: (req: Request, call: Call) => boolean | Promise<boolean>
  /** Keeps counts and slots. Defaults to a `MemoryLimitStore`. */
  store?: LimitStore
  /**
   * The behaviour while the store is away: `local` counts in the memory of this process until it is back, `refuse`
   * answers `internal_error`. Defaults to `local`.
   */
  onStoreError?: 'local' | 'refuse'
  /**
   * The length of a window in milliseconds, at most 31 days, or 24.8 days in memory; whole seconds in Redis. If it is not a
   * minute, levels limit `requests` and `tokens`, not `rpm` and `tpm`. Defaults to 60000.
   */
  windowMs?: number
  /**
   * The form of the limit headers: `openai`, `anthropic`, `ietf` (`RateLimit` and `RateLimit-Policy`) or `none`. Defaults
   * to that of the caller's protocol, which is `openai` outside a model gateway. A refusal has `Retry-After` in any case.
   */
  headers?: HeaderStyle
  /** Is warned once if no level applies to any request. Defaults to the call's logger. */
  logger?: Logger
}

/**
 * Limits requests and tokens per window, and requests that run at the same time. A refused request consumes nothing, at any
 * level. Refuses with `rate_limited` or `concurrency_limited`, both with Retry-After, and notes the limit in `call.limit`.
 * A request holds its slots until its call ends. Later middlewares count further requests with `call.limits`.
 *
 * @throws TypeError at construction when an option is unusable.
 * @example
 * app.use(rateLimit({ limit: 60, windowMs: 60_000 }))
 * @example
 * app.use(rateLimit({ levels: [{ name: 'user', by: (req) => req.user.id, requests: 1000 }], windowMs: 3_600_000 }))
 * @example
 * app.use('/v1', authenticate({ keys }), readRequest({ catalog }), rateLimit())
 */
export function rateLimit(options: RateLimitOptions = {}): RequestHandler & EarlyRefuser {
  const { plan, local, store } = preparedFrom(options)
  const { skip, headers, onStoreError = 'local' } = options
  const notice = new UnlimitedNotice(
    options.levels !== undefined || options.limit !== undefined,
    options.logger,
  )

  const middleware = function rateLimit(req: Request, res: Response, next: NextFunction): Promise<void> {
    // Express answers what `next` throws.
    return limit(req, res, next).then(next, next)
  }

  return Object.assign(middleware, { refuseEarly })

  /** Returns the error that refuses the request; undefined for one that goes on. */
  async function limit(req: Request, res: Response, next: NextFunction): Promise<GatewayError | undefined> {
    const call = callOf(req)
    const demand = await demandFor(req, call, plan)
    if (demand === 'skipped') return undefined
    notice.note(call, demand)
    if (!demand) return undefined
    if (call.left) return call.refuse('client_closed_request')
    const impossible = impossibleLimit(demand)
    if (impossible) return withHeaders(refusePermanently(call, impossible, demand), res)
    let admission: Admission
    try {
      admission = await admit(demand)
    } catch (error) {
      return withHeaders(storeFailure(call, error), res)
    }
    if (isRefused(admission.verdict))
      return withHeaders(refuse(call, demand, admission.verdict, styleOf(call)), res)
    releaseAtEnd(call, demand, admission, req, res, next)
    const { limits: earlier } = call
    call.limits = {
      consumeRequests: async (count) =>
        (await earlier?.consumeRequests(count)) ?? consumeRequests(call, demand, count, res),
    }
    // The caller has left and needs no handler.
    if (call.left) return call.refuse('client_closed_request')
    if (!res.headersSent) setLimitHeaders(styleOf(call), demand, admission.verdict, res)
    return undefined
  }

  async function demandFor(
    req: Request,
    call: OpenCall,
    plan: DemandPlan,
  ): Promise<Demand | 'skipped' | undefined> {
    try {
      const asked = skip?.(req, call)
      const skipped = (isPromise(asked) ? await inTime(OPTION_FUNCTION, asked) : asked) ?? false
      if (typeof skipped !== 'boolean')
        throw new TypeError(`rateLimit: "skip" must return true or false, not ${kindOf(skipped)}`)
      return skipped ? 'skipped' : await demandOf(plan, req, call)
    } catch (error) {
      throw errorOf(OPTION_FUNCTION, error)
    }
  }

  /** @throws the error of the store, unless it is away and the memory of this process counts meanwhile. */
  async function admit(demand: Demand): Promise<Admission> {
    try {
      return { verdict: await store.admit(demand), countedBy: store }
    } catch (error) {
      return admitLocally(demand, error)
    }
  }

  async function admitLocally(demand: Demand, error: unknown): Promise<Admission> {
    const verdict =
      onStoreError === 'local' && error instanceof StoreAway ? await local.admit(demand) : undefined
    // The store may have admitted the demand, or do so later.
    if (verdict && !verdict.refusedBy) store.hold(demand)
    else void store.release(demand)
    if (!verdict) throw error
    return { verdict, countedBy: local }
  }

  function releaseAtEnd(
    call: OpenCall,
    demand: Demand,
    admission: Admission,
    req: Request,
    res: Response,
    next: NextFunction,
  ): void {
    const runs: (() => Promise<void> | undefined)[] = []
    if (demand.slots.length > 0) {
      // If the store goes away meanwhile, the running calls must count here.
      if (store !== local) local.hold(demand)
      let isReleased = false
      runs.push(() => {
        if (isReleased) return undefined
        isReleased = true
        if (store !== local) void local.release(demand)
        return store.release(demand) || undefined
      })
    }
    if (options.tokens === 'total') runs.push(bookingOfTokens(call, demand, admission))
    if (runs.length === 0) return
    for (const run of runs) {
      // A caller that has read the whole answer finds the slot free and the tokens counted, at any process.
      call.onLastByte(run)
      call.onEnd('limits', run)
    }
    const lastByte = () => call.prepareLastByte()
    holdLastByte(res, lastByte, next)
    const upgrade = upgradeOf(req)
    if (upgrade) holdLastByteOf(upgrade.socket, lastByte)
  }

  /** Counts further requests of an admitted call. Returns what makes the refusal if a limit is used up. */
  async function consumeRequests(
    call: OpenCall,
    admitted: Demand,
    count: number,
    res: Response,
  ): Promise<(() => GatewayError) | undefined> {
    const charges = admitted.charges
      .filter(({ kind }) => kind === 'rpm')
      .map((each) => ({ ...each, cost: count }))
    if (charges.length === 0) return undefined
    const demand = { ...admitted, charges, slots: [] }
    const impossible = impossibleLimit(demand)
    if (impossible) return () => refusePermanently(call, impossible, demand)
    try {
      const { verdict } = await admit(demand)
      if (isRefused(verdict)) return () => withHeaders(refuse(call, demand, verdict, styleOf(call)), res)
      if (!res.headersSent) setLimitHeaders(styleOf(call), demand, verdict, res)
      return undefined
    } catch (error) {
      return () => storeFailure(call, error)
    }
  }

  /** The tokens of a body that was not read are unknown. It has at least one. */
  async function refuseEarly(req: Request, call: OpenCall): Promise<GatewayError | undefined> {
    const demand = await demandFor(req, call, { ...plan, tokens: () => 1 })
    if (!demand || demand === 'skipped') return undefined
    const impossible = impossibleLimit(demand)
    if (impossible) return refusePermanently(call, impossible, demand)
    try {
      const verdict = await store.peek?.(demand)
      return verdict && isRefused(verdict) ? refuse(call, demand, verdict, styleOf(call)) : undefined
    } catch {
      // The admission of the request reports the failure, and decides.
      return undefined
    }
  }

  function styleOf({ protocol }: OpenCall): HeaderStyle {
    return headers ?? (protocol.name === 'anthropic' ? 'anthropic' : 'openai')
  }
}

interface Admission {
  readonly verdict: Verdict
  readonly countedBy: LimitStore
}

/** A store that fails causes no 429. */
function storeFailure(call: OpenCall, error: unknown): GatewayError {
  return call.refuse('internal_error', { cause: error, foreseen: error instanceof StoreAway })
}

function isRefused(verdict: Verdict): verdict is Verdict & { readonly refusedBy: Limit } {
  return verdict.refusedBy !== undefined
}

/**
 * Returns a function that books, once the usage of a call is known, the difference between the tokens that it used and those
 * that it was admitted with.
 */
function bookingOfTokens(
  call: OpenCall,
  { charges, windowMs }: Demand,
  { verdict, countedBy }: Admission,
): () => Promise<void> | undefined {
  const admittedAt = performance.now()
  let isBooked = false
  return () => {
    if (isBooked || !call.usage) return undefined
    isBooked = true
    const used = call.usage.inputTokens + call.usage.outputTokens
    const passedMs = performance.now() - admittedAt
    const booked = charges.map(({ kind, key, cost }, i) => {
      const isOpen = (verdict.counts[i] as Count).resetMs - passedMs > WINDOW_END_MS
      if (kind !== 'tpm' || used === cost || (used < cost && !isOpen)) return undefined
      return countedBy.book?.(key, used - cost, windowMs)
    })
    return Promise.all(booked).then(noAnswer, noAnswer)
  }
}

/** The guard of the store logs outages. */
function noAnswer(): void {}

const ofRequest: OptionRule = {
  be: 'a number from 0 up, null for no limit, or a function of the request that returns one',
  accepts: (value) =>
    value === null || typeof value === 'function' || (typeof value === 'number' && value >= 0),
}

const RULES: OptionRules<RateLimitOptions> = {
  limit: ofRequest,
  levels: {
    be: "an array of levels that is not empty, such as [{ name: 'ip', by: ipSubject(), rpm: 60 }]",
    accepts: (value) => Array.isArray(value) && value.length > 0,
  },
  tokens: {
    be: '"input", "total", or a function of the request that returns its tokens',
    accepts: (value) => value === 'input' || value === 'total' || typeof value === 'function',
  },
  skip: aFunction('a function of the request that returns whether it is not counted'),
  store: anObjectWith('a LimitStore, such as new RedisLimitStore({ redis })', 'admit', 'hold', 'release'),
  onStoreError: oneOf('local', 'refuse'),
  windowMs: aWholeNumber('whole milliseconds between 1 and 2678400000 (31 days)', 1, MAX_WINDOW_MS),
  headers: oneOf('openai', 'anthropic', 'ietf', 'none'),
  logger: aLogger,
}

const LEVEL_RULES: OptionRules<LimitLevel> = {
  name: required(aString()),
  by: required(aFunction('a function of the request that returns the subject, such as ipSubject()')),
  requests: ofRequest,
  tokens: ofRequest,
  rpm: ofRequest,
  tpm: ofRequest,
  concurrency: ofRequest,
}

/**
 * Returns what a `rateLimit` works with: its plan, the store, and the memory that counts while the store is away.
 *
 * @throws TypeError when an option is unusable.
 */
function preparedFrom(options: RateLimitOptions): {
  plan: DemandPlan
  store: LimitStore
  local: MemoryLimitStore
} {
  checkOptions('rateLimit', options, RULES)
  const { limit, levels = levelsFor(limit), windowMs = 60_000, tokens } = options
  if (limit !== undefined && options.levels)
    throw new TypeError('rateLimit: give "limit" or "levels", not both: write the limit as a level')
  const { store: given = new MemoryLimitStore() } = options
  const local = isOwnMemory(given) ? given : new MemoryLimitStore()
  given.checkWindow?.(windowMs)
  if (limit === undefined && !options.levels && windowMs !== 60_000)
    throw new TypeError(
      `rateLimit: the limits of keys and accounts are per minute; with a "windowMs" of ${windowMs} give "limit" or "levels"`,
    )
  for (const [i, level] of levels.entries()) checkLevel(level, `rateLimit: "levels[${i}]"`, windowMs)
  if (new Set(levels.map(({ name }) => name)).size < levels.length)
    throw new TypeError(
      'rateLimit: two of "levels" have the same "name", and would count as one; give each its own',
    )
  if (tokens === 'total' && !given.book)
    throw new TypeError('rateLimit: for "tokens": "total", the store must have a method "book"')
  return {
    plan: {
      levels: levels.map(plannedLevel),
      windowMs,
      tokens:
        typeof tokens === 'function' ? tokens : (_req, { request }) => request?.estimatedInputTokens ?? 0,
    },
    store: given === local || given.keepsTime ? given : new GuardedLimitStore(given, quietLogger()),
    local,
  }
}

/** Whether a store is the memory of this process, which is never away. A subclass of it may do anything. */
function isOwnMemory(store: LimitStore): store is MemoryLimitStore {
  return store.constructor === MemoryLimitStore
}

function levelsFor(limit: OfRequest<LimitValue>): readonly LimitLevel[] {
  return limit === undefined ? [keyLevel, accountLevel] : [{ name: 'ip', by: ipSubject(), requests: limit }]
}

function checkLevel(level: unknown, owner: string, windowMs: number): void {
  if (typeof level !== 'object' || level === null)
    throw new TypeError(
      `${owner} must be a level, such as { name: 'ip', by: ipSubject(), rpm: 60 }, not ${kindOf(level)}`,
    )
  checkOptions(owner, level as LimitLevel, LEVEL_RULES)
  const { by, requests, tokens, rpm, tpm, concurrency } = level as LimitLevel
  if (by === (ipSubject as unknown))
    throw new TypeError(`${owner}: "by" is ipSubject itself; call it: by: ipSubject()`)
  if ([requests, tokens, rpm, tpm, concurrency].every((limit) => limit === undefined))
    throw new TypeError(`${owner} limits nothing; give it "requests", "tokens" or "concurrency"`)
  for (const [perMinute, perWindow] of [
    ['rpm', 'requests'],
    ['tpm', 'tokens'],
  ] as const) {
    const { [perMinute]: minute, [perWindow]: window } = level as LimitLevel
    if (minute === undefined) continue
    if (window !== undefined) throw new TypeError(`${owner}: give "${perWindow}" or "${perMinute}", not both`)
    if (windowMs !== 60_000)
      throw new TypeError(
        `${owner}: "${perMinute}" is per minute, and "windowMs" is ${windowMs}; write "${perWindow}" in its place`,
      )
  }
}
