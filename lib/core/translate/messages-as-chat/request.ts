import { hash } from 'node:crypto'
import { commonEffort, effortOf } from '../effort.ts'
import { requireCounterparts } from '../member-rules.ts'
import { isObject, textIn } from '../parts/json-object.ts'
import { isReasoningModel } from '../reasoning-models.ts'
import { type JsonObject, type RequestContext, Untranslatable } from '../translation.ts'
import { MESSAGES_MEMBERS } from './members.ts'
import { chatMessages } from './messages.ts'
import { responseFormatOf } from './response-format.ts'
import { toolMembers } from './tools.ts'

const MOST_STOPS = 4
const LONGEST_USER = 64

/**
 * A message request as a chat completion request.
 *
 * @throws {Untranslatable} naming the member without a counterpart.
 */
export function messagesRequestAsChat(json: JsonObject, { upstreamModel }: RequestContext): JsonObject {
  requireCounterparts(json, MESSAGES_MEMBERS)
  const reasons = isReasoningModel(upstreamModel)
  const effort = effortFor(json)
  const user = userOf(json)
  return {
    model: json.model,
    messages: chatMessages(json),
    ...outputLimit(json, reasons),
    ...toolMembers(json),
    ...responseFormatOf(json),
    ...(effort && { reasoning_effort: effort }),
    ...(!reasons && samplingOf(json)),
    ...stopOf(json),
    ...(user !== undefined && { user }),
    ...(typeof json.service_tier === 'string' && {
      service_tier: json.service_tier === 'standard_only' ? 'default' : 'auto',
    }),
    ...(json.stream === true && { stream: true }),
  }
}

/** None asked for only fills the upstream's cache. */
function outputLimit({ max_tokens: limit }: JsonObject, reasons: boolean): JsonObject {
  if (limit === 0) throw new Untranslatable('max_tokens')
  return reasons ? { max_completion_tokens: limit } : { max_tokens: limit }
}

function samplingOf({ temperature, top_p: topP }: JsonObject): JsonObject {
  return {
    ...(typeof temperature === 'number' && { temperature }),
    ...(typeof topP === 'number' && { top_p: topP }),
  }
}

function stopOf({ stop_sequences: sequences }: JsonObject): JsonObject {
  if (!Array.isArray(sequences) || sequences.length === 0) return {}
  if (sequences.length > MOST_STOPS) throw new Untranslatable('stop_sequences')
  return { stop: sequences }
}

/** The effort asked for, or what a budget amounts to; a model that decides itself is left to. */
function effortFor({ thinking, output_config: config, max_tokens: limit }: JsonObject): string | undefined {
  if (isObject(thinking) && thinking.type === 'disabled') return undefined
  const asked = isObject(config) ? commonEffort(config.effort) : undefined
  if (asked !== undefined || !isObject(thinking)) return asked
  const { type, budget_tokens: budget } = thinking
  if (type !== 'enabled' || typeof budget !== 'number' || typeof limit !== 'number') return undefined
  return effortOf(budget, limit)
}

/** OpenAI's word is shorter than what some callers of Anthropic write here. */
function userOf({ metadata }: JsonObject): string | undefined {
  const id = isObject(metadata) ? textIn(metadata.user_id) : undefined
  return id !== undefined && id.length > LONGEST_USER ? hash('sha256', id) : id
}
