import { isJsonObject, type JsonObject, nonEmptyString, objectsIn } from '../../json/index.ts'
import { incompleteReason } from '../../operations/index.ts'
import { type ChatContent, callsOf, readChatContent } from '../chat-content.ts'
import { freeformText } from '../freeform-tools.ts'
import { toolArguments } from '../tool-calls.ts'
import { AnswerIds, sealedToolId } from '../tool-ids.ts'
import { type AnswerContext, modelOf, type TranslatedAnswer, type TranslatedUsage } from '../translation.ts'
import { chatReasoningTokens } from '../usage.ts'
import { encodeReasoning } from './reasoning.ts'
import { type CallersTool, callersTools } from './tools.ts'

export function chatAnswerAsResponse(
  json: JsonObject,
  usage: TranslatedUsage,
  context: AnswerContext,
): TranslatedAnswer {
  const [choice = {}, ...others] = objectsIn(json.choices)
  const message = isJsonObject(choice.message) ? choice.message : {}
  const shell = responseShell(json, context)
  const counts = { ...usage, reasoningTokens: chatReasoningTokens(json.usage) }
  const content = readChatContent(message)
  const calls = callItems(message, shell.id, context.request)
  const output = [
    ...reasoningItem(message, content, shell.id, reasoningForm(context.request)),
    ...webSearchItems(message, String(shell.id), context.request),
    ...messageItem(message, content, shell.id),
    ...calls,
  ]
  const last = output.pop()
  const ended = last ? [...output, { ...last, status: endStatus(choice.finish_reason) }] : output
  return {
    body: endedResponse(shell, ended, choice.finish_reason, counts),
    skipped: others.length + content.skipped + (callsOf(message).length - calls.length),
  }
}

function reasoningItem(
  message: JsonObject,
  { reasoning: text, member }: ChatContent,
  id: unknown,
  { part: type, isSealed }: ReasoningForm,
): JsonObject[] {
  const details = objectsIn(message.reasoning_details)
  if (text === '' && details.length === 0) return []
  return [
    {
      id: `rs_${id}`,
      type: 'reasoning',
      ...reasoningParts(text === '' ? [] : [{ type, text }]),
      ...encodeReasoning({ details, member, text: isSealed ? text : '' }),
      status: 'completed',
    },
  ]
}

function messageItem(message: JsonObject, { text }: ChatContent, id: unknown): JsonObject[] {
  const refusal = nonEmptyString(message.refusal)
  const annotations = responseAnnotations(message.annotations)
  const content = [
    ...(text === '' ? [] : [{ type: 'output_text', text, annotations, logprobs: [] }]),
    ...(refusal === undefined ? [] : [{ type: 'refusal', refusal }]),
  ]
  if (content.length === 0) return []
  return [{ id: `msg_${id}`, type: 'message', status: 'completed', role: 'assistant', content }]
}

function callItems(message: JsonObject, id: unknown, request: JsonObject): JsonObject[] {
  const tools = callersTools(request)
  const ids = new AnswerIds(request)
  return callsOf(message).flatMap(({ id: callId, function: fn, extra_content: extra }, i) => {
    if (!isJsonObject(fn) || typeof fn.name !== 'string') return []
    const { name, arguments: given } = fn
    const { called, isFreeform } = tools.get(name) ?? { called: { name }, isFreeform: false }
    const call = {
      callId: sealedToolId(ids.idOf(callId, id, i), extra),
      called,
      isFreeform,
      text: isFreeform ? freeformText(given) : toolArguments(given),
    }
    return [callItem(call, callItemId(id, i, isFreeform), 'completed')]
  })
}

/** A tool call of an answer. */
export interface CalledTool extends CallersTool {
  readonly callId: string
  /** The arguments as JSON, or the input of a freeform tool. */
  readonly text: string
}

export function callItemId(responseId: unknown, index: number, isFreeform: boolean): string {
  return `${isFreeform ? 'ctc' : 'fc'}_${responseId}_${index}`
}

