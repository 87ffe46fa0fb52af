import type { Request } from 'express'
import type { Call } from '../../core/call/index.ts'

/** A value, or a function of the request and its call that returns one or a promise of one. */
export type OfRequest<T> = T | ((req: Request, call: Call) => T | Promise<T>)

/** A limit. Null, undefined and Infinity mean no limit. */
export type LimitValue = number | null | undefined

type Subjected = string | null | undefined

/** A subject to limit, with its limits. */
export interface LimitLevel {
  /** The name of the level in counters and in the call log, such as `ip`. */
  name: string
  /**
   * Returns the subject of a request, such as its user's id, or a promise of it. The level does not apply if it is null or
   * undefined.
   */
  by: (req: Request, call: Call) => Subjected | Promise<Subjected>
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
