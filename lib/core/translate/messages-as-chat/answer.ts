import { isJsonObject, type JsonObject, nonEmptyString, objectsIn } from '../../json/index.ts'
import { incompleteReason, messageStopReason } from '../../operations/index.ts'
import { type ChatContent, callsOf, readChatContent } from '../chat-content.ts'
import { DETAIL_FORMAT, textOfDetail, thinkingBlocks, UNSIGNED, unsignedOf } from '../reasoning.ts'
import { AnswerIds, sealedToolId } from '../tool-ids.ts'
import { type AnswerContext, modelOf, type TranslatedAnswer, type TranslatedUsage } from '../translation.ts'
import { chatReasoningTokens, messagesUsage } from '../usage.ts'
import { callersNames, toolUseOf } from './tools.ts'

/**
 * Translates a chat completion into an Anthropic-style message.
 *
 * @throws {SyntaxError} if the complete arguments of a tool call are not a JSON object.
 */
export function chatAnswerAsMessage(
  json: JsonObject,
  usage: TranslatedUsage,
  context: AnswerContext,
): TranslatedAnswer {
  const { created, request } = context
  const [choice = {}, ...others] = objectsIn(json.choices)
  const id = nonEmptyString(json.id) ?? `msg_${created}`
  const message = isJsonObject(choice.message) ? choice.message : {}
  const refusal = nonEmptyString(message.refusal)
  const content = readChatContent(message)
  const calls = callsOf(message)
  const cutOff = incompleteReason(choice.finish_reason) !== undefined
  const names = callersNames(request)
  const ids = new AnswerIds(request)
  const uses = calls.flatMap((call, i) =>
    toolUseOf(call, sealedToolId(ids.idOf(call.id, id, i), call.extra_content), cutOff, names),
  )
  const stop = messageStop(choice, request, { toolCalls: uses.length > 0, refusal })
  const text = content.text + (refusal ?? '')
  const citations = citationsIn(message)
  return {
    body: {
      id,
      type: 'message',
      role: 'assistant',
      model: modelOf(json, context),
      content: [
        ...thinkingOf(message, content),
        ...(text === '' ? [] : [{ type: 'text', text, ...(citations.length > 0 && { citations }) }]),
        ...uses,
      ],
      ...stop,
      usage: messagesUsage({ ...usage, reasoningTokens: chatReasoningTokens(json.usage) }),
    },
    skipped: others.length + content.skipped + (calls.length - uses.length) + countForeign(message),
  }
}

/**
 * Returns why a message ended, and at which of the caller's stop sequences. OpenAI has no member for the sequence; vLLM
 * reports it as `stop_reason`, SGLang as `matched_stop`. `refusal` is the text of the refusal, if the model wrote one.
 */
export function messageStop(
  { finish_reason: reason, stop_reason: ofVllm, matched_stop: ofSglang }: JsonObject,
  { stop_sequences: asked }: JsonObject,
  { toolCalls, refusal }: { readonly toolCalls: boolean; readonly refusal: string | undefined },
): JsonObject {
  const stopReason = messageStopReason(reason, { toolCalls, refusal: refusal !== undefined })
  const sequence = Array.isArray(asked)
    ? [ofVllm, ofSglang].find((given) => asked.includes(given))
    : undefined
  if (stopReason === 'end_turn' && sequence !== undefined)
    return { stop_reason: 'stop_sequence', stop_sequence: sequence }
  const stop = { stop_reason: stopReason, stop_sequence: null }
  if (stopReason !== 'refusal' || refusal === undefined) return stop
  return { ...stop, stop_details: { type: 'refusal', category: null, explanation: refusal } }
}

/** Returns the thinking of a message: with its signatures, if an Anthropic-style model wrote it. */
function thinkingOf(message: JsonObject, { reasoning, member }: ChatContent): readonly JsonObject[] {
  const signed = thinkingBlocks({ ...message, reasoning_content: reasoning })
  if (signed.length > 0 || reasoning === '') return signed
  return [{ type: 'thinking', thinking: reasoning, signature: unsignedOf(member) }]
}

function citationsIn({ annotations }: JsonObject): JsonObject[] {
  return objectsIn(annotations).flatMap(({ url_citation: cited }) => {
    if (!isJsonObject(cited) || typeof cited.url !== 'string') return []
    const title = nonEmptyString(cited.title) ?? null
    const { url } = cited
    return [{ type: 'web_search_result_location', url, title, encrypted_index: UNSIGNED, cited_text: '' }]
  })
}

/** Counts the reasoning of other upstreams that has no text, for which Anthropic has no block. */
function countForeign({ reasoning_details: details }: JsonObject): number {
  return objectsIn(details).filter(
    (detail) => detail.format !== DETAIL_FORMAT && textOfDetail(detail) === undefined,
  ).length
}
