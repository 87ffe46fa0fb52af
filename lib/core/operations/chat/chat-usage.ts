import type { ReportedUsage } from '../operation.ts'
import { tokenCount } from '../tokens/token-count.ts'

/** Reads OpenAI-style `usage`. `prompt_tokens` includes the cached ones, the output what was thought. */
export function readChatUsage(usage: unknown): ReportedUsage {
  if (!isObject(usage)) return {}
  const cache = isObject(usage.prompt_tokens_details) ? usage.prompt_tokens_details : {}
  return {
    inputTokens: tokenCount(usage.prompt_tokens),
    outputTokens: outputOf(usage),
    cachedInputTokens: tokenCount(cache.cached_tokens) ?? tokenCount(usage.prompt_cache_hit_tokens),
    cacheWriteTokens: tokenCount(cache.cache_write_tokens),
  }
}

/**
 * Most upstreams count reasoning as part of `completion_tokens`; xAI counts it beside them. The total tells which, or
 * that the part would be greater than the whole.
 */
function outputOf(usage: Readonly<Record<string, unknown>>): number | undefined {
  const completion = tokenCount(usage.completion_tokens)
  const details = isObject(usage.completion_tokens_details) ? usage.completion_tokens_details : {}
  const reasoning = tokenCount(details.reasoning_tokens)
  if (completion === undefined || reasoning === undefined) return completion
  const apart = completion + reasoning
  const total = tokenCount(usage.total_tokens)
  const prompt = tokenCount(usage.prompt_tokens) ?? 0
  return reasoning > completion || (total !== undefined && total >= prompt + apart) ? apart : completion
}

/**
 * What a stream has reported, after a further report. Counts run on, so the later one stands; but zeros, which some
 * upstreams send wherever they have nothing to say, take nothing back.
 */
export function laterChatUsage(before: ReportedUsage, report: ReportedUsage): ReportedUsage {
  const input = report.inputTokens || before.inputTokens === undefined ? report : before
  return {
    inputTokens: input.inputTokens,
    cachedInputTokens: input.cachedInputTokens,
    cacheWriteTokens: input.cacheWriteTokens,
    outputTokens: report.outputTokens || (before.outputTokens ?? report.outputTokens),
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}
