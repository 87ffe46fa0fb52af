import { NO_TAGS, type Tags } from '../catalog/index.ts'
import type { ErrorCode } from '../errors/index.ts'
import type { ReportedUsage } from '../operations/index.ts'
import { type BillingSummary, billingOf } from './billing-trace.ts'
import type { Call } from './call.ts'
import type { CallEnding, Finish, IdempotencyTrace, Usage } from './parts.ts'
import { MAX_TRACE_BYTES, type RoutingSummary, routingOf } from './routing-summary.ts'

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
  readonly minutes?: number
  readonly source: Usage['source']
  /** What the line reported, if that was bounded. */
  readonly reported?: Partial<UsageCounts>
}

type UsageCounts = Omit<UsageSummary, 'source' | 'reported'>
type CountName = Exclude<keyof Usage | keyof ReportedUsage, 'source' | 'reported'>

/** The limit that refused a call. */
export interface LimitSummary {
  readonly kind: string
  readonly level: string
  readonly subject: string
  readonly limit: number
  readonly retry_after: number
}

/**
 * Returns the log entry of a call that has ended.
 *
 * @param ending how the call will end, for a call that is about to end.
 */
export function entryOf(call: Call, ending?: CallEnding): CallLogEntry {
  const { principal, request, routing, usage, idempotency } = call
  const outcome = ending ? ending.outcome : call.outcome
  return {
    id: call.id,
    object: 'call',
    created_at: isoTime(call.startedAt),
    duration_ms: Math.max(0, Date.now() - call.startedAt),
    account: principal?.accountId ?? null,
    key: principal?.keyId ?? null,
    client_ip: call.clientIp,
    client_request_id: call.clientRequestId,
    method: call.method,
    path: call.shortPath,
    protocol: call.protocol.name,
    model: call.model,
    user: call.user,
    tags: call.tags ?? principal?.tags ?? NO_TAGS,
    stream: request?.stream ?? false,
    status: outcome?.status ?? 0,
    error_code: outcome?.errorCode ?? null,
    outcome: outcome?.finish ?? 'completed',
    request: request && {
      messages: request.messages,
      tools: request.tools,
      images: request.images,
      max_output_tokens: request.maxOutputTokens ?? null,
      estimated_input_tokens: request.estimatedInputTokens,
      provider: request.provider ?? null,
    },
    routing: routing && routingOf(routing),
    usage: usage && {
      ...countsOf(usage),
      source: usage.source,
      ...(usage.reported && { reported: countsOf(usage.reported) }),
    },
    billing: call.billing && billingOf(call.billing),
    limit: call.limit && {
      kind: call.limit.kind,
      level: call.limit.level,
      subject: call.limit.subject,
      limit: call.limit.limit,
      retry_after: call.limit.retryAfter,
    },
    idempotency_key: idempotency?.key ?? null,
    original_request_id: idempotency?.originalRequestId ?? null,
    response_body: idempotency && bodyOf(idempotency, ending),
    ...(idempotency && idempotency.partsApart > 0 && { response_body_parts: idempotency.partsApart }),
  }
}

/** Returns the counts that there are, as entries name them. */
function countsOf(usage: Usage): UsageCounts
function countsOf(reported: ReportedUsage): Partial<UsageCounts>
function countsOf(counts: { readonly [Name in CountName]?: number | undefined }): object {
  const named: Record<string, number> = {}
  for (const name in COUNT_NAMES) {
    const count = counts[name as CountName]
    if (count !== undefined) named[COUNT_NAMES[name as CountName]] = count
  }
  return named
}

const COUNT_NAMES = {
  inputTokens: 'input_tokens',
  cachedInputTokens: 'cached_input_tokens',
  cacheWriteTokens: 'cache_write_tokens',
  cacheWrite1hTokens: 'cache_write_1h_tokens',
  audioInputTokens: 'audio_input_tokens',
  outputTokens: 'output_tokens',
  audioOutputTokens: 'audio_output_tokens',
  reasoningTokens: 'reasoning_tokens',
  images: 'images',
  seconds: 'seconds',
  searchUnits: 'search_units',
  minutes: 'minutes',
} as const satisfies Record<CountName, keyof UsageCounts>

function bodyOf(idempotency: IdempotencyTrace, ending: CallEnding | undefined): string | null {
  if (idempotency.partsApart > 0) return null
  return ending ? idempotency.bodyWith(ending.unsent) : idempotency.responseBody
}

let lastSecond = -1
let lastText = ''

/** Formats a time. The text up to the second is kept, because calls that began in one second share it. */
function isoTime(time: number): string {
  const second = Math.floor(time / 1000)
  if (second !== lastSecond) {
    lastSecond = second
    lastText = new Date(second * 1000).toISOString().slice(0, -4)
  }
  return `${lastText}${String(time - second * 1000).padStart(3, '0')}Z`
}

/** Returns the line of the last attempt; null if there was none. */
export function lineOf({ routing }: Pick<CallLogEntry, 'routing'>): string | null {
  return routing?.attempts.at(-1)?.line ?? null
}

/** What the size of an entry depends on: an entry, or the call that it will be made of. */
interface Sized {
  readonly routing: { readonly eliminated: readonly unknown[]; readonly attempts: readonly unknown[] } | null
  readonly request: { readonly provider?: unknown } | null
  readonly tags?: Tags | null
}

/**
 * About how much memory an entry takes: to measure it exactly would cost as much as to write it.
 *
 * @param body the length of the answer that it keeps.
 */
export function bytesOfEntry({ routing, request, tags }: Sized, body: number): number {
  const trace = routing ? 200 * (routing.eliminated.length + 2 * routing.attempts.length) : 0
  return (
    2048 +
    body +
    Math.min(trace, MAX_TRACE_BYTES) +
    (request?.provider ? 2048 : 0) +
    (tags && tags !== NO_TAGS ? 2048 : 0)
  )
}
