import { createHash } from 'node:crypto'
import type { Request } from 'express'
import type { Call, OpenCall } from '../../core/call/index.ts'
import type { Demand, Limit, LimitKind } from '../../core/limit-store/index.ts'
import { inTime, kindOf } from '../../core/options/index.ts'
import { isPromise } from '../../core/timing/index.ts'

/** A value, or a function of the request and its call that returns one or a promise of one. */
export type OfRequest<T> = T | ((req: Request, call: Call) => T | Promise<T>)

/** A limit. Null, undefined and Infinity mean no limit. */
export type LimitValue = number | null | undefined

type Subject = string | null | undefined

/** Names the functions of the options in errors. */
export const OPTION_FUNCTION = 'rateLimit: a function of its options'

/** A subject to limit, with its limits. */
export interface LimitLevel {
  /** The name of the level in counters and in the call log, such as `ip`. */
  name: string
  /**
   * Returns the subject of a request, such as its user's id, or a promise of it. The level does not apply if it is null or
   * undefined.
   */
  by: (req: Request, call: Call) => Subject | Promise<Subject>
  /** Requests per window. Defaults to no limit. */
  requests?: OfRequest<LimitValue>
  /** Tokens per window, as the option `tokens` counts them. Defaults to no limit. */
  tokens?: OfRequest<LimitValue>
  /** Requests per minute: `requests` of a window of 60000 ms. Defaults to no limit. */
  rpm?: OfRequest<LimitValue>
  /** Tokens per minute: `tokens` of a window of 60000 ms. Defaults to no limit. */
  tpm?: OfRequest<LimitValue>
  /** Requests that may run at the same time. Defaults to no limit. */
  concurrency?: OfRequest<LimitValue>
}

/** The API key that `authenticate` found, with its own limits. */
export const keyLevel: LimitLevel = {
  name: 'key',
  by: (_req, { principal }) => principal?.keyId,
  rpm: (_req, { principal }) => principal?.keyLimits.rpm,
  tpm: (_req, { principal }) => principal?.keyLimits.tpm,
}

/** The account that `authenticate` found, with its own limits. */
export const accountLevel: LimitLevel = {
  name: 'account',
  by: (_req, { principal }) => principal?.accountId,
  rpm: (_req, { principal }) => principal?.accountLimits.rpm,
  tpm: (_req, { principal }) => principal?.accountLimits.tpm,
  concurrency: (_req, { principal }) => principal?.accountLimits.concurrency,
}

/** A level with the limits that it has, by their kinds. */
export interface PlannedLevel extends Pick<LimitLevel, 'name' | 'by'> {
  readonly limits: readonly (readonly [LimitKind, OfRequest<LimitValue>])[]
}

export function plannedLevel({ name, by, rpm, tpm, concurrency, ...level }: LimitLevel): PlannedLevel {
  const { requests = rpm, tokens = tpm } = level
  const limits = [
    ['rpm', requests],
    ['tpm', tokens],
    ['concurrency', concurrency],
  ] as const
  return { name, by, limits: limits.filter(([, limit]) => limit !== undefined) }
}

/** The settings that all demands of one `rateLimit` share. */
export interface DemandPlan {
  readonly levels: readonly PlannedLevel[]
  readonly windowMs: number
  /** Returns the tokens of a request. It is called only if some level limits them. */
  readonly tokens: (req: Request, call: Call) => number | Promise<number>
}

/**
 * Returns what a request asks of its limits; undefined if no limit applies.
 *
 * @throws TypeError if a function of the plan returns something unusable; also the error of such a function.
 */
export async function demandOf(
  { levels, windowMs, tokens }: DemandPlan,
  req: Request,
  call: OpenCall,
): Promise<Demand | undefined> {
  const charges: Limit[] = []
  const slots: Limit[] = []
  const senders: string[] = []
  let tokenCost: number | undefined
  for (const { name: level, by, limits } of levels) {
    const given = by(req, call)
    const named = isPromise(given) ? await inTime(OPTION_FUNCTION, given) : given
    if (named === null || named === undefined) continue
    const subject = shortened(named, level)
    senders.push(`${level}:${subject}`)
    for (const [kind, limit] of limits) {
      const asked = typeof limit === 'function' ? limit(req, call) : limit
      const max = maxOf(isPromise(asked) ? await inTime(OPTION_FUNCTION, asked) : asked)
      if (max === undefined) continue
      if (kind === 'tpm' && tokenCost === undefined) {
        const counted = tokens(req, call)
        tokenCost = whole(isPromise(counted) ? await inTime(OPTION_FUNCTION, counted) : counted)
      }
      const cost = kind === 'tpm' ? (tokenCost as number) : 1
      const place = kind === 'concurrency' ? slots : charges
      place.push({ kind, level, subject, max, cost, key: `${kind}:${level}:${subject}` })
    }
  }
  if (charges.length === 0 && slots.length === 0) return undefined
  return { id: call.id, sender: senders.join(' '), windowMs, charges, slots }
}

/** Returns a limit that the demand can never pass, however long it waits. */
export function impossibleLimit({ charges, slots }: Demand): Limit | undefined {
  const isImpossible = ({ cost, max }: Limit): boolean => cost > max
  return charges.find(isImpossible) ?? slots.find(isImpossible)
}

function maxOf(max: LimitValue): number | undefined {
  if (max === null || max === undefined || max === Number.POSITIVE_INFINITY) return undefined
  // Digits in a string, as databases return them, would be compared as a text.
  if (typeof max === 'number' && max >= 0) return max
  throw new TypeError(`rateLimit: a limit must be a number from 0 up, not ${kindOf(max)}`)
}

function whole(tokens: number): number {
  if (typeof tokens !== 'number' || !(tokens >= 0 && tokens <= Number.MAX_SAFE_INTEGER))
    throw new TypeError(`rateLimit: "tokens" must return a number from 0 up, not ${kindOf(tokens)}`)
  return Math.ceil(tokens)
}

/** A longer subject is named by its beginning and its hash, so that no caller decides how much memory a counter takes. */
const MAX_LENGTH = 128

function shortened(subject: string, level: string): string {
  if (typeof subject !== 'string')
    throw new TypeError(
      `rateLimit: "by" of the level "${level}" must return a string, null or undefined, not ${kindOf(subject)}`,
    )
  if (subject.length <= MAX_LENGTH) return subject
  return `${subject.slice(0, MAX_LENGTH / 2)}…${createHash('sha256').update(subject).digest('base64url')}`
}
