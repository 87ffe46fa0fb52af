import type { Request } from 'express'
import type { Call } from '../../core/call/index.ts'
import type { Demand, Limit } from './limit-store.ts'
import type { Subject, SubjectsOfLevel } from './subjects.ts'

/** A value, or a function of the request and its call that returns one. */
export type OfRequest<T> = T | ((req: Request, call: Call) => T)

/** A limit. Null, undefined and Infinity mean no limit. */
export type LimitValue = number | null | undefined

/** A subject to limit, with its limits. */
export interface LimitLevel {
  /** The name of the level in counters and in the call log, such as `ip`. */
  name: string
  /** Returns the subject of a request, such as its user's id. The level does not apply if it is null or undefined. */
  by: (req: Request, call: Call) => string | null | undefined
  /** Requests per window. Defaults to no limit. */
  rpm?: OfRequest<LimitValue>
  /** Tokens per window, as `tokens` counts them. Defaults to no limit. */
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

/** The settings that all demands of one middleware share. */
export interface DemandPlan {
  readonly levels: readonly { readonly level: LimitLevel; readonly subjects: SubjectsOfLevel }[]
  readonly tokens: (req: Request, call: Call) => number
  readonly windowMs: number
}

const NO_SLOTS: readonly Limit[] = []

/** Returns the demand of a request; undefined if no limit applies. */
export function demandOf(plan: DemandPlan, req: Request, call: Call): Demand | undefined {
  const { levels, windowMs } = plan
  // Allocated at its largest length: a growing array takes far more memory.
  const charges = new Array<Limit>(2 * levels.length)
  let charged = 0
  let slots = NO_SLOTS
  let first: Subject | undefined
  let others = ''
  let tokens: number | undefined
  for (let i = 0; i < levels.length; i++) {
    const { level, subjects } = levels[i] as DemandPlan['levels'][number]
    const name = level.by(req, call)
    if (name === null || name === undefined) continue
    const subject = subjects.of(name)
    if (!first) first = subject
    else others = others === '' ? subject.sender : `${others} ${subject.sender}`
    const rpm = maxOf(level.rpm, req, call)
    if (rpm !== undefined) charges[charged++] = subject.limit('rpm', rpm, 1)
    const tpm = maxOf(level.tpm, req, call)
    if (tpm !== undefined) {
      tokens ??= whole(plan.tokens(req, call))
      charges[charged++] = subject.limit('tpm', tpm, tokens)
    }
    const concurrency = maxOf(level.concurrency, req, call)
    if (concurrency !== undefined) {
      const slot = subject.limit('concurrency', concurrency, 1)
      slots = slots === NO_SLOTS ? [slot] : [...slots, slot]
    }
  }
  if (!first || charged + slots.length === 0) return undefined
  charges.length = charged
  return { id: call.id, sender: first.senderWith(others), windowMs, charges, slots }
}

/** Returns a limit that the demand can never pass, however long it waits. */
export function impossibleLimit({ charges, slots }: Demand): Limit | undefined {
  for (let i = 0; i < charges.length; i++) {
    const limit = charges[i] as Limit
    if (limit.cost > limit.max) return limit
  }
  for (let i = 0; i < slots.length; i++) {
    const limit = slots[i] as Limit
    if (limit.cost > limit.max) return limit
  }
  return undefined
}

function maxOf(limit: OfRequest<LimitValue>, req: Request, call: Call): number | undefined {
  const max = typeof limit === 'function' ? limit(req, call) : limit
  if (max === null || max === undefined || max === Number.POSITIVE_INFINITY) return undefined
  // Digits in a string, as databases return them, would pass here and fail a whole batch in a store.
  if (!(typeof max === 'number' && max >= 0))
    throw new TypeError(`rateLimit: a limit must be a number from 0 up, not ${typeof max} ${max}`)
  return max
}

function whole(tokens: number): number {
  if (!(tokens >= 0 && tokens <= Number.MAX_SAFE_INTEGER))
    throw new TypeError(`rateLimit: "tokens" must return a number from 0 up, not ${tokens}`)
  return Math.ceil(tokens)
}
