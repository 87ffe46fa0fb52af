import type { Tags } from '../catalog/index.ts'

/** Whom and what calls are counted for. A null member: none, or not known. */
export interface UsageDimensions {
  readonly account: string | null
  readonly key: string | null
  readonly model: string | null
  readonly line: string | null
  readonly user: string | null
  readonly tags: Tags
}

/** What a call, or its charge, adds to the usage of an hour. */
export interface CallUsage extends Omit<UsageDimensions, 'account' | 'key'> {
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

export const HOUR_MS = 3_600_000

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

  /** @param sign -1 takes away what was added. */
  add(share: UsageShare, sign: 1 | -1 = 1): void {
    this.requests += sign * share.requests
    this.refused += sign * share.refused
    this.failed += sign * share.failed
    this.inputTokens += sign * whole(share.inputTokens)
    this.cachedInputTokens += sign * whole(share.cachedInputTokens)
    this.outputTokens += sign * whole(share.outputTokens)
    this.images += sign * whole(share.images)
    this.milliseconds += sign * whole(share.seconds * 1000)
    this.charged += sign === 1 ? share.charged : -share.charged
    this.cost += sign === 1 ? share.cost : -share.cost
    if (share.durationMs !== null)
      (this.durations[rangeOf(share.durationMs)] as number) += sign * share.requests
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
    for (const [i, count] of other.durations.entries()) (this.durations[i] as number) += count
  }
}

/** Rounds a count: lines report what they like. */
function whole(count: number): number {
  return Number.isFinite(count) ? Math.round(count) : 0
}

function rangeOf(ms: number): number {
  let range = 0
  while (range < DURATION_ENDS.length && ms > (DURATION_ENDS[range] as number)) range++
  return range
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
