import type { ServerResponse } from 'node:http'
import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { type Call, callOf, holdEnd, type Logger, type OpenCall, quietLogger } from '../../core/call/index.ts'
import {
  aFunction,
  aLogger,
  anObjectWith,
  aWholeNumber,
  checkedFunction,
  checkOptions,
  MAX_TIMER_MS,
  type OptionRules,
  required,
} from '../../core/options/index.ts'
import { RecordedAnswer, sendRecorded } from '../../core/repetition/index.ts'
import { CHOOSING_HEADERS, cacheControlOf, cacheKeyOf, directivesIn, isRepeatable } from './cacheable.ts'
import { CachedAnswers, type CacheStore, type FoundAnswer } from './cached-answers.ts'
import { memoryStore } from './memory-store.ts'

/** Options of {@link cache}. */
export interface CacheOptions {
  /** How long an answer is given again, in milliseconds, or a function that returns it; 0 or undefined: not at all. */
  ttl: number | ((req: Request, call: Call) => number | undefined)
  /**
   * A `Keyv`, or one of its storage adapters, such as `new KeyvRedis(url)`. Defaults to 64 MiB in the memory of this process. Once
   * it is full, the owner with the most drops the answers that were not asked for the longest.
   */
  store?: CacheStore
  /**
   * Returns whose answer it is, such as the id of a user; no other user gets it. Null or undefined: it is not cached. Defaults to
   * the account that `authenticate` found.
   */
  by?: (req: Request, call: Call) => string | null | undefined
  /** A middleware that a request passes before it is answered from the cache, such as a `rateLimit`. Defaults to none. */
  onHit?: RequestHandler
  /** The largest answer to keep, in bytes. Defaults to 1 MiB. */
  answerLimitBytes?: number
  /** Runs when an outage of the store begins and ends, for metrics. Defaults to nothing. */
  onStoreChange?: (away: boolean) => void
  /** Receives outages. Defaults to the console. */
  logger?: Logger
}

const A_TTL = `a number of milliseconds from 0 up to ${MAX_TIMER_MS} (24 days)`

function isTtl(value: unknown): boolean {
  return value === undefined || (typeof value === 'number' && value >= 0 && value <= MAX_TIMER_MS)
}

const RULES: OptionRules<CacheOptions> = {
  ttl: required({
    be: `${A_TTL}, or a function of the request that returns one`,
    accepts: (value) => typeof value === 'function' || isTtl(value),
  }),
  store: anObjectWith('a Keyv or one of its adapters, such as new KeyvRedis(url)', 'get', 'set'),
  by: aFunction('a function of the request that returns whose answer it is'),
  onHit: aFunction('a middleware, such as rateLimit({ limit: 60 })'),
  answerLimitBytes: aWholeNumber('a whole number of bytes, at least 1', 1),
  onStoreChange: aFunction('a function of whether the store is away'),
  logger: aLogger,
}

const AN_OWNER = {
  be: 'a string, null or undefined',
  accepts: (value: unknown) => value === null || value === undefined || typeof value === 'string',
}

/** The middleware that {@link cache} returns. */
export interface CacheHandler extends RequestHandler {
  /** Waits until answers that have ended are kept. Call it before the store is closed. Never rejects. */
  close(): Promise<void>
}

/** A request that can be answered from the cache. */
interface CacheRequest {
  readonly key: string
  readonly ttl: number
  /** Whether it must be answered anew. */
  readonly noCache: boolean
}

/**
 * Answers a repeated request as it was answered before. Requires `readRequest`, or a parser such as `express.json()`, before it.
 * Writes `call.cache` and the header `X-Gateway-Cache`, which is `hit` or `miss`.
 *
 * It keeps whole answers with status 200. While the store is away, requests run as if they were new.
 *
 * @throws TypeError at construction when an option is unusable.
 * @example
 * app.post('/ask', express.json(), cache({ ttl: 60_000, by: (req) => req.user.id }), (req, res) => res.json(answer(req.body)))
 * @example
 * const store = new KeyvRedis('redis://localhost:6379')
 * app.post('/v1/chat/completions', authenticate({ keys }), readRequest({ catalog }), cache({ ttl: 3_600_000, store }), route({ catalog }))
 */
