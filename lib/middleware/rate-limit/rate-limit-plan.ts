import type { Request } from 'express'
import type { Call, Logger } from '../../core/call/index.ts'
import {
  aFunction,
  aLogger,
  anObjectWith,
  aString,
  aWholeNumber,
  checkOptions,
  kindOf,
  type OptionRule,
  type OptionRules,
  oneOf,
  required,
} from '../../core/options/index.ts'
import { type DemandPlan, planned } from './demand.ts'
import { ipSubject } from './ip-subject.ts'
import type { HeaderStyle } from './limit-headers.ts'
import { accountLevel, keyLevel, type LimitLevel } from './limit-levels.ts'
import { type LimitStore, MAX_WAIT_MS, MAX_WINDOW_MS } from './limit-store.ts'

/** Options of {@link rateLimit}. */
export interface RateLimitOptions {
  /**
   * The subjects to limit, with their limits; each limit is a value or a function of the request. A request must pass
   * all of them. The subject of the first level that applies is the sender, whose wait grows if it retries before
   * Retry-After is over. Defaults to the key and the account that `authenticate` found, with their own limits.
   */
  levels?: readonly LimitLevel[]
  /** The tokens of a request. Defaults to the estimated input tokens that `readRequest` found, else none. */
  tokens?: (req: Request, call: Call) => number | Promise<number>
  /** Returns whether a request passes without being counted. Defaults to none. */
  skip?: (req: Request, call: Call) => boolean | Promise<boolean>
  /** Keeps counts and slots. Defaults to a `MemoryLimitStore`. */
  store?: LimitStore
  /**
   * What happens while the store is away: `local` counts in the memory of this process until it is back, `refuse` answers
   * `internal_error`. Defaults to `local`.
   */
  onStoreError?: 'local' | 'refuse'
  /**
   * The length of a window in milliseconds, at most 31 days. Only 60000 makes `rpm` requests per minute. Defaults to
   * 60000.
   */
  windowMs?: number
  /**
   * The form of the limit headers: `openai`, `anthropic`, `ietf` (`RateLimit` and `RateLimit-Policy`) or `none`. Defaults
   * to that of the caller's protocol, which is `openai` outside a model gateway. A refusal has `Retry-After` in any case.
   */
  headers?: HeaderStyle
  /** Is told once if no level applies to any request. Defaults to the call's logger. */
  logger?: Logger
}

const ofRequest: OptionRule = {
  be: 'a number from 0 up, null for no limit, or a function of the request that returns one',
  accepts: (value) =>
    value === null || typeof value === 'function' || (typeof value === 'number' && value >= 0),
}

const RULES: OptionRules<RateLimitOptions> = {
  levels: {
    be: "an array of levels that is not empty, such as [{ name: 'ip', by: ipSubject(), rpm: 60 }]",
    accepts: (value) => Array.isArray(value) && value.length > 0,
  },
  tokens: aFunction('a function of the request that returns its tokens'),
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
  rpm: ofRequest,
  tpm: ofRequest,
  concurrency: ofRequest,
}

/** @throws TypeError when an option is unusable. */
export function planOf(options: RateLimitOptions): DemandPlan {
  checkOptions('rateLimit', options, RULES)
  const { levels = [keyLevel, accountLevel], windowMs = MAX_WAIT_MS, tokens } = options
  for (const [i, level] of levels.entries()) checkLevel(level, `rateLimit: "levels[${i}]"`)
  if (new Set(levels.map(({ name }) => name)).size < levels.length)
    throw new TypeError(
      'rateLimit: two of "levels" have the same "name", and would count as one; give each its own',
    )
  return { levels: levels.map(planned), tokens, windowMs }
}

function checkLevel(level: unknown, owner: string): void {
  if (typeof level !== 'object' || level === null)
    throw new TypeError(
      `${owner} must be a level, such as { name: 'ip', by: ipSubject(), rpm: 60 }, not ${kindOf(level)}`,
    )
  checkOptions(owner, level as LimitLevel, LEVEL_RULES)
  const { by, rpm, tpm, concurrency } = level as LimitLevel
  if (by === (ipSubject as unknown))
    throw new TypeError(`${owner}: "by" is ipSubject itself; call it: by: ipSubject()`)
  if (rpm === undefined && tpm === undefined && concurrency === undefined)
    throw new TypeError(`${owner} limits nothing; give it "rpm", "tpm" or "concurrency"`)
}
