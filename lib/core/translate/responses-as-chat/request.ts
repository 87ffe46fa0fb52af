import { isJsonObject, type JsonObject, nonEmptyString } from '../../json/index.ts'
import {
  alwaysRefused,
  becomes,
  type MemberRules,
  refusedUnless,
  requireCounterparts,
} from '../member-rules.ts'
import {
  effortMember,
  isReasoningModel,
  samplingOf,
  takesSampling,
  takesVerbosity,
} from '../openai-models.ts'
import { type RequestContext, refuse, Untranslatable } from '../translation.ts'
import { inputMessages } from './input.ts'
import { toolMembers } from './tools.ts'

/** How the members of a response request are translated for a line that has chat completions. */
export const RESPONSES_MEMBERS: MemberRules = {
  model: becomes('`model`'),
  input: becomes('`messages`'),
  instructions: becomes('a message of the role `system`, before all others'),
  max_output_tokens: becomes('`max_tokens`; `max_completion_tokens` for OpenAI’s reasoning models'),
  stream: becomes('`stream`'),
  temperature: becomes('`temperature`; dropped for OpenAI’s reasoning models, which take none'),
  top_p: becomes('`top_p`; dropped for OpenAI’s reasoning models, which take none'),
  tools: becomes(
    '`tools`, web search `web_search_options`, for models with `search`, `sonar` or `:online` in their name; others that OpenAI runs or defines are refused',
  ),
  tool_choice: becomes('`tool_choice`'),
  parallel_tool_calls: becomes('`parallel_tool_calls`, where there are tools'),
  text: becomes(
    '`format` as `response_format`; `verbosity` the same from `gpt-5` on, else dropped and reported',
  ),
  reasoning: becomes('`effort` as `reasoning_effort`; with `summary`, reasoning comes as one'),
  user: becomes('`user`'),
  safety_identifier: becomes('`user`, where there is none'),
  service_tier: becomes('`service_tier`'),
  top_logprobs: refusedUnless('0', (value) => value === 0),
  previous_response_id: alwaysRefused,
  conversation: alwaysRefused,
  prompt: alwaysRefused,
}

/**
 * Translates a response request into a chat completion request.
 *
 * @throws {Untranslatable} naming the member that has no counterpart.
 */
export function responsesRequestAsChat(json: JsonObject, context: RequestContext): JsonObject {
  const { upstreamModel, leaveOut = refuse } = context
  requireCounterparts(json, RESPONSES_MEMBERS, context)
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
      ...inputMessages(json.input, context),
    ],
    ...(typeof limit === 'number' && { [isReasoning ? 'max_completion_tokens' : 'max_tokens']: limit }),
    ...tools,
    ...formatOf(json),
    ...verbosityOf(json, context),
    ...effortMember(
      context,
      effort === undefined ? undefined : { effort, param: 'reasoning.effort' },
      tools.tools !== undefined,
    ),
    ...(takesSampling(upstreamModel) && samplingOf(json)),
    ...(user !== undefined && { user }),
    ...(typeof json.service_tier === 'string' && { service_tier: json.service_tier }),
    ...(json.stream === true && { stream: true }),
  }
}

/** Translates `verbosity`, which is a hint only. */
function verbosityOf({ text }: JsonObject, { upstreamModel, report }: RequestContext): JsonObject {
  const verbosity = isJsonObject(text) ? nonEmptyString(text.verbosity) : undefined
  if (verbosity === undefined) return {}
  if (takesVerbosity(upstreamModel)) return { verbosity }
  if (verbosity !== 'medium') report?.('text.verbosity')
  return {}
}

/** Returns the format of the answer as that of a chat. */
export function formatOf({ text }: JsonObject): JsonObject {
  const format = isJsonObject(text) ? text.format : undefined
  if (!isJsonObject(format) || format.type === 'text') return {}
  const { type, ...given } = format
  const schema = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null))
  return { response_format: type === 'json_schema' ? { type, json_schema: schema } : format }
}
