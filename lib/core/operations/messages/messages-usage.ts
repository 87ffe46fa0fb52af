import { tokenCount } from '../../json/index.ts'
import type { ReportedUsage } from '../operation.ts'

/** The counts of Anthropic-style `usage`. `fresh` excludes tokens that were read from or written to a cache. */
export interface MessageCounts {
  readonly fresh?: number | undefined
  readonly cached?: number | undefined
  readonly written?: number | undefined
  readonly output?: number | undefined
}

/** Reads Anthropic-style `usage`. The output includes thinking. */
export function readMessageCounts(usage: unknown): MessageCounts {
  if (typeof usage !== 'object' || usage === null) return {}
  const counts = usage as Record<string, unknown>
  return {
    fresh: tokenCount(counts.input_tokens),
    cached: tokenCount(counts.cache_read_input_tokens),
    written: tokenCount(counts.cache_creation_input_tokens),
    output: tokenCount(counts.output_tokens),
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
    output: report.output || (before.output ?? report.output),
  }
}

/** Returns the counts as usage, whose input includes tokens that were read from or written to a cache. */
export function messageUsage({ fresh, cached, written, output }: MessageCounts): ReportedUsage {
  return {
    inputTokens: fresh === undefined ? undefined : fresh + (cached ?? 0) + (written ?? 0),
    cachedInputTokens: cached,
    cacheWriteTokens: written,
    outputTokens: output,
  }
}
