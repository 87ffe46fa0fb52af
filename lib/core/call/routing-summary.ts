import type { AttemptError, AttemptRecord, DisconnectTrace, Elimination, RoutingTrace } from './parts.ts'

export interface RoutingSummary {
  readonly region: string
  readonly strategy: string
  readonly eliminated: readonly Elimination[]
  /** The number of further eliminated lines, for which the entry has no room; absent if there are none. */
  readonly eliminated_omitted?: number
  readonly attempts: readonly AttemptSummary[]
  /** The number of further attempts, for which the entry has no room; absent if there are none. */
  readonly attempts_omitted?: number
  readonly retry_budget_spent?: true
  readonly disconnect?: DisconnectTrace
}

export interface AttemptSummary {
  readonly line: string
  /** The line's protocol. */
  readonly protocol: string
  readonly upstream_model: string | null
  readonly upstream_status: number | null
  readonly outcome: string
  readonly timeout_phase: string | null
  readonly detail: string | null
  /** The error that the upstream sent, without the prompt; absent if it sent none. */
  readonly upstream_error?: AttemptError
  readonly connect_ms: number | null
  readonly first_byte_ms: number | null
  readonly duration_ms: number
  /** Parts of a translated answer that were left out; absent if there are none. */
  readonly skipped?: number
  /** Members of a translated request that were left out; absent if there are none. */
  readonly dropped?: readonly string[]
}

/** The most bytes of an entry that its attempts and eliminated lines take, as JSON. There may be hundreds of lines. */
export const MAX_TRACE_BYTES = 6 * 1024
/** The most bytes of them that the attempts take. */
const MAX_ATTEMPTS_BYTES = 4 * 1024

/** Returns the first eliminated lines and the first attempts, and how many are left out. */
export function routingOf(routing: RoutingTrace): RoutingSummary {
  const { region, strategy, eliminated, retryBudgetSpent, disconnect } = routing
  const attempts = routing.attempts.map(attemptOf)
  if (eliminated.length === 0 && attempts.length <= 1 && !retryBudgetSpent && !disconnect)
    return { region, strategy, eliminated, attempts }
  const [tried, triedBytes] = fitting(attempts, MAX_ATTEMPTS_BYTES)
  const [told] = fitting(eliminated, MAX_TRACE_BYTES - triedBytes)
  return {
    region,
    strategy,
    eliminated: eliminated.slice(0, told),
    ...(told < eliminated.length && { eliminated_omitted: eliminated.length - told }),
    attempts: attempts.slice(0, tried),
    ...(tried < attempts.length && { attempts_omitted: attempts.length - tried }),
    ...(retryBudgetSpent && { retry_budget_spent: true }),
    ...(disconnect && { disconnect }),
  }
}

/** Returns how many of the first rows have room, and how many bytes they take. */
function fitting(rows: readonly object[], most: number): [count: number, bytes: number] {
  let bytes = 0
  for (let i = 0; i < rows.length; i++) {
    const next = Buffer.byteLength(JSON.stringify(rows[i]))
    if (bytes + next > most) return [i, bytes]
    bytes += next
  }
  return [rows.length, bytes]
}

function attemptOf(attempt: AttemptRecord): AttemptSummary {
  return {
    line: attempt.line,
    protocol: attempt.protocol,
    upstream_model: attempt.upstreamModel,
    upstream_status: attempt.upstreamStatus,
    outcome: attempt.outcome,
    timeout_phase: attempt.timeoutPhase,
    detail: attempt.detail,
    ...(attempt.upstreamError && { upstream_error: attempt.upstreamError }),
    connect_ms: attempt.connectMs,
    first_byte_ms: attempt.firstByteMs,
    duration_ms: attempt.durationMs,
    ...(attempt.skipped > 0 && { skipped: attempt.skipped }),
    ...(attempt.dropped && { dropped: attempt.dropped }),
  }
}