export function cache(options: CacheOptions): CacheHandler {
  checkOptions('cache', options, RULES)
  const { store = memoryStore(), answerLimitBytes = 1024 * 1024, onHit, onStoreChange } = options
  const answers = new CachedAnswers(store, { logger: quietLogger(options.logger), onStoreChange })
  const by = options.by && checkedFunction('cache: "by"', AN_OWNER, options.by)
  const { ttl } = options
  const ttlOf =
    typeof ttl === 'function'
      ? checkedFunction('cache: "ttl"', { be: A_TTL, accepts: isTtl }, ttl)
      : () => ttl

  return Object.assign(cache, { close: () => answers.kept() })

  function cache(req: Request, res: Response, next: NextFunction): void {
    const call = callOf(req)
    try {
      const asked = call.cache ? undefined : askedOf(req, call)
      if (asked) serve(asked, call, req, res, next).catch(next)
      else next()
    } catch (error) {
      next(error)
    }
  }

  /** Returns what to look for; undefined if the request is not one for the cache. */
  function askedOf(req: Request, call: OpenCall): CacheRequest | undefined {
    const ttl = ttlOf(req, call) ?? 0
    if (ttl === 0 || !isRepeatable(req, call)) return undefined
    const { noStore, noCache } = cacheControlOf(req)
    if (noStore) return undefined
    const owner = ownerOf(req, call)
    const key = owner === undefined ? undefined : cacheKeyOf(req, call, owner)
    return key === undefined ? undefined : { key, ttl, noCache }
  }

  function ownerOf(req: Request, call: OpenCall): string | undefined {
    if (by) return by(req, call) ?? undefined
    if (call.principal) return call.principal.accountId
    throw new TypeError(
      'cache: it is not known whose answers these are; mount authenticate before it, or give "by", such as (req) => req.user.id',
    )
  }

  async function serve(
    asked: CacheRequest,
    call: OpenCall,
    req: Request,
    res: Response,
    next: NextFunction,
  ): Promise<void> {
    const found = asked.noCache ? undefined : await answers.find(asked.key, asked.ttl)
    // An earlier middleware, such as a timeout, has answered meanwhile.
    if (res.writableEnded) return
    if (res.headersSent) {
      next()
      return
    }
    if (call.left) {
      next(call.refuse('client_closed_request'))
      return
    }
    if (!found) {
      call.cache = { outcome: 'miss', from: null }
      res.setHeader('x-gateway-cache', 'miss')
      const { key, ttl } = asked
      holdEnd(res, new KeptCall(call, res, { answers, key, ttl, answerLimitBytes }), next)
      next()
      return
    }
    // Also for the entry of a hit that a limit refuses.
    call.cache = { outcome: 'hit', from: found.id }
    if (onHit) onHit(req, res, (error?: unknown) => (error ? next(error) : answerAgain(found, call, res)))
    else answerAgain(found, call, res)
  }
}

function answerAgain({ answer }: FoundAnswer, call: OpenCall, res: Response): void {
  if (res.writableEnded) return
  // As in the answer of a line, only texts are checked.
  if (call.request && call.request.model.kind !== 'chat') call.filtersAnswer = true
  sendRecorded(answer, res, { 'x-gateway-cache': 'hit' })
}

/** The headers that limits set for one request. */
const OF_ONE_REQUEST = /ratelimit|^retry-after/

/** The headers that answers may vary by: encodings are chosen behind this middleware. */
const VARIES_BY: ReadonlySet<string> = new Set(['', 'accept-encoding', ...CHOOSING_HEADERS])

interface KeptCallOptions {
  readonly answers: CachedAnswers
  readonly key: string
  readonly ttl: number
  /** The largest answer to keep, in bytes. */
  readonly answerLimitBytes: number
}

/** A call whose answer is kept, once it is whole. The end of the answer does not wait for that. */
class KeptCall {
  readonly #call: OpenCall
  readonly #res: ServerResponse
  readonly #options: KeptCallOptions
  /** The model that was asked for. */
  readonly #model: string | undefined
  /** Earlier middlewares, such as that of cors, vary the answer to a repetition by these again. */
  readonly #variesAnyway: readonly string[]
  #recorded: RecordedAnswer | undefined

  constructor(call: OpenCall, res: ServerResponse, options: KeptCallOptions) {
    this.#call = call
    this.#res = res
    this.#options = options
    this.#model = call.request?.model.id
    this.#variesAnyway = directivesIn(String(res.getHeader('vary') ?? ''))
    this.#recorded = new RecordedAnswer(res, options.answerLimitBytes, OF_ONE_REQUEST)
  }

  onSend(chunk: unknown, encoding: unknown): void {
    this.#recorded?.add(chunk, encoding)
  }

  beforeEnd(): undefined {
    const { answers, key, ttl } = this.#options
    const recorded = this.#recorded
    // The call may stay in memory for longer than its answer has to.
    this.#recorded = undefined
    const answer = recorded && this.#isWhole && this.#mayBeKept(recorded) ? recorded.encode() : undefined
    if (answer !== undefined) answers.keep(key, { id: this.#call.id, at: Date.now(), answer }, ttl)
    return undefined
  }

  /** Whether the answer is whole, and of the model that was asked for. */
  get #isWhole(): boolean {
    const { outcome, left, request, routing } = this.#call
    // A call that fails behind the first bytes has its outcome before the end of its answer.
    if (this.#res.statusCode !== 200 || outcome !== null || left) return false
    if (request?.model.id !== this.#model) return false
    const decided = routing?.attempts.at(-1)
    return !decided || (decided.outcome === 'completed' && decided.finishReason === undefined)
  }

  /** Whether the headers of the answer let it be kept. */
  #mayBeKept(answer: RecordedAnswer): boolean {
    const directives = directivesIn(answer.header('cache-control'))
    if (directives.includes('no-store') || directives.includes('private')) return false
    // Another caller may not read this encoding.
    if (answer.header('content-encoding') !== '') return false
    return directivesIn(answer.header('vary')).every(
      (name) => VARIES_BY.has(name) || this.#variesAnyway.includes(name),
    )
  }
}
