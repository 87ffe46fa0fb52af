import { hash } from 'node:crypto'
import { type JsonObject, nonEmptyString } from '../../json/index.ts'
import { askedReasoning } from '../../operations/chat/asked-reasoning.ts'
import { effortOf } from '../requests/reasoning-effort.ts'
import { requireCounterparts } from '../requests/require-counterparts.ts'
import { type RequestContext, refuse } from '../translation.ts'
import { askedTools } from './asked-tool.ts'
import { takesPrefill, takesSampling } from './claude-models.ts'
import { CHAT_MEMBERS } from './members.ts'
import { messageFormatOf } from './prompted-format.ts'
import { samplingMembers, stopMembers } from './sampling.ts'
import { thinkingOf } from './thinking.ts'
import { toolMembers } from './tools.ts'
import { conversationOf, endedByUser } from './turns.ts'

/**
 * Translates a chat completion request into a message request.
 *
 * @throws {Untranslatable} naming the member that has no counterpart.
 */
export function chatRequestAsMessages(json: JsonObject, context: RequestContext): JsonObject {
  const { leaveOut = refuse } = context
  requireCounterparts(json, CHAT_MEMBERS, leaveOut)
  const maxTokens = maxTokensOf(json) ?? context.defaultMaxTokens
  const { system, turns: given } = conversationOf(json, leaveOut)
  const turns = takesPrefill(context.upstreamModel) ? given : endedByUser(given)
  const { tools, instruction: toCall } = askedTools(toolMembers(json, leaveOut), context.upstreamModel)
  const thinking = thinkingOf(askedEffort(json, maxTokens), {
    upstreamModel: context.upstreamModel,
    maxTokens,
    turns,
    toolChoice: tools.tool_choice,
  })
  const asked = messageFormatOf(json)
  if (!asked) leaveOut('response_format')
  const { format, instruction } = asked ?? {}
  const instructions = [...system]
  for (const text of [instruction, toCall]) if (text !== undefined) instructions.push({ type: 'text', text })
  const outputConfig = outputConfigOf(format, thinking?.effort)
  const userId = userIdOf(json)
  return {
    model: json.model,
    max_tokens: maxTokens,
    ...(instructions.length > 0 && { system: instructions }),
    messages: turns,
    ...tools,
    ...(thinking?.thinking && { thinking: thinking.thinking }),
    ...(outputConfig && { output_config: outputConfig }),
    ...(takesSampling(context.upstreamModel) && samplingMembers(json, thinking !== undefined)),
    ...stopMembers(json, leaveOut),
    ...(userId !== undefined && { metadata: { user_id: userId } }),
    ...serviceTierOf(json),
    ...(json.cache_control ? { cache_control: json.cache_control } : {}),
    ...(json.stream === true && { stream: true }),
  }
}

/** The longest user id that Anthropic accepts. */
const MAX_USER_LENGTH = 256

/** What tells who a person is, which Anthropic refuses as a user id: email addresses and phone numbers. */
const PERSONAL = /@|^\+?[\d\s().-]{7,}$/

/** Returns the id of the caller's user, hashed if Anthropic refuses it as it is. */
function userIdOf({ user, safety_identifier: identifier }: JsonObject): string | undefined {
  const id = nonEmptyString(user) ?? nonEmptyString(identifier)
  return id !== undefined && (id.length > MAX_USER_LENGTH || PERSONAL.test(id)) ? hash('sha256', id) : id
}

function maxTokensOf({ max_completion_tokens: completion, max_tokens: old }: JsonObject): number | undefined {
  if (typeof completion === 'number') return completion
  return typeof old === 'number' ? old : undefined
}

/** Returns the effort that a chat asks for. A budget counts as the effort that matches it. */
function askedEffort(json: JsonObject, maxTokens: number): unknown {
  const asked = askedReasoning(json)
  if (!asked || asked.effort !== undefined) return asked?.effort
  return typeof asked.budget === 'number' ? effortOf(asked.budget, maxTokens) : 'medium'
}

function outputConfigOf(format: JsonObject | undefined, effort: string | undefined): JsonObject | undefined {
  return format || effort ? { ...(format && { format }), ...(effort && { effort }) } : undefined
}

/** Translates `service_tier`. Anthropic has two: standard capacity only, or priority capacity if available. */
function serviceTierOf({ service_tier: tier }: JsonObject): JsonObject {
  if (typeof tier !== 'string') return {}
  return { service_tier: tier === 'default' || tier === 'flex' ? 'standard_only' : 'auto' }
}
