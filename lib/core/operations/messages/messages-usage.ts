import { tierIn } from '../../catalog/service-tier.ts'
import { isJsonObject, objectsIn, tokenCount } from '../../json/index.ts'
import type { ReportedUsage } from '../operation.ts'
import { searchesInUsage } from '../web-searches.ts'

/** The counts of Anthropic-style `usage`. `fresh` excludes tokens that were read from or written to a cache. */
export interface MessageCounts {
  readonly fresh?: number | undefined
  readonly cached?: number | undefined
  readonly written?: number | undefined
  /** Those of `written` that the cache keeps for an hour. */
  readonly anHour?: number | undefined
  readonly output?: number | undefined
  /** Those of `output` that are thinking. */
  readonly thinking?: number | undefined
  /** The web searches that Anthropic ran. */
  readonly searches?: number | undefined
  readonly tier?: string | undefined
  /** What was spent beside the answer, and is not in the counts above. */
  readonly beside?: MessageCounts | undefined
}

/** The steps of a request that the counts of its answer leave out. */
const BESIDE: ReadonlySet<unknown> = new Set(['compaction', 'advisor_message'])

/** Reads Anthropic-style `usage`. The output includes thinking. */
export function readMessageCounts(usage: unknown): MessageCounts {
  if (typeof usage !== 'object' || usage === null) return {}
  const counts = usage as Record<string, unknown>
  const { cache_creation: writes, output_tokens_details: details } = counts
  const tier = tierIn(counts)
  return {
    fresh: tokenCount(counts.input_tokens),
    cached: tokenCount(counts.cache_read_input_tokens),
    written: tokenCount(counts.cache_creation_input_tokens),
    anHour: isJsonObject(writes) ? tokenCount(writes.ephemeral_1h_input_tokens) : undefined,
    output: tokenCount(counts.output_tokens),
    thinking: isJsonObject(details) ? tokenCount(details.thinking_tokens) : undefined,
    searches: searchesInUsage(counts) ?? 0,
    ...(tier && { tier }),
    beside: besideOf(counts.iterations),
  }
}

/** Adds up the steps beside the answer; undefined if none are reported. */
function besideOf(iterations: unknown): MessageCounts | undefined {
  const steps = objectsIn(iterations).filter(({ type }) => BESIDE.has(type))
  if (steps.length === 0) return undefined
  return steps.map((step) => readMessageCounts({ ...step, iterations: undefined })).reduce(sumOf)
}

function sumOf(one: MessageCounts, other: MessageCounts): MessageCounts {
  const sum = (count: Exclude<keyof MessageCounts, 'beside' | 'tier'>): number | undefined =>
    one[count] === undefined ? other[count] : one[count] + (other[count] ?? 0)
  return {
    fresh: sum('fresh'),
    cached: sum('cached'),
    written: sum('written'),
    anHour: sum('anHour'),
    output: sum('output'),
    thinking: sum('thinking'),
    searches: sum('searches'),
  }
}

/**
 * Combines two reports of a stream. Counts are cumulative and reported separately, so each later count replaces the
 * earlier one. But if the input or the output of a report is all zero, it replaces nothing.
 */
export function laterMessageCounts(before: MessageCounts, report: MessageCounts): MessageCounts {
  const corrects = (report.fresh ?? 0) + (report.cached ?? 0) + (report.written ?? 0) > 0
  const [first, second] = corrects ? [report, before] : [before, report]
  return {
    fresh: first.fresh ?? second.fresh,
    cached: first.cached ?? second.cached,
    written: first.written ?? second.written,
    anHour: first.anHour ?? second.anHour,
    output: report.output || (before.output ?? report.output),
    thinking: report.thinking ?? before.thinking,
    searches: report.searches || (before.searches ?? report.searches),
    ...((report.tier ?? before.tier) !== undefined && { tier: report.tier ?? before.tier }),
    beside: report.beside ?? before.beside,
  }
}

/** Returns the counts as usage, whose input includes tokens that were read from or written to a cache. */
export function messageUsage(counts: MessageCounts): ReportedUsage {
  const { beside, ...ofAnswer } = counts
  const { fresh, cached, written, anHour, output, thinking, searches } = beside
    ? sumOf(ofAnswer, beside)
    : ofAnswer
  return {
    inputTokens: fresh === undefined ? undefined : fresh + (cached ?? 0) + (written ?? 0),
    cachedInputTokens: cached,
    cacheWriteTokens: written,
    cacheWrite1hTokens: anHour,
    outputTokens: output,
    reasoningTokens: thinking,
    webSearches: searches,
    ...(counts.tier !== undefined && { serviceTier: counts.tier }),
  }
}
