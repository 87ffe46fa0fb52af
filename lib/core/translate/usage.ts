import { isJsonObject, type JsonObject } from '../json/index.ts'
import type { TranslatedUsage } from './translation.ts'

/**
 * Returns usage as OpenAI counts it: `prompt_tokens` include tokens that were read from or written to a cache. Undefined
 * if there are no counts.
 */
export function chatUsage(usage: TranslatedUsage): JsonObject | undefined {
  const { inputTokens, outputTokens, cachedInputTokens, cacheWriteTokens, reasoningTokens } = usage
  if (inputTokens === undefined && outputTokens === undefined) return undefined
  const details = {
    ...(cachedInputTokens !== undefined && { cached_tokens: cachedInputTokens }),
    ...(cacheWriteTokens !== undefined && { cache_write_tokens: cacheWriteTokens }),
  }
  return {
    ...(inputTokens !== undefined && { prompt_tokens: inputTokens }),
    ...(outputTokens !== undefined && { completion_tokens: outputTokens }),
    total_tokens: (inputTokens ?? 0) + (outputTokens ?? 0),
    ...(Object.keys(details).length > 0 && { prompt_tokens_details: details }),
    ...(reasoningTokens !== undefined && {
      completion_tokens_details: { reasoning_tokens: reasoningTokens },
    }),
  }
}

/**
 * Returns usage as Anthropic counts it: `input_tokens` exclude tokens that were read from or written to a cache. A count that
 * is not known is null there.
 */
export function messagesUsage(usage: TranslatedUsage): JsonObject {
  const { inputTokens = 0, outputTokens = 0, cachedInputTokens, cacheWriteTokens } = usage
  // The parts must not add up to more than the whole.
  const cached = Math.min(cachedInputTokens ?? 0, inputTokens)
  const written = Math.min(cacheWriteTokens ?? 0, inputTokens - cached)
  return {
    input_tokens: inputTokens - cached - written,
    cache_creation_input_tokens: cacheWriteTokens === undefined ? null : written,
    cache_read_input_tokens: cachedInputTokens === undefined ? null : cached,
    output_tokens: outputTokens,
    ...(usage.reasoningTokens !== undefined && {
      output_tokens_details: { thinking_tokens: usage.reasoningTokens },
    }),
    ...(usage.webSearches && { server_tool_use: { web_search_requests: usage.webSearches } }),
  }
}

/** Reads OpenAI-style `completion_tokens_details.reasoning_tokens`. */
export function chatReasoningTokens(usage: unknown): number | undefined {
  return countIn(usage, 'completion_tokens_details', 'reasoning_tokens')
}

/** Reads Anthropic-style `output_tokens_details.thinking_tokens`. */
export function messagesReasoningTokens(usage: unknown): number | undefined {
  return countIn(usage, 'output_tokens_details', 'thinking_tokens')
}

function countIn(usage: unknown, detailsMember: string, countMember: string): number | undefined {
  const details = isJsonObject(usage) ? usage[detailsMember] : undefined
  const tokens = isJsonObject(details) ? details[countMember] : undefined
  return typeof tokens === 'number' && Number.isInteger(tokens) && tokens >= 0 ? tokens : undefined
}
