import { type Call, type CallLogEntry, type CallOutcome, lineOf } from '../call/index.ts'
import { NO_TAGS } from '../catalog/index.ts'
import type { CallUsage, UsageShare } from './usage-sums.ts'

/** A charge, as far as usage needs it. */
interface Charged {
  readonly account: string
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
export function shareOfCharge({ account, key, amount, cost, at, usage }: Charged): UsageShare {
  return { ...(usage ?? NOT_KNOWN), account, key, at, charged: amount, cost: cost ?? 0n }
}

/** Returns what a call adds that has no charge; undefined if it is counted with its charge, or is a look-up. */
export function shareOfEntry(entry: CallLogEntry): UsageShare | undefined {
  const { account, key, created_at: createdAt } = entry
  if (isLookUp(entry) || isSettled(entry)) return undefined
  return { ...usageOfEntry(entry), account, key, at: Date.parse(createdAt), charged: 0n, cost: 0n }
}

/** Returns the usage of a call that is being settled. */
export function usageOfCall(call: Call, { finish, errorCode }: CallOutcome): CallUsage {
  const { usage } = call
  const failed = isFailed(finish, errorCode) ? 1 : 0
  return {
    model: call.model,
    line: call.servedBy?.line ?? null,
    user: call.user,
    tags: call.tags ?? NO_TAGS,
    requests: 1,
    refused: 0,
    failed,
    durationMs: failed ? null : Math.max(0, Date.now() - call.startedAt),
    inputTokens: usage?.inputTokens ?? 0,
    cachedInputTokens: usage?.cachedInputTokens ?? 0,
    outputTokens: usage?.outputTokens ?? 0,
    images: usage?.images ?? 0,
    seconds: usage?.seconds ?? 0,
  }
}

/** Returns the usage of a part of a call that is charged by itself: the call is counted with its first charge. */
export function usageOfPart({ model, servedBy, user, tags }: Call): CallUsage {
  const line = servedBy?.line ?? null
  return { ...NOT_KNOWN, model, line, user, tags: tags ?? NO_TAGS, requests: 0 }
}

/** Returns the usage of a call by its log entry. */
export function usageOfEntry(entry: CallLogEntry): CallUsage {
  const { request, routing, usage, repeats = 0, outcome } = entry
  const requests = 1 + repeats
  const failed = isFailed(outcome, entry.error_code) ? requests : 0
  const refused = outcome === 'refused' ? requests : 0
  return {
    // A model that does not exist could have any name.
    model: request || routing ? entry.model : null,
    line: lineOf(entry),
    user: entry.user ?? null,
    tags: entry.tags ?? NO_TAGS,
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

/** Whether a call neither runs a model nor is passed on. */
function isLookUp({ method, billing, request, routing, outcome }: CallLogEntry): boolean {
  if (billing !== null) return false
  if (method === 'GET' || method === 'HEAD' || method === 'DELETE') return true
  return outcome === 'completed' && request === null && routing === null
}

/**
 * Whether a ledger has a charge of the call, or gets one. A call that costs nothing has one only if money was held, or if
 * it has an Idempotency-Key.
 */
function isSettled({ billing, idempotency_key: key }: CallLogEntry): boolean {
  if (!billing || billing.charged === null) return false
  return billing.charged !== '0' || billing.reserved !== '0' || key !== null
}
