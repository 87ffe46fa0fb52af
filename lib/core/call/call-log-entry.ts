import { formatAmount, NO_TAGS, type Tags } from '../catalog/index.ts'
import type { ErrorCode } from '../errors/index.ts'
import type { ReportedUsage } from '../operations/index.ts'
import { type BillingSummary, billingOf, type ChargeItem, CURRENCY, itemOf } from './billing-trace.ts'
import type { OpenCall } from './open-call.ts'
import type {
  AttemptError,
  AttemptRecord,
  CallEnding,
  DisconnectTrace,
  Elimination,
  Finish,
  IdempotencyTrace,
  RoutingTrace,
  Usage,
} from './parts.ts'

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
  /** The user that the caller has named. */
  readonly user: string | null
  readonly tags: Tags
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
  /** The decisions of guards; absent if there were none. */
  readonly guards?: readonly GuardSummary[]
  /** Whether the answer came from the cache; absent if it was not looked for. */
  readonly cache?: 'hit' | 'miss'
  /** The id of the call that got the answer first; absent unless it came from the cache. */
  readonly cached_from?: string
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
  /** The counts that the line reported, if they were bounded. */
  readonly reported?: Partial<UsageCounts>
}

export type UsageCounts = Omit<UsageSummary, 'source' | 'reported'>

/** The decision of a guard about what went in or out; never the text. */
export interface GuardSummary {
  readonly guard: string
  readonly on: 'input' | 'output'
  readonly decision: 'allowed' | 'replaced' | 'refused' | 'failed'
  readonly checks: number
  readonly duration_ms: number
}

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
  /** The model that the line was tried for; absent if the call had only one. */
  readonly model?: string
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
  /** Why the answer ended; absent if it is complete. */
  readonly finish_reason?: string
}

/**
 * Returns the log entry of a call that has ended.
 *
 * @param ending how the call will end, for a call that is about to end.
 */
export function entryOf(call: OpenCall, ending?: CallEnding): CallLogEntry {
  const { principal, request, routing, usage, idempotency } = call
  const outcome = ending ? ending.outcome : call.outcome
  const entry: Writable<CallLogEntry> = {
    id: call.id,
    object: 'call',
    created_at: new Date(call.startedAt).toISOString(),
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
    routing: routing && isShort(routing) ? routingOf(routing, MAX_TRACE_BYTES) : null,
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
  if (call.guards.length > 0)
    entry.guards = call.guards.map(({ durationMs, ...guard }) => ({
      ...guard,
      duration_ms: Math.round(durationMs),
    }))
  if (call.cache) {
    entry.cache = call.cache.outcome
    if (call.cache.from !== null) entry.cached_from = call.cache.from
  }
  if (idempotency && idempotency.partsApart > 0) entry.response_body_parts = idempotency.partsApart
  if (routing && !isShort(routing)) entry.routing = cutTrace(entry, routing)
  else if (entry.request?.provider && bytesWithLabels(entry) > MAX_ENTRY_BYTES)
    entry.request = { ...entry.request, provider: null }
  return entry
}

/** The most bytes of an entry as JSON, without the answer that it keeps, but with the labels that a store finds it by. */
const MAX_ENTRY_BYTES = 16 * 1024

/** Whether a trace is always short. */
function isShort({ eliminated, attempts }: RoutingTrace): boolean {
  return eliminated.length === 0 && attempts.length <= 1
}

/** Returns as much of a trace as the entry has room for. The caller's provider constraint gives way to it. */
function cutTrace(entry: Writable<CallLogEntry>, routing: RoutingTrace): RoutingSummary {
  let room = MAX_ENTRY_BYTES - bytesWithLabels({ ...entry, routing: null })
  if (room < MIN_TRACE_BYTES && entry.request?.provider) {
    entry.request = { ...entry.request, provider: null }
    room = MAX_ENTRY_BYTES - bytesWithLabels({ ...entry, routing: null })
  }
  return routingOf(routing, Math.min(MAX_TRACE_BYTES, room - TRACE_FRAME_BYTES))
}

function bytesWithLabels(entry: CallLogEntry): number {
  const json = JSON.stringify(entry.response_body === null ? entry : { ...entry, response_body: null })
  return Buffer.byteLength(json) + labelBytes(entry)
}

/** The bytes of a label beside its text: the kind, the id of the call, and the frame of a row. */
const LABEL_BYTES = 64
/** How many labels an entry has beside those of its caller's words. */
const OWN_LABELS = 8

/** Returns about how many bytes the labels of an entry take. A word of its caller has two: among all calls, and among its account's. */
function labelBytes({ account, key, model, user, tags, client_request_id: client }: CallLogEntry): number {
  const own = OWN_LABELS * LABEL_BYTES + bytesOfText(key) + bytesOfText(model)
  const words = [user, client, ...tagTexts(tags)].filter((word) => typeof word === 'string')
  const both = words.reduce((sum, word) => sum + 2 * (bytesOfText(word) + LABEL_BYTES), 0)
  return own + both + words.length * bytesOfText(account)
}

function bytesOfText(text: string | null): number {
  return text === null ? 0 : Buffer.byteLength(text)
}

function tagTexts(tags: Tags | null | undefined): string[] {
  return tags ? Object.entries(tags).map(([name, value]) => `${name}=${value}`) : []
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

/** Returns the line of the last attempt; null if there was none. */
export function lineOf({ routing }: Pick<CallLogEntry, 'routing'>): string | null {
  return routing?.attempts.at(-1)?.line ?? null
}

/** The parts that determine the size of an entry: those of an entry, or of the call that it will be made of. */
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
    (tags && tags !== NO_TAGS ? TAG_COPIES * bytesOfTags(tags) : 0)
  )
}

