import type { ReportedUsage } from '../operation.ts'
import { tokenCount } from '../tokens/token-count.ts'

/** Reads the `usage` of a response. `input_tokens` includes the cached ones, `output_tokens` those of reasoning. */
export function readResponseUsage(usage: unknown): ReportedUsage {
  if (!isObject(usage)) return {}
  const input = isObject(usage.input_tokens_details) ? usage.input_tokens_details : {}
  return {
    inputTokens: tokenCount(usage.input_tokens),
    cachedInputTokens: tokenCount(input.cached_tokens),
    cacheWriteTokens: tokenCount(input.cache_write_tokens),
    outputTokens: outputOf(usage),
  }
}

/** Reasoning is a part of the output: an upstream whose part is greater than the whole counts it beside it. */
function outputOf(usage: Readonly<Record<string, unknown>>): number | undefined {
  const output = tokenCount(usage.output_tokens)
  const details = isObject(usage.output_tokens_details) ? usage.output_tokens_details : {}
  const reasoning = tokenCount(details.reasoning_tokens)
  if (output === undefined || reasoning === undefined) return output
  return reasoning > output ? output + reasoning : output
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}
