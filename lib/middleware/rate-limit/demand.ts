import type { Request } from 'express'
import type { Call } from '../../core/call/index.ts'
import type { Demand, Limit } from './limit-store.ts'
import type { SubjectsOfLevel } from './subjects.ts'

/** A value, or a function of the request and its call that gives one. */
export type OfRequest<T> = T | ((req: Request, call: Call) => T)

/** A limit: null, undefined and Infinity are no limit. */
export type LimitValue = number | null | undefined

/** Whom to limit, and how far. */
export interface LimitLevel {
  /** Names the level in counters and in the call log, such as `ip`. */
  name: string
  /** The subject of a request, such as its user's id; the level does not apply where it is null or undefined. */
  by: (req: Request, call: Call) => string | null | undefined
  /** Requests per window. Defaults to no limit. */
  rpm?: OfRequest<LimitValue>
  /** Tokens per window, as `tokens` counts them. Defaults to no limit. */
  tpm?: OfRequest<LimitValue>
  /** Requests that may run at a time. Defaults to no limit. */
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

/** What the demands of one middleware have in common. */
export interface DemandPlan {
  readonly levels: readonly { readonly level: LimitLevel; readonly subjects: SubjectsOfLevel }[]
  readonly tokens: (req: Request, call: Call) => number
  readonly windowMs: number
}

/** What a request asks of its limits; undefined where none applies. */
export function demandOf(plan: DemandPlan, req: Request, call: Call): Demand | undefined {
  const charges: Limit[] = []
  const slots: Limit[] = []
  let sender: string | undefined
  let tokens: number | undefined
  for (const { level, subjects } of plan.levels) {
    const name = level.by(req, call)
    if (name === null || name === undefined) continue
    const subject = subjects.of(name)
    sender ??= subject.sender
    const rpm = mostOf(level.rpm, req, call)
    if (rpm !== undefined) charges.push(subject.rpm(rpm))
    const tpm = mostOf(level.tpm, req, call)
    if (tpm !== undefined) {
      tokens ??= whole(plan.tokens(req, call))
      charges.push(subject.tpm(tpm, tokens))
    }
    const concurrency = mostOf(level.concurrency, req, call)
    if (concurrency !== undefined) slots.push(subject.concurrency(concurrency))
  }
  if (sender === undefined || charges.length + slots.length === 0) return undefined
  return { id: call.id, sender, windowMs: plan.windowMs, charges, slots }
}

/** A limit that no demand of its size can ever pass, however long it waits. */
export function neverPassed({ charges, slots }: Demand): Limit | undefined {
  return charges.find(isTooLarge) ?? slots.find(isTooLarge)
}

function isTooLarge({ cost, most }: Limit): boolean {
  return cost > most
}

function mostOf(limit: OfRequest<LimitValue>, req: Request, call: Call): number | undefined {
  const most = typeof limit === 'function' ? limit(req, call) : limit
  if (most === null || most === undefined || most === Number.POSITIVE_INFINITY) return undefined
  // A text of digits, as databases give, would do here and fail in a store, there with all that was asked beside it.
  if (!(typeof most === 'number' && most >= 0))
    throw new TypeError(`rateLimit: a limit must be a number from 0 up, not ${typeof most} ${most}`)
  return most
}

function whole(tokens: number): number {
  if (!(tokens >= 0 && tokens <= Number.MAX_SAFE_INTEGER))
    throw new TypeError(`rateLimit: "tokens" must give a number from 0 up, not ${tokens}`)
  return Math.ceil(tokens)
}
