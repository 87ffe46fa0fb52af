import { requireCounterparts } from '../member-rules.ts'
import { textIn } from '../parts/json-object.ts'
import type { JsonObject, RequestContext } from '../translation.ts'
import { CHAT_MEMBERS } from './members.ts'
import { formatOf, samplingMembers, stopMembers } from './sampling.ts'
import { thinkingOf } from './thinking.ts'
import { toolMembers } from './tools.ts'
import { conversationOf } from './turns.ts'

/**
 * A chat completion request as a message request.
 *
 * @throws {Untranslatable} naming the member without a counterpart.
 */
export function chatRequestAsMessages(json: JsonObject, context: RequestContext): JsonObject {
  requireCounterparts(json, CHAT_MEMBERS)
  const maxTokens = maxTokensOf(json) ?? context.defaultMaxTokens
  const { system, turns } = conversationOf(json.messages)
  const tools = toolMembers(json)
  const thinks = thinkingOf(json.reasoning_effort, {
    upstreamModel: context.upstreamModel,
    maxTokens,
    turns,
    toolChoice: tools.tool_choice,
  })
  const outputConfig = outputConfigOf(formatOf(json), thinks?.effort)
  const userId = textIn(json.user) ?? textIn(json.safety_identifier)
  return {
    model: json.model,
    max_tokens: maxTokens,
    ...(system.length > 0 && { system }),
    messages: turns,
    ...tools,
    ...(thinks && { thinking: thinks.thinking }),
    ...(outputConfig && { output_config: outputConfig }),
    ...samplingMembers(json, thinks !== undefined),
    ...stopMembers(json),
    ...(userId !== undefined && { metadata: { user_id: userId } }),
    ...serviceTierOf(json),
    ...(json.cache_control ? { cache_control: json.cache_control } : {}),
    ...(json.stream === true && { stream: true }),
  }
}

function maxTokensOf({ max_completion_tokens: completion, max_tokens: old }: JsonObject): number | undefined {
  if (typeof completion === 'number') return completion
  return typeof old === 'number' ? old : undefined
}

function outputConfigOf(format: JsonObject | undefined, effort: string | undefined): JsonObject | undefined {
  return format || effort ? { ...(format && { format }), ...(effort && { effort }) } : undefined
}

/** Anthropic knows its priority capacity, to be used where there is some, and the rest. */
function serviceTierOf({ service_tier: tier }: JsonObject): JsonObject {
  if (typeof tier !== 'string') return {}
  return { service_tier: tier === 'default' || tier === 'flex' ? 'standard_only' : 'auto' }
}
