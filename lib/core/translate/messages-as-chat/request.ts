import { hash } from 'node:crypto'
import { isJsonObject, type JsonObject, nonEmptyString } from '../../json/index.ts'
import { personOf } from '../../operations/index.ts'
import {
  alwaysRefused,
  becomes,
  type MemberRules,
  refused,
  refusedUnless,
  requireCounterparts,
} from '../member-rules.ts'
import {
  type AskedEffort,
  effortMember,
  hasKnownEfforts,
  isReasoningModel,
  isStrict,
  samplingOf,
  takesSampling,
} from '../openai-models.ts'
import { takesCacheControl, withoutCacheControl } from '../openrouter.ts'
import { effortOf } from '../reasoning.ts'
import { type LeaveOut, type RequestContext, refuse, Untranslatable } from '../translation.ts'
import { chatMessages } from './messages.ts'
import { toolMembers } from './tools.ts'

/** How the members of a message request are translated for an OpenAI-style line. */
export const MESSAGES_MEMBERS: MemberRules = {
  model: becomes('`model`'),
  messages: becomes('`messages`'),
  system: becomes('a message of the role `system`'),
  max_tokens: becomes('`max_tokens`; `max_completion_tokens` for OpenAI’s reasoning models; 0 is refused'),
  stream: becomes('`stream`'),
  temperature: becomes('`temperature`; dropped for OpenAI’s reasoning models, which take none'),
  top_p: becomes('`top_p`; dropped for OpenAI’s reasoning models, which take none'),
  stop_sequences: becomes('`stop`; more than four are refused, and any for a reasoning model'),
  tools: becomes(
    '`tools`, web search `web_search_options`, for models with `search`, `sonar` or `:online` in their name; others that Anthropic runs or defines are refused',
  ),
  tool_choice: becomes('`tool_choice` and `parallel_tool_calls`'),
  thinking: becomes('`reasoning_effort`'),
  output_config: becomes('`effort` as `reasoning_effort`, `format` as `response_format`'),
  output_format: becomes('`response_format`'),
  metadata: becomes('`user_id` as `user`, without the session of Claude Code, hashed beyond 64 characters'),
  service_tier: becomes(
    '`service_tier`: `standard_only` as `default`; others than that and `auto` are refused',
  ),
  top_k: refused,
  container: refusedUnless('empty', (value) => isJsonObject(value) && Object.keys(value).length === 0),
  inference_geo: alwaysRefused,
  // The next turn of a thread has only what is new, so that a thread left out would lose the conversation.
  thread: alwaysRefused,
  mcp_servers: refusedUnless('empty', (value) => Array.isArray(value) && value.length === 0),
}

const MAX_STOP_SEQUENCES = 4
const MAX_USER_LENGTH = 64

/**
 * Translates a message request into a chat completion request.
 *
 * @throws {Untranslatable} naming the member that has no counterpart.
 */
export function messagesRequestAsChat(given: JsonObject, context: RequestContext): JsonObject {
  const { upstreamModel, leaveOut = refuse } = context
  requireCounterparts(given, MESSAGES_MEMBERS, context)
  const json = takesCacheControl(upstreamModel) ? given : withoutCacheControl(given)
  const samples = takesSampling(upstreamModel)
  const tools = toolMembers(json, context)
  const user = userOf(json)
  return {
    model: json.model,
    messages: chatMessages(json, context),
    ...outputLimit(json, isReasoningModel(upstreamModel)),
    ...tools,
    ...responseFormatOf(json, leaveOut),
    ...effortMember(context, effortFor(json, upstreamModel), tools.tools !== undefined),
    ...(samples && samplingOf(json)),
    ...stopOf(json, samples, leaveOut),
    ...(user !== undefined && { user }),
    ...serviceTierOf(json, leaveOut),
    ...(json.stream === true && { stream: true }),
  }
}

/** Translates `max_tokens`. With 0 a request only fills Anthropic's cache, which has no counterpart. */
function outputLimit({ max_tokens: limit }: JsonObject, isReasoning: boolean): JsonObject {
  if (limit === 0) throw new Untranslatable('max_tokens')
  return isReasoning ? { max_completion_tokens: limit } : { max_tokens: limit }
}

/** Translates `stop_sequences`, of which reasoning models accept none. */
function stopOf({ stop_sequences: sequences }: JsonObject, samples: boolean, leaveOut: LeaveOut): JsonObject {
  if (!Array.isArray(sequences) || sequences.length === 0) return {}
  const most = samples ? MAX_STOP_SEQUENCES : 0
  if (sequences.length > most) leaveOut('stop_sequences')
  return samples ? { stop: sequences.slice(0, most) } : {}
}

/**
 * Returns the requested effort, or the one that matches the budget; undefined if the model shall decide itself. Models whose
 * efforts are not known may refuse `none`.
 */
function effortFor(
  { thinking, output_config: config, max_tokens: limit }: JsonObject,
  upstreamModel: string,
): AskedEffort | undefined {
  const { type, budget_tokens: budget } = isJsonObject(thinking) ? thinking : {}
  if (type === 'disabled')
    return hasKnownEfforts(upstreamModel) ? { effort: 'none', param: 'thinking' } : undefined
  const effort = isJsonObject(config) ? nonEmptyString(config.effort) : undefined
  if (effort !== undefined) return { effort, param: 'output_config.effort' }
  if (type !== 'enabled' || typeof budget !== 'number' || typeof limit !== 'number') return undefined
  return { effort: effortOf(budget, limit), param: 'thinking' }
}

/** Translates `service_tier`. */
function serviceTierOf({ service_tier: tier }: JsonObject, leaveOut: LeaveOut): JsonObject {
  if (typeof tier !== 'string') return {}
  if (tier === 'standard_only') return { service_tier: 'default' }
  if (tier === 'auto') return { service_tier: tier }
  leaveOut('service_tier')
  return {}
}

/** Returns the user id without a session; one that is too long for OpenAI is hashed. */
function userOf({ metadata }: JsonObject): string | undefined {
  const given = isJsonObject(metadata) ? nonEmptyString(metadata.user_id) : undefined
  const id = nonEmptyString(given && personOf(given))
  return id !== undefined && id.length > MAX_USER_LENGTH ? hash('sha256', id) : id
}

/** OpenAI demands a name for a schema; models do not see it. */
const NAME = 'answer'

/**
 * Translates Anthropic's output format, under its current or its earlier name, into `response_format`.
 * A format that is not a JSON schema has no counterpart.
 */
function responseFormatOf(
  { output_config: config, output_format: earlier }: JsonObject,
  leaveOut: LeaveOut,
): JsonObject {
  const [format, path] =
    isJsonObject(config) && config.format
      ? [config.format, 'output_config.format']
      : [earlier, 'output_format']
  if (format === undefined || format === null) return {}
  if (!isJsonObject(format) || format.type !== 'json_schema' || !isJsonObject(format.schema)) {
    leaveOut(path)
    return {}
  }
  const { schema } = format
  return {
    response_format: { type: 'json_schema', json_schema: { name: NAME, schema, strict: isStrict(schema) } },
  }
}
