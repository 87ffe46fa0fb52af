import type { Request } from 'express'
import { type Call, type Logger, type OpenCall, quietLogger } from '../../core/call/index.ts'
import type { GatewayError } from '../../core/errors/index.ts'
import type { AnswerStore, IdempotencyStore } from '../../core/idempotency/index.ts'
import {
  aFunction,
  aKeepTime,
  aLogger,
  aNumber,
  anObjectWith,
  aWholeNumber,
  checkedFunction,
  checkOptions,
  MAX_TIMER_MS,
  type OptionRules,
  oneOf,
  someMilliseconds,
} from '../../core/options/index.ts'
import { StoreGuard } from '../../core/store-guard/index.ts'
import { AnswerQueue } from './answer-queue.ts'
import { ClaimKeeper } from './claim-keeper.ts'
import { MemoryIdempotencyStore } from './memory-idempotency-store.ts'

/** Options of {@link idempotency}. Times are milliseconds. */
export interface IdempotencyOptions {
  /** Keeps the records of keys. Defaults to a {@link MemoryIdempotencyStore}. */
  store?: IdempotencyStore
  /**
   * Returns whose key it is, such as the id of a user: the same key of two owners is two keys. Defaults to the account that
   * `authenticate` found, and without one to a single owner for all callers.
   */
  by?: (req: Request, call: Call) => string
  /** How long a finished request keeps its key. Defaults to 24 hours. */
  keepRecordsMs?: number
  /**
   * How long a key stays taken after its process has died, at least 400. The lease is renewed every quarter of that time, and
   * a call goes on only while its last renewal is younger than three quarters of it. Defaults to 60000.
   */
  claimLeaseMs?: number
  /**
   * The largest answer to keep, in bytes. For the call log a longer one is cut and marked so; defaults to 8 MiB. With `replay`
   * a repetition of a longer one is refused; defaults to 1 MiB.
   */
  answerLimitBytes?: number
  /**
   * Keeps answers of more than 4 KiB, each by itself and before the charge whose entry points at it, so that a large one
   * holds up no other call. The store of the call log must read them: `SqlAnswerStore` goes with `SqlCallStore`. Defaults
   * to none: each answer is in its entry.
   */
  answers?: AnswerStore
  /**
   * Answers a repetition with the status, the headers and the body of the first, and `Idempotent-Replayed: true`, instead of
   * refusing it. For handlers of your own. Defaults to false.
   */
  replay?: boolean
  /**
   * With `replay`, returns whether an answer of this status is kept, so that a repetition gets it and does not run. Defaults to
   * all but 409, 429, 499 and 503. Without `replay`, answers below 400 use the key up.
   */
  keepWhen?: (status: number) => boolean
  /** How long your own handler keeps the key if its caller leaves before it has answered. Defaults to 5 minutes. */
  handlerMs?: number
  /**
   * Where the record of a call is completed: by this middleware in its `store`, or by a `ledger` in the transaction
   * of its charge, which then sets `call.idempotency.claim.state`. Defaults to `store`.
   */
  settledBy?: 'store' | 'ledger'
  /**
   * How long the store may take to answer before it counts as away. Defaults to 250, or five times the least that it has lately
   * taken, up to 1500.
   */
  storeTimeoutMs?: number
  /**
   * Returns the refusal of a repetition while the key is taken, from the request id of the first request. It is for work
   * that goes on after its request was answered with an error, such as a video that may have been begun: the repetition
   * then gets the same answer. Undefined, also for a failure: `idempotency_key_in_use`. Defaults to that.
   */
  unresolved?: (requestId: string) => Promise<GatewayError | undefined>
  /** Runs when an outage of the store begins and ends, for metrics. Defaults to nothing. */
  onStoreChange?: (away: boolean) => void
  /** Receives outages and lost claims. Defaults to the console. */
  logger?: Logger
}

const RULES: OptionRules<IdempotencyOptions> = {
  store: anObjectWith('an IdempotencyStore, such as new MemoryIdempotencyStore()', 'claim'),
  by: aFunction('a function of the request that returns whose key it is'),
  keepRecordsMs: aKeepTime,
  claimLeaseMs: aWholeNumber(`from 400 to ${MAX_TIMER_MS} milliseconds (24 days)`, 400, MAX_TIMER_MS),
  answerLimitBytes: aNumber('a number of bytes from 0 up', 0),
  answers: anObjectWith('an AnswerStore, such as new SqlAnswerStore(db)', 'write', 'drop'),
  replay: oneOf(true, false),
  keepWhen: aFunction('a function of a status that returns whether its answer uses the key up'),
  handlerMs: someMilliseconds,
  settledBy: oneOf('store', 'ledger'),
  storeTimeoutMs: someMilliseconds,
  unresolved: aFunction('a function of a request id that returns a promise'),
  onStoreChange: aFunction('a function of whether the store is away'),
  logger: aLogger,
}

const FAR_TIMEOUT_MS = 1500

const A_SCOPE = { be: 'a string', accepts: (value: unknown) => typeof value === 'string' }

/** @throws TypeError when an option is unusable. */
export function validate(options: IdempotencyOptions) {
  checkOptions('idempotency', options, RULES)
  const { store = new MemoryIdempotencyStore(), settledBy = 'store' } = options
  const logger = quietLogger(options.logger)
  const { claimLeaseMs = 60_000, keepRecordsMs = 86_400_000, handlerMs = 300_000, storeTimeoutMs } = options
  const { replay = false, onStoreChange } = options
  const { answerLimitBytes = replay ? 1024 * 1024 : 8 * 1024 * 1024 } = options
  if (replay && settledBy === 'ledger')
    throw new TypeError('idempotency: "replay" needs "settledBy" to be "store": a ledger keeps no answers')
  if (options.keepWhen && !replay)
    throw new TypeError(
      'idempotency: "keepWhen" needs "replay" to be true: without it no answer is given again',
    )
  const guard = new StoreGuard({
    name: 'idempotency',
    effect: 'calls with an Idempotency-Key are refused with internal_error',
    logger,
    ...(storeTimeoutMs === undefined ? { farTimeoutMs: FAR_TIMEOUT_MS } : { timeoutMs: storeTimeoutMs }),
    rejectsAlone: true,
    onStoreChange,
  })
  return {
    keeper: new ClaimKeeper({ store, guard, logger, claimLeaseMs, keepRecordsMs }),
    scope: options.by ? checkedFunction('idempotency: "by"', A_SCOPE, options.by) : accountOf,
    completesHere: settledBy === 'store',
    answerLimitBytes,
    answers: options.answers && new AnswerQueue(options.answers, logger),
    handlerMs,
    unresolved: options.unresolved,
    replay,
    keepWhen: options.keepWhen ?? isOutcome,
    logger,
  }
}

/** Returns the account as the scope. Without accounts all share one: keys are random, and addresses change. */
function accountOf(_req: Request, call: OpenCall): string {
  return call.principal?.accountId ?? ''
}

/** Statuses that say that nothing has come of a request yet. */
const NO_OUTCOME: ReadonlySet<number> = new Set([409, 429, 499, 503])

function isOutcome(status: number): boolean {
  return !NO_OUTCOME.has(status)
}