/** Returns the item of a tool call. */
export function callItem(
  { callId, called, isFreeform, text }: CalledTool,
  id: string,
  status: string,
): JsonObject {
  const type = isFreeform ? 'custom_tool_call' : 'function_call'
  return { id, type, status, call_id: callId, ...called, [isFreeform ? 'input' : 'arguments']: text }
}

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
export function responseShell(chat: JsonObject, context: AnswerContext): JsonObject {
  const { request, created } = context
  const repeated = Object.entries(REPEATED).map(([member, value]) => [member, request[member] ?? value])
  return {
    id: responseId(chat.id, created),
    object: 'response',
    created_at: created,
    status: 'in_progress',
    background: false,
    error: null,
    incomplete_details: null,
    model: modelOf(chat, context),
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
  const reason = incompleteReason(finishReason)
  return {
    ...shell,
    status: endStatus(finishReason),
    incomplete_details: reason === undefined ? null : { reason },
    output,
    usage: responseUsage(usage),
  }
}

export function endStatus(finishReason: unknown): EndStatus {
  return incompleteReason(finishReason) === undefined ? 'completed' : 'incomplete'
}

function responseUsage(usage: TranslatedUsage): JsonObject {
  const { inputTokens = 0, outputTokens = 0, cachedInputTokens, cacheWriteTokens, reasoningTokens } = usage
  const details = {
    ...(cachedInputTokens !== undefined && { cached_tokens: cachedInputTokens }),
    ...(cacheWriteTokens !== undefined && { cache_write_tokens: cacheWriteTokens }),
  }
  return {
    input_tokens: inputTokens,
    ...(Object.keys(details).length > 0 && { input_tokens_details: details }),
    output_tokens: outputTokens,
    ...(reasoningTokens !== undefined && { output_tokens_details: { reasoning_tokens: reasoningTokens } }),
    total_tokens: inputTokens + outputTokens,
  }
}

/** Translates the annotations of a chat message. */
function responseAnnotations(annotations: unknown): JsonObject[] {
  return objectsIn(annotations).flatMap(({ type, url_citation: cited }) =>
    isJsonObject(cited) && nonEmptyString(cited.url) !== undefined ? [{ type, ...cited }] : [],
  )
}

/** The status at the end. A response that was cut off is incomplete, and so is its last item. */
export type EndStatus = 'completed' | 'incomplete'

export type PartType = 'output_text' | 'refusal' | 'reasoning_text' | 'summary_text'

interface EventNames {
  readonly text: string
  readonly part: string
  /** The member with the position of the part. */
  readonly index: string
}

const CONTENT = { part: 'content_part', index: 'content_index' }

export const EVENT_NAMES: Readonly<Record<PartType, EventNames>> = {
  output_text: { text: 'output_text', ...CONTENT },
  refusal: { text: 'refusal', ...CONTENT },
  reasoning_text: { text: 'reasoning_text', ...CONTENT },
  summary_text: {
    text: 'reasoning_summary_text',
    part: 'reasoning_summary_part',
    index: 'summary_index',
  },
}

/** How the caller gets reasoning. */
export interface ReasoningForm {
  readonly part: 'reasoning_text' | 'summary_text'
  /** Whether its `encrypted_content` holds the text too. */
  readonly isSealed: boolean
}

/** Returns the form of reasoning: in a summary, if the caller asks for one, and sealed, if it asks for that. */
export function reasoningForm({ reasoning, include }: JsonObject): ReasoningForm {
  const asked = isJsonObject(reasoning) && nonEmptyString(reasoning.summary ?? reasoning.generate_summary)
  return {
    part: asked ? 'summary_text' : 'reasoning_text',
    isSealed: Array.isArray(include) && include.includes('reasoning.encrypted_content'),
  }
}

/** Returns the members of a reasoning item that hold its parts. */
export function reasoningParts(parts: readonly JsonObject[]): JsonObject {
  const isSummary = ({ type }: JsonObject): boolean => type === 'summary_text'
  const content = parts.filter((part) => !isSummary(part))
  const summary = parts.filter(isSummary)
  return { summary, ...((content.length > 0 || summary.length === 0) && { content }) }
}

/** Returns a part as an item has it. */
export function partOf(type: PartType, text: string, annotations: readonly JsonObject[]): JsonObject {
  if (type === 'refusal') return { type, refusal: text }
  return type === 'output_text' ? { type, text, annotations: [...annotations], logprobs: [] } : { type, text }
}

/** Whether the caller asks for the addresses of the pages that were found. */
export function includesSources({ include }: JsonObject): boolean {
  return Array.isArray(include) && include.includes('web_search_call.action.sources')
}

/**
 * Returns the item of a web search.
 *
 * @param search an entry of `web_searches`.
 */
export function webSearchItem(
  { query, urls, failed }: JsonObject,
  id: string,
  withSources: boolean,
): JsonObject {
  const found = Array.isArray(urls) ? urls : []
  const action = {
    type: 'search',
    ...(typeof query === 'string' && { query, queries: [query] }),
    ...(withSources && { sources: found.map((url) => ({ type: 'url', url })) }),
  }
  return { id, type: 'web_search_call', status: failed === true ? 'failed' : 'completed', action }
}

function webSearchItems(message: JsonObject, responseId: string, request: JsonObject): JsonObject[] {
  const withSources = includesSources(request)
  return objectsIn(message.web_searches).map((search, i) =>
    webSearchItem(search, `ws_${responseId}_${i}`, withSources),
  )
}
