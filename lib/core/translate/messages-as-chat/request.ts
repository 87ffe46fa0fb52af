import { hash } from 'node:crypto'
import { isJsonObject, type JsonObject, nonEmptyString } from '../../json/index.ts'
import { personOf } from '../../operations/index.ts'
import { commonEffort, effortOf } from '../requests/reasoning-effort.ts'
import { effortMember, isReasoningModel, takesSampling } from '../requests/reasoning-models.ts'
import { requireCounterparts } from '../requests/require-counterparts.ts'
import { samplingOf } from '../requests/sampling.ts'
import { type LeaveOut, type RequestContext, refuse, Untranslatable } from '../translation.ts'
import { MESSAGES_MEMBERS } from './members.ts'
import { chatMessages } from './messages.ts'
import { responseFormatOf } from './response-format.ts'
import { toolMembers } from './tools.ts'

const MAX_STOP_SEQUENCES = 4
const MAX_USER_LENGTH = 64

/**
 * Translates a message request into a chat completion request.
 *
 * @throws {Untranslatable} naming the member that has no counterpart.
 */
export function messagesRequestAsChat(json: JsonObject, context: RequestContext): JsonObject {
  const { upstreamModel, leaveOut = refuse } = context
  requireCounterparts(json, MESSAGES_MEMBERS, leaveOut)
  const samples = takesSampling(upstreamModel)
  const tools = toolMembers(json, context)
  const user = userOf(json)
  return {
    model: json.model,
    messages: chatMessages(json, leaveOut),
    ...outputLimit(json, isReasoningModel(upstreamModel)),
    ...tools,
    ...responseFormatOf(json, leaveOut),
    ...effortMember(upstreamModel, effortFor(json), tools.tools !== undefined),
    ...(samples && samplingOf(json)),
    ...stopOf(json, samples, leaveOut),
    ...(user !== undefined && { user }),
    ...(typeof json.service_tier === 'string' && {
      service_tier: json.service_tier === 'standard_only' ? 'default' : 'auto',
    }),
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

/** Returns the requested effort, or the one that matches the budget; undefined if the model shall decide itself. */
function effortFor({ thinking, output_config: config, max_tokens: limit }: JsonObject): string | undefined {
  if (isJsonObject(thinking) && thinking.type === 'disabled') return undefined
  const effort = isJsonObject(config) ? commonEffort(config.effort) : undefined
  if (effort !== undefined || !isJsonObject(thinking)) return effort
  const { type, budget_tokens: budget } = thinking
  if (type !== 'enabled' || typeof budget !== 'number' || typeof limit !== 'number') return undefined
  return effortOf(budget, limit)
}

/** Returns the user id without a session; one that is too long for OpenAI is hashed. */
function userOf({ metadata }: JsonObject): string | undefined {
  const given = isJsonObject(metadata) ? nonEmptyString(metadata.user_id) : undefined
  const id = nonEmptyString(given && personOf(given))
  return id !== undefined && id.length > MAX_USER_LENGTH ? hash('sha256', id) : id
}
