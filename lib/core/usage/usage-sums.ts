import { type CallLogEntry, type CallOutcome, isRead, lineOf, type OpenCall } from '../call/index.ts'
import { NO_TAGS, parseAmount, type Tags } from '../catalog/index.ts'

/** The dimensions that calls are counted by. A member is null if there is none, or it is not known. */
export interface UsageDimensions {
  readonly account: string | null
  readonly key: string | null
  readonly model: string | null
  readonly line: string | null
  readonly user: string | null
  readonly tags: Tags
}

/** Whether usage surely is of these: tags that are equal may be another object. */
export function isOf(
  of: UsageDimensions,
  { account, key }: Pick<UsageDimensions, 'account' | 'key'>,
  { model, line, user, tags }: Omit<UsageDimensions, 'account' | 'key'>,
): boolean {
  return (
    of.account === account &&
    of.key === key &&
    of.model === model &&
    of.line === line &&
    of.user === user &&
    of.tags === tags
  )
}

/** The counts that a call, or its charge, adds to the usage of an hour. */
export interface CallUsage extends Omit<UsageDimensions, 'account' | 'key'> {
  /**
   * When the call began, in milliseconds since the epoch: it counts in the minute that has its log entry. Left out of a charge
   * that counts in the minute in which it was made.
   */
  readonly startedAt?: number | null
  /** The number of calls: 0 for a charge of a call that is counted already. */
  readonly requests: number
  readonly refused: number
  readonly failed: number
  /** How long the call took, if its duration is counted. */
  readonly durationMs: number | null
  readonly inputTokens: number
  readonly cachedInputTokens: number
  readonly outputTokens: number
  readonly images: number
  /** Seconds of video. */
  readonly seconds: number
}

/** The usage of a call with its time and its money. */
export interface UsageShare extends CallUsage, UsageDimensions {
  /** Milliseconds since the epoch. */
  readonly at: number
  /** In nano-units. */
  readonly charged: bigint
  readonly cost: bigint
}

export const MINUTE_MS = 60_000
export const HOUR_MS = 3_600_000
/** For so long, usage is kept by minutes. */
export const MINUTES_KEPT_MS = 48 * HOUR_MS

/** The upper ends of the ranges that durations are counted in, in milliseconds; the last range has none. */
const DURATION_ENDS = [100, 250, 500, 1000, 2000, 4000, 8000, 15_000, 30_000, 60_000, 300_000]

/** Sums of the usage of calls. */
export class UsageSums {
  requests = 0
  refused = 0
  failed = 0
  inputTokens = 0
  cachedInputTokens = 0
  outputTokens = 0
  images = 0
  /** Of video: sums of fractions would not be exact. */
  milliseconds = 0
  charged = 0n
  cost = 0n
  /** The number of calls in each range of durations. */
  readonly durations: number[] = new Array<number>(DURATION_ENDS.length + 1).fill(0)

  /**
   * @param charged the amount in nano-units, as is the cost.
   * @param sign -1 takes away what was added.
   */
  add(usage: CallUsage, charged: bigint, cost: bigint, sign: 1 | -1 = 1): void {
    this.requests += sign * usage.requests
    this.refused += sign * usage.refused
    this.failed += sign * usage.failed
    this.inputTokens += sign * whole(usage.inputTokens)
    this.cachedInputTokens += sign * whole(usage.cachedInputTokens)
    this.outputTokens += sign * whole(usage.outputTokens)
    this.images += sign * whole(usage.images)
    this.milliseconds += sign * whole(usage.seconds * 1000)
    if (charged !== 0n) this.charged += sign === 1 ? charged : -charged
    if (cost !== 0n) this.cost += sign === 1 ? cost : -cost
    if (usage.durationMs === null) return
    let range = 0
    while (range < DURATION_ENDS.length && usage.durationMs > (DURATION_ENDS[range] as number)) range++
    ;(this.durations[range] as number) += sign * usage.requests
  }

  get isEmpty(): boolean {
    const { durations, charged, cost, ...counts } = this
    return (
      charged === 0n && cost === 0n && [...durations, ...Object.values(counts)].every((count) => count === 0)
    )
  }

  /** Adds other sums. */
  merge(other: UsageSums): void {
    this.requests += other.requests
    this.refused += other.refused
    this.failed += other.failed
    this.inputTokens += other.inputTokens
    this.cachedInputTokens += other.cachedInputTokens
    this.outputTokens += other.outputTokens
    this.images += other.images
    this.milliseconds += other.milliseconds
    this.charged += other.charged
    this.cost += other.cost
    for (let i = 0; i < this.durations.length; i++)
      (this.durations[i] as number) += other.durations[i] as number
  }
}

/** Rounds a count: lines report what they like. */
function whole(count: number): number {
  return Number.isFinite(count) ? Math.round(count) : 0
}

/**
 * Returns the duration that a share of the calls did not exceed, in milliseconds, as if the calls of a range were spread
 * evenly over it; null without calls.
 */
export function durationOf(durations: readonly number[], share: number): number | null {
  const wanted = share * durations.reduce((sum, count) => sum + count, 0)
  if (wanted <= 0) return null
  let before = 0
  for (const [range, count] of durations.entries()) {
    if (count > 0 && before + count >= wanted) {
      const from = DURATION_ENDS[range - 1] ?? 0
      const to = DURATION_ENDS[range] ?? from * 2
      return Math.round(from + ((to - from) * (wanted - before)) / count)
    }
    before += count
  }
  return null
}

