import { serviceTierOf } from '../../catalog/service-tier.ts'
import { isJsonObject, type JsonObject, tokenCount } from '../../json/index.ts'
import type { ReportedUsage } from '../operation.ts'

/** The members of a response with counts. */
interface ResponseCounts {
  readonly usage?: unknown
  readonly tool_usage?: unknown
  readonly service_tier?: unknown
}

/**
 * Reads the usage of a response. `input_tokens` includes cached tokens, `output_tokens` includes reasoning. Neither
 * includes the images that a tool of OpenAI's has made: these are counted in `tool_usage`, as are searches.
 *
 * @param searches the web searches among its items.
 */
export function readResponseUsage(
  { usage, tool_usage: ofTools, service_tier: tier }: ResponseCounts,
  searches: number,
): ReportedUsage {
  const tools = isJsonObject(ofTools) ? ofTools : {}
  const searched = isJsonObject(tools.web_search) ? tools.web_search : {}
  const webSearches = tokenCount(searched.num_requests) ?? searches
  const serviceTier = serviceTierOf(tier)
  if (!isJsonObject(usage)) return { webSearches, ...(serviceTier !== undefined && { serviceTier }) }
  const made = isJsonObject(tools.image_gen) ? tools.image_gen : {}
  const input = isJsonObject(usage.input_tokens_details) ? usage.input_tokens_details : {}
  const output = isJsonObject(usage.output_tokens_details) ? usage.output_tokens_details : {}
  const reasoningTokens = tokenCount(output.reasoning_tokens)
  return {
    inputTokens: sumOf(tokenCount(usage.input_tokens), made.input_tokens),
    cachedInputTokens: tokenCount(input.cached_tokens),
    cacheWriteTokens: tokenCount(input.cache_write_tokens),
    audioInputTokens: tokenCount(input.audio_tokens),
    outputTokens: sumOf(outputOf(usage, reasoningTokens), made.output_tokens),
    audioOutputTokens: tokenCount(output.audio_tokens),
    reasoningTokens,
    webSearches,
    ...(serviceTier && { serviceTier }),
  }
}

function sumOf(count: number | undefined, added: unknown): number | undefined {
  return count === undefined ? count : count + (tokenCount(added) ?? 0)
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
