import { isJsonObject, type JsonObject } from '../../json/index.ts'
import type { ReportedUsage } from '../operation.ts'
import { tokenCount } from '../tokens/token-count.ts'

/** Reads OpenAI-style `usage`. `prompt_tokens` includes cached tokens, the output includes reasoning. */
export function readChatUsage(usage: unknown): ReportedUsage {
  if (!isJsonObject(usage)) return {}
  const cache = isJsonObject(usage.prompt_tokens_details) ? usage.prompt_tokens_details : {}
  return {
    inputTokens: tokenCount(usage.prompt_tokens),
    outputTokens: outputOf(usage),
    cachedInputTokens: tokenCount(cache.cached_tokens) ?? tokenCount(usage.prompt_cache_hit_tokens),
    cacheWriteTokens: tokenCount(cache.cache_write_tokens),
  }
}

/**
 * Returns the output tokens. Most upstreams include reasoning in `completion_tokens`; xAI does not. The total shows
 * which, or that there are more reasoning tokens than completion tokens.
 */
function outputOf(usage: JsonObject): number | undefined {
  const completion = tokenCount(usage.completion_tokens)
  const details = isJsonObject(usage.completion_tokens_details) ? usage.completion_tokens_details : {}
  const reasoning = tokenCount(details.reasoning_tokens)
  if (completion === undefined || reasoning === undefined) return completion
  const apart = completion + reasoning
  const total = tokenCount(usage.total_tokens)
  const prompt = tokenCount(usage.prompt_tokens) ?? 0
  return reasoning > completion || (total !== undefined && total >= prompt + apart) ? apart : completion
}

/**
 * Combines two reports of a stream. Counts are cumulative, so the later report wins. A zero does not replace an earlier
 * count, because some upstreams send zeros if they have nothing to report.
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
