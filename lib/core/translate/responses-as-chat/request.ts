import { isJsonObject, type JsonObject, nonEmptyString } from '../../json/index.ts'
import { effortMember, isReasoningModel, takesSampling } from '../requests/reasoning-models.ts'
import { requireCounterparts } from '../requests/require-counterparts.ts'
import { samplingOf } from '../requests/sampling.ts'
import { type RequestContext, refuse, Untranslatable } from '../translation.ts'
import { inputMessages } from './input.ts'
import { RESPONSES_MEMBERS } from './members.ts'
import { toolMembers } from './tools.ts'

/**
 * Translates a response request into a chat completion request.
 *
 * @throws {Untranslatable} naming the member that has no counterpart.
 */
export function responsesRequestAsChat(
  json: JsonObject,
  { upstreamModel, leaveOut = refuse }: RequestContext,
): JsonObject {
  requireCounterparts(json, RESPONSES_MEMBERS, leaveOut)
  if (Array.isArray(json.instructions)) throw new Untranslatable('instructions')
  const isReasoning = isReasoningModel(upstreamModel)
  const { max_output_tokens: limit, reasoning } = json
  const instructions = nonEmptyString(json.instructions)
  const effort = isJsonObject(reasoning) ? nonEmptyString(reasoning.effort) : undefined
  const tools = toolMembers(json, leaveOut)
  const user = nonEmptyString(json.user) ?? nonEmptyString(json.safety_identifier)
  return {
    model: json.model,
    messages: [
      ...(instructions === undefined ? [] : [{ role: 'system', content: instructions }]),
      ...inputMessages(json.input, leaveOut),
    ],
    ...(typeof limit === 'number' && { [isReasoning ? 'max_completion_tokens' : 'max_tokens']: limit }),
    ...tools,
    ...formatOf(json),
    ...effortMember(upstreamModel, effort, tools.tools !== undefined),
    ...(takesSampling(upstreamModel) && samplingOf(json)),
    ...(user !== undefined && { user }),
    ...(typeof json.service_tier === 'string' && { service_tier: json.service_tier }),
    ...(json.stream === true && { stream: true }),
  }
}

/** Returns the format of the answer as that of a chat. */
export function formatOf({ text }: JsonObject): JsonObject {
  const format = isJsonObject(text) ? text.format : undefined
  if (!isJsonObject(format) || format.type === 'text') return {}
  const { type, ...schema } = format
  return { response_format: type === 'json_schema' ? { type, json_schema: schema } : format }
}
