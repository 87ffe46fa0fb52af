import type { NextFunction, Request, RequestHandler, Response } from 'express'
import {
  type Call,
  callOf,
  type EarlyRefuser,
  holdEnd,
  NO_BILLING,
  type OpenCall,
} from '../../core/call/index.ts'
import { type Catalog, isPattern, type Price, parseAmount, priceOn } from '../../core/catalog/index.ts'
import type { GatewayError } from '../../core/errors/index.ts'
import type { Operation } from '../../core/operations/index.ts'
import {
  aCatalog,
  aFunction,
  anObjectWith,
  type CatalogSource,
  catalogFrom,
  checkedFunction,
  checkOptions,
  type OptionRules,
  someMilliseconds,
} from '../../core/options/index.ts'
import type { Budgets } from '../../ledger/budgets/budgets.ts'
import { MemoryLedger } from '../../ledger/memory/memory-ledger.ts'
import { LeasePool, type ReserveClaim, type ReserveRefusal } from '../../ledger/pool/lease-pool.ts'
import { Reservation } from '../../ledger/pool/reservation.ts'
import { BilledCall } from './billed-call.ts'
import { refuseUnpaid } from './billed-part.ts'
import { isFreeOn, WorstCase } from './cost.ts'

/** Options of {@link billingGuard}. */
export interface BillingGuardOptions {
  /**
   * The pool of this process. Pass one to close it at shutdown. Defaults to a pool on a ledger in memory, where every
   * account is postpaid: spend is recorded, and no call is refused.
   */
  pool?: LeasePool
  /**
   * The models and lines whose prices bound the cost of a call; a function if they can change while the app runs. It
   * should return the same catalogue for the same call every time. Defaults to none: `reserve` is required then.
   */
  catalog?: CatalogSource
  /**
   * Returns the largest possible cost of a request, as a decimal string or in nano-units; it is held while the
   * request runs. Defaults to an estimate from `call.request` and the catalogue's prices. Either this or `catalog` is
   * required.
   */
  reserve?: (req: Request, call: Call) => bigint | string
  /** Returns the account to charge. Defaults to the account that `authenticate` found. */
  account?: (req: Request, call: Call) => string | undefined
  /** Returns the key whose quota also counts; null for none. Defaults to the key that `authenticate` found. */
  key?: (req: Request, call: Call) => string | null
  /** The budgets that calls count against, such as a `Budgets`. Defaults to none. */
  budgets?: Pick<Budgets, 'matching' | 'count' | 'refusal'>
  /**
   * How long a reservation stays for a handler of your own that has not answered yet although its caller has left, in
   * milliseconds. Defaults to 5 minutes.
   */
  handlerMs?: number
}

const RULES: OptionRules<BillingGuardOptions> = {
  pool: {
    be: 'a LeasePool, such as new LeasePool({ ledger })',
    accepts: (value) => value instanceof LeasePool,
  },
  catalog: aCatalog,
  reserve: aFunction('a function of the request that returns the most it can cost'),
  account: aFunction('a function of the request that returns the account that pays'),
  key: aFunction('a function of the request that returns the key whose quota counts'),
  budgets: anObjectWith('budgets, such as new Budgets({ store })', 'matching', 'refusal'),
  handlerMs: someMilliseconds,
}

/**
 * Reserves the largest possible cost of a request, and charges the actual cost. Refuses with `key_quota_exhausted`,
 * `insufficient_balance`, `quota_lease_exhausted` or `billing_unavailable`. The end of an answer waits until its
 * charge is durable, so that every complete answer is charged exactly once.
 *
 * A call is charged for what `route` measured, or for what your own handler reports with `callOf(req).charge(…)`.
 *
 * @throws TypeError at construction when an option is unusable.
 * @example
 * const pool = new LeasePool({ ledger: new SqlLedger(db) })
 * app.post('/v1/chat/completions', readRequest({ catalog }), billingGuard({ pool, catalog }), route({ catalog }))
 * @example
 * app.post('/maps', billingGuard({ pool, account: (req) => req.user.id, reserve: () => '0.02' }), (req, res) => {
 *   callOf(req).charge('0.015')
 *   res.json(drawMap(req.body))
 * })
 */
