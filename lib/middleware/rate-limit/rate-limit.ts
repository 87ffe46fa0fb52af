import type { NextFunction, Request, RequestHandler, Response } from 'express'
import {
  type Call,
  callOf,
  type EarlyRefuser,
  holdLastByte,
  holdLastByteOf,
  quietLogger,
  upgradeOf,
} from '../../core/call/index.ts'
import type { GatewayError } from '../../core/errors/index.ts'
import { kindOf } from '../../core/options/index.ts'
import { errorOf, settled } from '../../core/own-functions/index.ts'
import { StoreAway } from '../../core/store-guard/index.ts'
import { type DemandPlan, demandOf, impossibleLimit, LATER } from './demand.ts'
import { demandLater } from './demand-later.ts'
import { GuardedLimitStore } from './guarded-limit-store.ts'
import { type HeaderStyle, setLimitHeaders } from './limit-headers.ts'
import { refuse, refuseForGood, shown } from './limit-refusals.ts'
import { type Demand, type LimitStore, PARDON_MS, type Verdict } from './limit-store.ts'
import { MemoryLimitStore } from './memory-limit-store.ts'
import { planOf, type RateLimitOptions } from './rate-limit-plan.ts'
import { SpentWindows, slotVerdict } from './spent-windows.ts'
import { UnlimitedNotice } from './unlimited-notice.ts'

/**
 * Limits requests and tokens per window, and requests that run at the same time. A refused request consumes nothing, at any
 * level. Refuses with `rate_limited` or `concurrency_limited`, both with Retry-After, and notes the limit in `call.limit`.
 * A request holds its slots until its call ends.
 *
 * @throws TypeError at construction when an option is unusable.
 * @example
 * app.use('/v1', authenticate({ keys }), readRequest({ catalog }), rateLimit())
 * @example
 * app.use(rateLimit({ levels: [{ name: 'ip', by: ipSubject(), rpm: 60, concurrency: 5 }] }))
 */
export function rateLimit(options: RateLimitOptions = {}): RequestHandler & EarlyRefuser {
  const plan = planOf(options)
  const { skip, headers } = options
  let notice: UnlimitedNotice | undefined = new UnlimitedNotice(options)
  const countLocally = (options.onStoreError ?? 'local') === 'local'
  const local = new MemoryLimitStore()
  const given = options.store ?? local
  const store = given === local || isOwn(given) ? given : new GuardedLimitStore(given, quietLogger())
  // What a store of this process alone gives back is free at once.
  const isShared = given.constructor !== MemoryLimitStore
  const stores: readonly LimitStore[] = store === local ? [local] : [store, local]
  // A store in this memory tells all of it.
  const spent = store instanceof MemoryLimitStore ? undefined : new SpentWindows()
  /** Whether a function of the options has returned a promise. */
  let awaits = false
  const limiter = function rateLimit(req: Request, res: Response, next: NextFunction): void {
    const call = callOf(req)
    let skipped: boolean | Promise<boolean>
    let demand: Demand | undefined
    try {
      skipped = skip?.(req, call) ?? false
      demand = awaits || skipped !== false ? LATER : demandOf(plan, req, call)
    } catch (error) {
      next(errorOf(OWN, error))
      return
    }
    if (skipped === true) next()
    else if (demand !== LATER) limit(call, demand, req, res, next)
    else void limitLater(call, skipped, req, res, next)
  }

  return Object.assign(limiter, { refuseEarly })

  async function limitLater(
    call: Call,
    skipped: boolean | Promise<boolean>,
    req: Request,
    res: Response,
    next: NextFunction,
  ): Promise<void> {
    awaits = true
    let demand: Demand | 'skipped' | undefined
    try {
      demand = await settled(OWN, judge(plan, skipped, req, call))
    } catch (error) {
      next(error)
      return
    }
    if (demand === 'skipped') next()
    // The caller has left and needs no handler.
    else if (call.left) next(call.refuse('client_closed_request'))
    else limit(call, demand, req, res, next)
  }

  function limit(
    call: Call,
    demand: Demand | undefined,
    req: Request,
    res: Response,
    next: NextFunction,
  ): void {
    if (notice?.settledBy(call, demand)) notice = undefined
    if (!demand) {
      next()
      return
    }
    const impossible = impossibleLimit(demand)
    if (impossible) {
      next(shown(res, refuseForGood(call, impossible)))
      return
    }
    let verdict: Verdict | PromiseLike<Verdict>
    try {
      verdict = store.admit(demand)
    } catch (error) {
      verdict = Promise.reject(error)
    }
    if ('then' in verdict) void applyLater(call, demand, verdict, req, res, next)
    else next(apply(call, demand, verdict, req, res, next))
  }

  /** How many tokens the body has is unknown; it has one at least. */
  function refuseEarly(
    req: Request,
    call: Call,
  ): GatewayError | Promise<GatewayError | undefined> | undefined {
    const early = { ...plan, tokens: () => 1 }
    const skipped = skip?.(req, call) ?? false
    if (skipped === true) return undefined
    const demand = awaits || skipped !== false ? LATER : demandOf(early, req, call)
    if (demand !== LATER) return refusalOf(call, demand)
    awaits = true
    return settled(OWN, judge(early, skipped, req, call)).then((judged) =>
      judged === 'skipped' ? undefined : refusalOf(call, judged),
    )
  }

  /** Returns the error that refuses a demand, by what this process knows. Takes nothing. */
  function refusalOf(call: Call, demand: Demand | undefined): GatewayError | undefined {
    if (!demand) return undefined
    const impossible = impossibleLimit(demand)
    if (impossible) return refuseForGood(call, impossible)
    const verdict =
      store instanceof MemoryLimitStore
        ? store.refuse(demand)
        : (spent?.verdictOn(demand) ?? slotVerdict(demand, local.fullSlot(demand)))
    return verdict && refuse(call, demand, verdict, styleOf(call))
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
      refusal = apply(call, demand, await verdictOn(demand, asked), req, res, next)
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
    next: NextFunction,
  ): GatewayError | undefined {
    spent?.note(demand, verdict)
    if (verdict.refusedBy) return shown(res, refuse(call, demand, verdict, styleOf(call)))
    if (demand.slots.length > 0) {
      // If the store goes away meanwhile, the running calls must count here.
      if (store !== local) local.hold(demand)
      if (isShared) {
        releaseBeforeLastByte(call, store, demand, req, res, next)
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
    if (!res.headersSent) setLimitHeaders(styleOf(call), demand, verdict, res)
    return undefined
  }

  function styleOf({ protocol }: Call): HeaderStyle {
    return headers ?? (protocol.name === 'anthropic' ? 'anthropic' : 'openai')
  }
}

const OWN = 'rateLimit: a function of its options'

/** Returns the demand of a request, after functions of the options that return promises. */
async function judge(
  plan: DemandPlan,
  skipped: boolean | Promise<boolean>,
  req: Request,
  call: Call,
): Promise<Demand | 'skipped' | undefined> {
  const isSkipped = await skipped
  if (typeof isSkipped !== 'boolean')
    throw new TypeError(`rateLimit: "skip" must return true or false, not ${kindOf(isSkipped)}`)
  return isSkipped ? 'skipped' : demandLater(plan, req, call)
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
  next: NextFunction,
): void {
  call.onLastByte(() => store.release(demand) || undefined)
  const run = () => call.lastByte()
  holdLastByte(res, run, next)
  const upgrade = upgradeOf(req)
  if (upgrade) holdLastByteOf(upgrade.socket, run)
}
