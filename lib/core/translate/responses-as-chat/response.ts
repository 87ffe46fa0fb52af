import { isJsonObject, type JsonObject, nonEmptyString, objectsIn } from '../../json/index.ts'
import { isModerated } from '../../operations/index.ts'
import type { AnswerContext, TranslatedUsage } from '../translation.ts'
import type { EndStatus } from './output-items.ts'

/** The members of a request that its response repeats, with their values for a request that leaves them out. */
const REPEATED: Readonly<Record<string, unknown>> = {
  instructions: null,
  max_output_tokens: null,
  max_tool_calls: null,
  metadata: {},
  parallel_tool_calls: true,
  reasoning: { effort: null, summary: null },
  temperature: 1,
  text: { format: { type: 'text' } },
  tool_choice: 'auto',
  tools: [],
  top_p: 1,
  truncation: 'disabled',
  user: null,
}

/** Returns a response at its beginning, without output. */
export function responseShell({ id, model }: JsonObject, { request, created }: AnswerContext): JsonObject {
  const repeated = Object.entries(REPEATED).map(([member, value]) => [member, request[member] ?? value])
  return {
    id: responseId(id, created),
    object: 'response',
    created_at: created,
    status: 'in_progress',
    background: false,
    error: null,
    incomplete_details: null,
    model: typeof model === 'string' ? model : '',
    output: [],
    previous_response_id: null,
    store: false,
    top_logprobs: 0,
    usage: null,
    ...Object.fromEntries(repeated),
  }
}

/** Returns the id of a response that is made from a chat completion. */
export function responseId(id: unknown, created: number): string {
  return `resp_${nonEmptyString(id) ?? created}`
}

export function endedResponse(
  shell: JsonObject,
  output: readonly JsonObject[],
  finishReason: unknown,
  usage: TranslatedUsage,
): JsonObject {
  const reason = cutOf(finishReason)
  return {
    ...shell,
    status: endStatus(finishReason),
    incomplete_details: reason === undefined ? null : { reason },
    output,
    usage: responseUsage(usage),
  }
}

export function endStatus(finishReason: unknown): EndStatus {
  return cutOf(finishReason) === undefined ? 'completed' : 'incomplete'
}

/** Why a response is incomplete, by the `finish_reason` of a chat; with any other reason it is complete. */
function cutOf(finishReason: unknown): string | undefined {
  if (finishReason === 'length') return 'max_output_tokens'
  return isModerated(finishReason) ? 'content_filter' : undefined
}

function responseUsage(usage: TranslatedUsage): JsonObject {
  const {
    inputTokens = 0,
    outputTokens = 0,
    cachedInputTokens = 0,
    cacheWriteTokens,
    reasoningTokens,
  } = usage
  return {
    input_tokens: inputTokens,
    input_tokens_details: {
      cached_tokens: cachedInputTokens,
      ...(cacheWriteTokens !== undefined && { cache_write_tokens: cacheWriteTokens }),
    },
    output_tokens: outputTokens,
    output_tokens_details: { reasoning_tokens: reasoningTokens ?? 0 },
    total_tokens: inputTokens + outputTokens,
  }
}

/** Translates the annotations of a chat message. */
export function responseAnnotations(annotations: unknown): JsonObject[] {
  return objectsIn(annotations).flatMap(({ type, url_citation: cited }) =>
    isJsonObject(cited) ? [{ type, ...cited }] : [],
  )
}
