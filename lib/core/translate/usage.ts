import type { JsonObject, TranslatedUsage } from './translation.ts'

/** As OpenAI counts: `prompt_tokens` include what was read from and written to a cache. Undefined without any count. */
export function chatUsage(usage: TranslatedUsage): JsonObject | undefined {
  const { inputTokens, outputTokens, cachedInputTokens, cacheWriteTokens, reasoningTokens } = usage
  if (inputTokens === undefined && outputTokens === undefined) return undefined
  return {
    prompt_tokens: inputTokens ?? 0,
    completion_tokens: outputTokens ?? 0,
    total_tokens: (inputTokens ?? 0) + (outputTokens ?? 0),
    prompt_tokens_details: {
      cached_tokens: cachedInputTokens ?? 0,
      ...(cacheWriteTokens !== undefined && { cache_write_tokens: cacheWriteTokens }),
    },
    ...(reasoningTokens !== undefined && {
      completion_tokens_details: { reasoning_tokens: reasoningTokens },
    }),
  }
}

/** As Anthropic counts: `input_tokens` leave out what was read from and written to a cache. */
export function messagesUsage(usage: TranslatedUsage): JsonObject {
  const { inputTokens = 0, outputTokens = 0, cachedInputTokens = 0, cacheWriteTokens = 0 } = usage
  // A part is never more than the whole.
  const cached = Math.min(cachedInputTokens, inputTokens)
  const written = Math.min(cacheWriteTokens, inputTokens - cached)
  return {
    input_tokens: inputTokens - cached - written,
    cache_creation_input_tokens: written,
    cache_read_input_tokens: cached,
    output_tokens: outputTokens,
    ...(usage.reasoningTokens !== undefined && {
      output_tokens_details: { thinking_tokens: usage.reasoningTokens },
    }),
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

function countIn(usage: unknown, details: string, count: string): number | undefined {
  const tokens = memberOf(memberOf(usage, details), count)
  return typeof tokens === 'number' && Number.isInteger(tokens) && tokens >= 0 ? tokens : undefined
}

function memberOf(value: unknown, member: string): unknown {
  return typeof value === 'object' && value !== null ? (value as JsonObject)[member] : undefined
}