/** A tag stands in the entry, and in two labels. */
const TAG_COPIES = 3

function bytesOfTags(tags: Tags): number {
  return Object.entries(tags).reduce(
    (sum, [name, value]) => sum + LABEL_BYTES + name.length + value.length,
    0,
  )
}

/** The most bytes of an entry that its attempts and eliminated lines take, as JSON. There may be hundreds of lines. */
const MAX_TRACE_BYTES = 6 * 1024
/** With less room for them, the caller's constraint is left out. */
const MIN_TRACE_BYTES = 2 * 1024
/** The bytes of a trace beside its eliminated lines and attempts. */
const TRACE_FRAME_BYTES = 256
/** The most bytes of them that the attempts take. */
const MAX_ATTEMPTS_BYTES = 4 * 1024

/** Returns the first eliminated lines and the first attempts, and how many are left out. */
function routingOf(routing: RoutingTrace, most: number): RoutingSummary {
  const { region, strategy, eliminated, retryBudgetSpent, disconnect } = routing
  const attempts = routing.attempts.map(attemptOf)
  if (eliminated.length === 0 && attempts.length <= 1 && !retryBudgetSpent && !disconnect)
    return { region, strategy, eliminated, attempts }
  const [tried, triedBytes] = countFitting(attempts, Math.min(MAX_ATTEMPTS_BYTES, (most * 2) / 3))
  const [shown] = countFitting(eliminated, most - triedBytes)
  return {
    region,
    strategy,
    eliminated: eliminated.slice(0, shown),
    ...(shown < eliminated.length && { eliminated_omitted: eliminated.length - shown }),
    attempts: attempts.slice(0, tried),
    ...(tried < attempts.length && { attempts_omitted: attempts.length - tried }),
    ...(retryBudgetSpent && { retry_budget_spent: true }),
    ...(disconnect && { disconnect }),
  }
}

/** Returns how many of the first rows have room, and how many bytes they take. */
function countFitting(rows: readonly object[], most: number): [count: number, bytes: number] {
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
  if (attempt.model !== undefined) summary.model = attempt.model
  if (attempt.upstreamError) summary.upstream_error = attempt.upstreamError
  if (attempt.skipped > 0) summary.skipped = attempt.skipped
  if (attempt.dropped) summary.dropped = attempt.dropped
  if (attempt.finishReason) summary.finish_reason = attempt.finishReason
  return summary
}

/** The charge of a call that is charged long after its answer. */
export interface LateCharge {
  /** In nano-units. */
  readonly reserved: bigint
  readonly amount: bigint
  readonly items: readonly ChargeItem[]
  /** Seconds of video. */
  readonly seconds: number
  /** Output tokens. */
  readonly tokens: number
  /** Whether the quantities are the line's or the requested ones. `bounded`: they come to more than is charged. */
  readonly source: 'measured' | 'estimated' | 'bounded'
  /** The operator's cost of the call, in nano-units. Absent: not known. */
  readonly cost?: bigint | undefined
}

export function withLateCharge(entry: CallLogEntry, charge: LateCharge): CallLogEntry {
  const { reserved, amount, items, seconds, tokens, source, cost } = charge
  return {
    ...entry,
    usage: {
      input_tokens: 0,
      cached_input_tokens: 0,
      cache_write_tokens: 0,
      output_tokens: tokens,
      seconds,
      source,
      ...(source === 'bounded' && { reported: { output_tokens: tokens, seconds } }),
    },
    billing: {
      currency: CURRENCY,
      reserved: formatAmount(reserved),
      charged: formatAmount(amount),
      required: null,
      available: null,
      items: items.map(itemOf),
      ...(cost !== undefined && { cost: formatAmount(cost) }),
    },
  }
}
