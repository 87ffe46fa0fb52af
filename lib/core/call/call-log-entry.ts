import type { Tags } from '../catalog/index.ts'
import type { ErrorCode } from '../errors/index.ts'
import type { BillingSummary } from './billing-trace.ts'
import type { AttemptError, DisconnectTrace, Elimination, Finish, Usage } from './parts.ts'

/** A call in the call log, as `GET /v1/calls/{request_id}` returns it. Times are milliseconds. */
export interface CallLogEntry {
  readonly id: string
  readonly object: 'call'
  /** ISO 8601. */
  readonly created_at: string
  readonly duration_ms: number
  readonly account: string | null
  readonly key: string | null
  readonly client_ip: string | null
  readonly client_request_id: string | null
  readonly method: string
  readonly path: string
  readonly protocol: string
  readonly model: string | null
  /** Whom the caller says that the call was for. Absent in older entries, as are the tags. */
  readonly user?: string | null
  readonly tags?: Tags
  readonly stream: boolean
  readonly status: number
  readonly error_code: ErrorCode | null
  readonly outcome: Finish
  /** A summary of the parameters; never prompt text. */
  readonly request: RequestSummary | null
  readonly routing: RoutingSummary | null
  readonly usage: UsageSummary | null
  readonly billing: BillingSummary | null
  readonly limit: LimitSummary | null
  readonly idempotency_key: string | null
  readonly original_request_id: string | null
  readonly response_body: string | null
  /** In how many parts the body is kept apart from the entry. Only stores see it. */
  readonly response_body_parts?: number
  /** The number of further calls of the same kind that have no entry of their own; absent if there are none. */
  readonly repeats?: number
}

export interface RequestSummary {
  readonly messages: number
  readonly tools: number
  readonly images: number
  readonly max_output_tokens: number | null
  readonly estimated_input_tokens: number
  /** The caller's provider constraint; null without one. */
  readonly provider: unknown
}

export interface UsageSummary {
  readonly input_tokens: number
  readonly cached_input_tokens: number
  readonly cache_write_tokens: number
  /** A part of the tokens written to a cache. */
  readonly cache_write_1h_tokens?: number
  readonly audio_input_tokens?: number
  readonly output_tokens: number
  readonly audio_output_tokens?: number
  readonly reasoning_tokens?: number
  readonly images?: number
  /** Seconds of video. */
  readonly seconds?: number
  readonly search_units?: number
  readonly web_searches?: number
  readonly minutes?: number
  /** The tier of service that the line reported, if it is not the usual one. */
  readonly service_tier?: string
  readonly source: Usage['source']
  /** What the line reported, if that was bounded. */
  readonly reported?: Partial<UsageCounts>
}

export type UsageCounts = Omit<UsageSummary, 'source' | 'reported'>

/** The limit that refused a call. */
export interface LimitSummary {
  readonly kind: string
  readonly level: string
  readonly subject: string
  readonly limit: number
  readonly retry_after: number
}

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
