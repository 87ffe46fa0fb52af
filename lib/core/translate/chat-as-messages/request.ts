import { hash } from 'node:crypto'
import { isJsonObject, type JsonObject, nonEmptyString } from '../../json/index.ts'
import {
  becomes,
  dropped,
  type MemberRules,
  refused,
  refusedUnless,
  requireCounterparts,
} from '../member-rules.ts'
import { askedEffort, maxTokensOf } from '../reasoning.ts'
import { type LeaveOut, type RequestContext, refuse } from '../translation.ts'
import { takesPrefill, takesSampling } from './claude-models.ts'
import { conversationOf, endedByUser } from './conversation.ts'
import { messageFormatOf } from './response-format.ts'
import { thinkingOf } from './thinking.ts'
import { askedTools, toolMembers } from './tools.ts'

const ZERO = refusedUnless('0', (value) => value === 0)

/** How the members of a chat completion request are translated for an Anthropic-style line. */
export const CHAT_MEMBERS: MemberRules = {
  model: becomes('`model`'),
  messages: becomes('`messages` and `system`'),
  system: becomes('`system`, before those of `messages`'),
  max_completion_tokens: becomes('`max_tokens`, before the member of that name'),
  max_tokens: becomes('`max_tokens`; without either the model’s `maxOutputTokens`, or 4096'),
  stream: becomes('`stream`'),
  temperature: becomes('`temperature`, at most 1; dropped with thinking, which allows none'),
  top_p: becomes('`top_p`, without `temperature` only; dropped below 0.95 with thinking'),
  top_k: becomes('`top_k`; dropped with thinking'),
  stop: becomes('`stop_sequences`; a blank one is refused'),
  tools: becomes('`tools`'),
  tool_choice: becomes('`tool_choice`'),
  web_search_options: becomes('the tool `web_search`'),
  parallel_tool_calls: becomes('`tool_choice.disable_parallel_tool_use`'),
  reasoning_effort: becomes('`thinking`'),
  reasoning: becomes('`thinking`, where there is no `reasoning_effort`'),
  thinking: becomes('`thinking`, where there is neither of these'),
  response_format: becomes(
    '`output_config.format`; `json_object` without a `schema`, and schemas that refer to themselves, an instruction in `system`',
  ),
  user: becomes('`metadata.user_id`; an email address or a phone number is hashed'),
  safety_identifier: becomes('as `user`, where there is none'),
  service_tier: becomes(
    '`service_tier`: `default` as `standard_only`, `priority` as `auto`; others, such as `flex`, are refused',
  ),
  cache_control: becomes('`cache_control`'),
  usage: dropped('an answer has it in any case'),
  store: dropped('for the upstream’s own records'),
  seed: dropped('has no guarantee'),
  random_seed: dropped('Mistral’s name of it'),
  prediction: dropped('affects the speed only'),
  n: refusedUnless('1', (value) => value === 1),
  frequency_penalty: ZERO,
  presence_penalty: ZERO,
  logit_bias: refusedUnless('empty', (value) => isJsonObject(value) && Object.keys(value).length === 0),
  logprobs: refusedUnless('false', (value) => value === false),
  // Mistral's clients send it.
  safe_prompt: refusedUnless('false', (value) => value === false),
  top_logprobs: ZERO,
  modalities: refusedUnless('`["text"]`', (value) => Array.isArray(value) && value.join() === 'text'),
  audio: refused,
  moderation: refused,
  functions: refusedUnless('empty', (value) => Array.isArray(value) && value.length === 0),
  function_call: refusedUnless('`none` or `auto`', (value) => value === 'none' || value === 'auto'),
}

/**
 * Translates a chat completion request into a message request.
 *
 * @throws {Untranslatable} naming the member that has no counterpart.
 */
export function chatRequestAsMessages(json: JsonObject, context: RequestContext): JsonObject {
  const { leaveOut = refuse } = context
  requireCounterparts(json, CHAT_MEMBERS, context)
  const maxTokens = maxTokensOf(json) ?? context.defaultMaxTokens
  const { system, turns: given } = conversationOf(json, leaveOut)
  const turns = takesPrefill(context.upstreamModel) ? given : endedByUser(given)
  const { tools, instruction: toCall } = askedTools(toolMembers(json, leaveOut), context.upstreamModel)
  const effort = askedEffort(json, context.defaultMaxTokens)
  const thinking =
    effort && thinkingOf(effort, { ...context, maxTokens, turns, toolChoice: tools.tool_choice })
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
    ...serviceTierOf(json, leaveOut),
    ...(json.cache_control ? { cache_control: json.cache_control } : {}),
    ...(json.stream === true && { stream: true }),
  }
}

/** The longest user id that Anthropic accepts. */
const MAX_USER_LENGTH = 256

/** Email addresses and phone numbers. Anthropic refuses a user id that identifies a person. */
const PERSONAL = /@|^\+?[\d\s().-]{7,}$/

/** Returns the id of the caller's user, hashed if Anthropic refuses it as it is. */
function userIdOf({ user, safety_identifier: identifier }: JsonObject): string | undefined {
  const id = nonEmptyString(user) ?? nonEmptyString(identifier)
  return id !== undefined && (id.length > MAX_USER_LENGTH || PERSONAL.test(id)) ? hash('sha256', id) : id
}

function outputConfigOf(format: JsonObject | undefined, effort: string | undefined): JsonObject | undefined {
  return format || effort ? { ...(format && { format }), ...(effort && { effort }) } : undefined
}

/** OpenAI's tiers by Anthropic's, which are standard capacity only, or priority capacity if available. */
const TIERS: Readonly<Record<string, string>> = {
  default: 'standard_only',
  standard_only: 'standard_only',
  auto: 'auto',
  priority: 'auto',
}

/** Translates `service_tier`. Tiers at other prices have no counterpart. */
function serviceTierOf({ service_tier: tier }: JsonObject, leaveOut: LeaveOut): JsonObject {
  if (typeof tier !== 'string') return {}
  if (Object.hasOwn(TIERS, tier)) return { service_tier: TIERS[tier] }
  leaveOut('service_tier')
  return {}
}

/** The smallest `top_p` that Anthropic accepts together with thinking. */
const MIN_TOP_P_WHILE_THINKING = 0.95

/**
 * Translates the sampling members into Anthropic's range. Its newer models accept only one of `temperature` and `top_p`,
 * and with thinking only a high `top_p`.
 */
function samplingMembers(
  { temperature, top_p: topP, top_k: topK }: JsonObject,
  hasThinking: boolean,
): JsonObject {
  if (hasThinking) return typeof topP === 'number' && topP >= MIN_TOP_P_WHILE_THINKING ? { top_p: topP } : {}
  const bounded = typeof temperature === 'number' ? { temperature: Math.min(1, temperature) } : undefined
  return {
    ...(bounded ?? (typeof topP === 'number' && { top_p: topP })),
    ...(typeof topK === 'number' && { top_k: topK }),
  }
}

/** Translates `stop`. A blank sequence has no counterpart: Anthropic refuses it. */
function stopMembers({ stop }: JsonObject, leaveOut: LeaveOut): JsonObject {
  if (stop === undefined || stop === null) return {}
  const all: unknown[] = Array.isArray(stop) ? stop : [stop]
  const sequences = all.filter((sequence) => typeof sequence === 'string' && sequence.trim() !== '')
  if (sequences.length < all.length) leaveOut('stop')
  return sequences.length > 0 ? { stop_sequences: sequences } : {}
}