export function billingGuard(options: BillingGuardOptions = {}): RequestHandler & EarlyRefuser {
  const { pool, reserve, account, key, handlerMs } = validate(options)
  const { catalog, budgets } = options
  const billed = { handlerMs, budgets }
  const catalogOf = catalog && !options.reserve ? catalogFrom(catalog) : undefined

  const guard = function billingGuard(req: Request, res: Response, next: NextFunction): void {
    const call = callOf(req)
    const { principal, billing } = call
    if (billing instanceof BilledCall) {
      next(billing.deps === billed ? undefined : new TypeError(TWO_GUARDS))
      return
    }
    const payer = account ? account(req, call) : principal?.accountId
    if (payer === undefined) {
      next(
        new TypeError(
          'billingGuard: there is no account to charge; mount authenticate before it, or give "account"',
        ),
      )
      return
    }
    const amount = reserve(req, call)
    if (amount === null) {
      next()
      return
    }
    const keyId = key ? key(req, call) : (principal?.keyId ?? null)
    const settles = amount > 0n || Boolean(call.idempotency?.claim) || !isFree(call)
    const claim = { account: payer, key: keyId, amount, ...(!settles && { settles }) }
    const held = pool.reserve(budgets?.count ? { ...claim, budgets: budgetsOf(call, claim) } : claim)
    if (held instanceof Promise) beginLater(call, held, res, next)
    else begin(call, held, res, next)
  }

  return Object.assign(guard, { refuseEarly })

  /** Whether a call is never charged. An app with its own `reserve` may charge what was not reserved. */
  function isFree(call: OpenCall): boolean {
    return catalogOf !== undefined && call.request !== null && isFreeOn(catalogOf(call), call.request)
  }

  /**
   * If the wallet seemed empty at the last report, asks the ledger again. Without any report yet, asks only if the caller
   * waits for "100 Continue" anyway.
   */
  async function refuseEarly(
    req: Request,
    call: OpenCall,
    operation: Operation,
  ): Promise<GatewayError | undefined> {
    if (!catalogOf || mayBeFree(catalogOf(call), operation)) return undefined
    const payer = account ? account(req, call) : call.principal?.accountId
    const keyId = key ? key(req, call) : (call.principal?.keyId ?? null)
    if (payer === undefined) return undefined
    const paidBy = { account: payer, key: keyId }
    // The body may name a user and add tags: the call counts against these in any case.
    const claim = { ...paidBy, amount: 1n, budgets: budgetsOf(call, paidBy) }
    const isEmpty = pool.seemsEmpty(claim) ?? req.headers.expect !== undefined
    if (!isEmpty) return undefined
    const held = await pool.reserve(claim)
    if (!(held instanceof Reservation)) return refuse(call, held)
    held.release()
    return undefined
  }

  function budgetsOf({ user, tags }: OpenCall, payer: Pick<ReserveClaim, 'account' | 'key'>) {
    return budgets?.matching({ ...payer, user, tags }, Date.now()) ?? []
  }

  function refuse(call: OpenCall, refusal: ReserveRefusal): GatewayError {
    call.billing = { ...NO_BILLING }
    return refuseUnpaid(call, call.billing, refusal, billed)
  }

  function beginLater(call: OpenCall, held: Promise<Answer>, res: Response, next: NextFunction): void {
    void held.then((answer) => begin(call, answer, res, next)).catch(next)
  }

  function begin(call: OpenCall, held: Answer, res: Response, next: NextFunction): void {
    if (!(held instanceof Reservation)) {
      next(refuse(call, held))
      return
    }
    if (call.left) {
      held.release()
      next(call.refuse('client_closed_request'))
      return
    }
    holdEnd(res, new BilledCall(call, res, held, billed), next)
    next()
  }
}

const TWO_GUARDS =
  'billingGuard: another billingGuard holds money for this call, and a call is charged once; mount one of them on each path'

const AN_AMOUNT = {
  be: 'a decimal string, or a bigint of nano-units',
  accepts: (value: unknown) => typeof value === 'string' || typeof value === 'bigint',
}
const AN_ACCOUNT = {
  be: 'the id of an account, or undefined',
  accepts: (value: unknown) => value === undefined || (typeof value === 'string' && value !== ''),
}
const A_KEY = {
  be: 'the id of a key, or null',
  accepts: (value: unknown) => value === null || typeof value === 'string',
}

/** Whether some call of an endpoint costs nothing, so that it runs without any money. */
function mayBeFree(catalog: Catalog, { kind, priceUnit }: Operation): boolean {
  if (priceUnit === 'none') return true
  for (const model of catalog.models.values()) {
    if (model.kind !== kind) continue
    if (model.cache?.hitPrice === 0n) return true
    const prices = catalog.linesOf(model.id).map((line) => priceOn(model, line))
    if (prices.length === 0) prices.push(model.price)
    const isFree = (price: Price): boolean => leastOf(price, priceUnit) === 0n
    // Each name that a pattern matches may have some of the lines only.
    if (isPattern(model.id) ? prices.some(isFree) : prices.every(isFree)) return true
  }
  return false
}

/** Sums the prices of what each call has: its input, and seconds if it makes a video. What else it has is unknown. */
function leastOf({ inputPerMillion, perRequest, perSecond }: Price, unit: Operation['priceUnit']): bigint {
  return inputPerMillion + perRequest + (unit === 'seconds' ? perSecond : 0n)
}

type Answer = Reservation | ReserveRefusal

function validate(options: BillingGuardOptions) {
  checkOptions('billingGuard', options, RULES)
  const { pool = ownPool(), catalog, account, key, handlerMs = 300_000 } = options
  if (!options.reserve && !catalog) {
    throw new TypeError(
      'billingGuard: give "catalog", or "reserve", a function that answers the most a request can cost',
    )
  }
  return {
    pool,
    account: account && checkedFunction('billingGuard: "account"', AN_ACCOUNT, account),
    key: key && checkedFunction('billingGuard: "key"', A_KEY, key),
    handlerMs,
    reserve: reserveOf(options),
  }
}

/** Returns a function for the largest possible cost of a call; null for endpoints that are never charged. */
function reserveOf({
  reserve,
  catalog,
}: BillingGuardOptions): (req: Request, call: OpenCall) => bigint | null {
  if (reserve) {
    const ask = checkedFunction('billingGuard: "reserve"', AN_AMOUNT, reserve)
    return (req, call) => {
      const most = ask(req, call)
      return typeof most === 'string' ? parseAmount(most) : most
    }
  }
  const worstCase = new WorstCase()
  const catalogOf = catalogFrom(catalog as CatalogSource)
  return (_req, call) => {
    if (!call.request)
      throw new TypeError('billingGuard: there is no call.request; mount readRequest before it')
    if (call.request.operation.priceUnit === 'none') return null
    return worstCase.of(catalogOf(call), call.request, call.principal)
  }
}

function ownPool(): LeasePool {
  return new LeasePool({ ledger: new MemoryLedger({ unknownAccounts: 'postpaid' }) })
}