/** A charge, as far as usage needs it. */
export interface Charged {
  /** null for a call without one, which has no charge. */
  readonly account: string | null
  readonly key: string | null
  readonly amount: bigint
  readonly cost?: bigint | null
  readonly at: number
  readonly usage?: CallUsage | null
}

/** The usage of a call of which only the charge is known. */
export const NOT_KNOWN: CallUsage = {
  model: null,
  line: null,
  user: null,
  tags: NO_TAGS,
  requests: 1,
  refused: 0,
  failed: 0,
  durationMs: null,
  inputTokens: 0,
  cachedInputTokens: 0,
  outputTokens: 0,
  images: 0,
  seconds: 0,
}

/** Returns what a charge adds. */
export function shareOfCharge(charge: Charged): UsageShare {
  const { account, key, amount, cost, usage } = charge
  return {
    ...(usage ?? NOT_KNOWN),
    account,
    key,
    at: countedAt(charge),
    charged: amount,
    cost: cost ?? 0n,
  }
}

/** Returns the time in which a charge counts, in milliseconds since the epoch. */
export function countedAt({ at, usage }: Pick<Charged, 'at' | 'usage'>): number {
  return usage?.startedAt ?? at
}

/**
 * Returns what a call adds that has no charge; undefined if it is counted with its charge, or is a look-up. A call that costs
 * nothing has a charge only if money was held, or if it has an Idempotency-Key.
 */
export function shareOfEntry(entry: CallLogEntry): UsageShare | undefined {
  const { account, key, created_at: createdAt, billing, idempotency_key: idempotencyKey } = entry
  const isSettled =
    billing != null &&
    billing.charged !== null &&
    (billing.charged !== '0' || billing.reserved !== '0' || idempotencyKey !== null)
  if (isSettled || isLookUp(entry)) return undefined
  // A call that costs its caller nothing may cost the operator something.
  const cost = billing?.charged === '0' && billing.cost !== undefined ? parseAmount(billing.cost) : 0n
  return { ...usageOfEntry(entry), account, key, at: Date.parse(createdAt), charged: 0n, cost }
}

/** Returns the usage of a call that is being settled. */
export function usageOfCall(call: OpenCall, { finish, errorCode }: CallOutcome): CallUsage {
  const { usage } = call
  const failed = finish !== 'completed' && isFailed(finish, errorCode) ? 1 : 0
  return {
    model: call.model,
    line: call.servedBy?.line ?? null,
    user: call.user,
    tags: call.tags ?? NO_TAGS,
    requests: 1,
    refused: 0,
    failed,
    durationMs: failed ? null : Math.round(performance.now() - call.begunAt),
    inputTokens: usage?.inputTokens ?? 0,
    cachedInputTokens: usage?.cachedInputTokens ?? 0,
    outputTokens: usage?.outputTokens ?? 0,
    images: usage?.images ?? 0,
    seconds: usage?.seconds ?? 0,
    startedAt: call.startedAt,
  }
}

/** Returns the usage of a part of a call that is charged by itself: the call is counted with its first charge. */
export function usageOfPart({ model, servedBy, user, tags }: OpenCall): CallUsage {
  const line = servedBy?.line ?? null
  return { ...NOT_KNOWN, model, line, user, tags: tags ?? NO_TAGS, requests: 0 }
}

export function usageOfEntry(entry: CallLogEntry): CallUsage {
  const { request, routing, usage, repeats = 0, outcome } = entry
  const requests = 1 + repeats
  const failed = isFailed(outcome, entry.error_code) ? requests : 0
  const refused = outcome === 'refused' ? requests : 0
  return {
    // A model that does not exist could have any name.
    model: request || routing ? entry.model : null,
    line: lineOf(entry),
    user: entry.user,
    tags: entry.tags,
    requests,
    refused,
    failed,
    durationMs: refused || failed ? null : entry.duration_ms,
    inputTokens: usage?.input_tokens ?? 0,
    cachedInputTokens: usage?.cached_input_tokens ?? 0,
    outputTokens: usage?.output_tokens ?? 0,
    images: usage?.images ?? 0,
    seconds: usage?.seconds ?? 0,
  }
}

/** Whether a call failed: also after a part of its answer was sent, unless its caller left. */
function isFailed(finish: CallLogEntry['outcome'], code: string | null): boolean {
  if (finish === 'failed') return true
  return finish === 'interrupted' && code !== null && code !== 'client_closed_request'
}

/** The counts of calls in usage. */
export const CALL_COUNTS = ['requests', 'refused', 'failed'] as const

/** Returns the counts that have a call. Look-ups are in none. */
export function countsOf(entry: CallLogEntry): readonly (typeof CALL_COUNTS)[number][] {
  const { outcome, error_code: code } = entry
  if (isLookUp(entry)) return []
  if (outcome === 'refused') return ['requests', 'refused']
  return isFailed(outcome, code) ? ['requests', 'failed'] : ['requests']
}

/** Whether a call neither runs a model nor is passed on. */
function isLookUp({ method, billing, request, routing, outcome }: CallLogEntry): boolean {
  if (billing !== null) return false
  if (isRead(method) || method === 'DELETE') return true
  return outcome === 'completed' && request === null && routing === null
}
