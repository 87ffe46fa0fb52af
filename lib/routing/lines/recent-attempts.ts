const BUCKET_MS = 10_000
const BUCKETS = 6

interface Bucket {
  /** Which span of time it counts, from the start of the clock. */
  span: number
  attempts: number
  failures: number
}

/** How the attempts of the last minute ended. */
export class RecentAttempts {
  readonly #buckets: Bucket[] = Array.from({ length: BUCKETS }, () => ({
    span: -1,
    attempts: 0,
    failures: 0,
  }))

  count(failed: boolean): void {
    const span = spanNow()
    const bucket = this.#buckets[span % BUCKETS] as Bucket
    if (bucket.span !== span) Object.assign(bucket, { span, attempts: 0, failures: 0 })
    bucket.attempts++
    if (failed) bucket.failures++
  }

  get figures(): { readonly attempts: number; readonly failures: number } {
    const oldest = spanNow() - BUCKETS + 1
    const recent = this.#buckets.filter(({ span }) => span >= oldest)
    return {
      attempts: recent.reduce((sum, { attempts }) => sum + attempts, 0),
      failures: recent.reduce((sum, { failures }) => sum + failures, 0),
    }
  }
}

/** Whether an answer that is passed on, or read by itself, says that the line failed. */
export function isLineFault(status: number | null): boolean {
  return status !== null && (status >= 500 || status === 429)
}

function spanNow(): number {
  return Math.floor(performance.now() / BUCKET_MS)
}
