import { requireCounterparts } from '../member-rules.ts'
import { isObject, textIn } from '../parts/json-object.ts'
import { isReasoningModel } from '../reasoning-models.ts'
import type { JsonObject, RequestContext } from '../translation.ts'
import { inputMessages } from './input.ts'
import { RESPONSES_MEMBERS } from './members.ts'
import { toolMembers } from './tools.ts'

/**
 * A response request as a chat completion request.
 *
 * @throws {Untranslatable} naming the member without a counterpart.
 */
export function responsesRequestAsChat(json: JsonObject, { upstreamModel }: RequestContext): JsonObject {
  requireCounterparts(json, RESPONSES_MEMBERS)
  const reasons = isReasoningModel(upstreamModel)
  const { max_output_tokens: limit, reasoning } = json
  const instructions = textIn(json.instructions)
  const effort = isObject(reasoning) ? textIn(reasoning.effort) : undefined
  const user = textIn(json.user) ?? textIn(json.safety_identifier)
  return {
    model: json.model,
    messages: [
      ...(instructions === undefined ? [] : [{ role: 'system', content: instructions }]),
      ...inputMessages(json.input),
    ],
    ...(typeof limit === 'number' && { [reasons ? 'max_completion_tokens' : 'max_tokens']: limit }),
    ...toolMembers(json),
    ...formatOf(json),
    ...(effort !== undefined && { reasoning_effort: effort }),
    ...(!reasons && samplingOf(json)),
    ...(user !== undefined && { user }),
    ...(typeof json.service_tier === 'string' && { service_tier: json.service_tier }),
    ...(json.stream === true && { stream: true }),
  }
}

function samplingOf({ temperature, top_p: topP }: JsonObject): JsonObject {
  return {
    ...(typeof temperature === 'number' && { temperature }),
    ...(typeof topP === 'number' && { top_p: topP }),
  }
}

function formatOf({ text }: JsonObject): JsonObject {
  const format = isObject(text) ? text.format : undefined
  if (!isObject(format) || format.type === 'text') return {}
  const { type, ...schema } = format
  return { response_format: type === 'json_schema' ? { type, json_schema: schema } : format }
}
