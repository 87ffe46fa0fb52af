import { NO_TAGS, type Tags } from '../catalog/index.ts'
import type { ReportedUsage } from '../operations/index.ts'
import { billingOf } from './billing-trace.ts'
import type { Call } from './call.ts'
import type { AttemptSummary, CallLogEntry, RoutingSummary, UsageCounts } from './call-log-entry.ts'
import type { AttemptRecord, CallEnding, IdempotencyTrace, RoutingTrace, Usage } from './parts.ts'

/**
 * Returns the log entry of a call that has ended.
 *
 * @param ending how the call will end, for a call that is about to end.
 */
export function entryOf(call: Call, ending?: CallEnding): CallLogEntry {
  const { principal, request, routing, usage, idempotency } = call
  const outcome = ending ? ending.outcome : call.outcome
  // Members that few entries have are added behind: an object that is spread is made twice.
  const entry: Writable<CallLogEntry> = {
    id: call.id,
    object: 'call',
    created_at: isoTime(call.startedAt),
    duration_ms: Math.round(performance.now() - call.begunAt),
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
    usage: usage && countsOf(usage),
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
  }
  if (idempotency && idempotency.partsApart > 0) entry.response_body_parts = idempotency.partsApart
  return entry
}

type Writable<T> = { -readonly [Name in keyof T]: T[Name] }

type CountName = Exclude<keyof Usage | keyof ReportedUsage, 'source' | 'reported'>

/** Returns the counts that there are, as entries name them. */
function countsOf(usage: Usage): NonNullable<CallLogEntry['usage']>
function countsOf(reported: ReportedUsage): Partial<UsageCounts>
function countsOf(counts: Partial<Usage> | ReportedUsage): object {
  const named: Record<string, unknown> = {}
  for (const name in COUNT_NAMES) {
    const count = (counts as { readonly [Name in CountName]?: number | string })[name as CountName]
    if (count !== undefined) named[COUNT_NAMES[name as CountName]] = count
  }
  if ('source' in counts) named.source = counts.source
  if ('reported' in counts && counts.reported) named.reported = countsOf(counts.reported)
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
  webSearches: 'web_searches',
  minutes: 'minutes',
  serviceTier: 'service_tier',
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
  readonly response_body?: string | null
}

/**
 * About how much memory an entry takes: to measure it exactly would cost as much as to write it.
 *
 * @param body the length of the answer that it keeps.
 */
export function bytesOfEntry(
  { routing, request, tags, response_body: kept }: Sized,
  body = kept?.length ?? 0,
): number {
  const trace = routing ? 200 * (routing.eliminated.length + 2 * routing.attempts.length) : 0
  return (
    2048 +
    body +
    Math.min(trace, MAX_TRACE_BYTES) +
    (request?.provider ? 2048 : 0) +
    (tags && tags !== NO_TAGS ? 2048 : 0)
  )
}

/** The most bytes of an entry that its attempts and eliminated lines take, as JSON. There may be hundreds of lines. */
const MAX_TRACE_BYTES = 6 * 1024
/** The most bytes of them that the attempts take. */
const MAX_ATTEMPTS_BYTES = 4 * 1024

/** Returns the first eliminated lines and the first attempts, and how many are left out. */
function routingOf(routing: RoutingTrace): RoutingSummary {
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
  const summary: Writable<AttemptSummary> = {
    line: attempt.line,
    protocol: attempt.protocol,
    upstream_model: attempt.upstreamModel,
    upstream_status: attempt.upstreamStatus,
    outcome: attempt.outcome,
    timeout_phase: attempt.timeoutPhase,
    detail: attempt.detail,
    connect_ms: attempt.connectMs,
    first_byte_ms: attempt.firstByteMs,
    duration_ms: attempt.durationMs,
  }
  if (attempt.upstreamError) summary.upstream_error = attempt.upstreamError
  if (attempt.skipped > 0) summary.skipped = attempt.skipped
  if (attempt.dropped) summary.dropped = attempt.dropped
  return summary
}
