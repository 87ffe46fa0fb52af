import { isJsonObject, type JsonObject, tokenCount } from '../../json/index.ts'
import type { ReportedUsage } from '../operation.ts'

/** Reads the `usage` of a response. `input_tokens` includes cached tokens, `output_tokens` includes reasoning. */
export function readResponseUsage(usage: unknown): ReportedUsage {
  if (!isJsonObject(usage)) return {}
  const input = isJsonObject(usage.input_tokens_details) ? usage.input_tokens_details : {}
  const output = isJsonObject(usage.output_tokens_details) ? usage.output_tokens_details : {}
  const reasoningTokens = tokenCount(output.reasoning_tokens)
  return {
    inputTokens: tokenCount(usage.input_tokens),
    cachedInputTokens: tokenCount(input.cached_tokens),
    cacheWriteTokens: tokenCount(input.cache_write_tokens),
    audioInputTokens: tokenCount(input.audio_tokens),
    outputTokens: outputOf(usage, reasoningTokens),
    audioOutputTokens: tokenCount(output.audio_tokens),
    reasoningTokens,
  }
}

/**
 * Returns the output tokens. If there are more reasoning tokens than output tokens, the upstream counts them
 * separately.
 */
function outputOf(usage: JsonObject, reasoning: number | undefined): number | undefined {
  const output = tokenCount(usage.output_tokens)
  if (output === undefined || reasoning === undefined) return output
  return reasoning > output ? output + reasoning : output
}
