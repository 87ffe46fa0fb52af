import {
  isJsonObject,
  type JsonObject,
  nonEmptyString,
  objectsIn,
  parseJsonObject,
  parseKeepingIntegers,
} from '../../json/index.ts'
import { type ChatContent, readChatContent } from '../answers/chat-content.ts'
import { stopReasonOf } from '../answers/finish-reasons.ts'
import { chatReasoningTokens, messagesUsage } from '../answers/usage.ts'
import { DETAIL_FORMAT, thinkingBlocks, UNSIGNED, unsignedOf } from '../parts/reasoning-details.ts'
import { sealedToolId, toolIdInAnswer } from '../parts/tool-ids.ts'
import type { AnswerContext, TranslatedAnswer, TranslatedUsage } from '../translation.ts'
import { callersNames } from './tools.ts'

/**
 * Translates a chat completion into an Anthropic-style message.
 *
 * @throws {SyntaxError} if the complete arguments of a tool call are not a JSON object.
 */
export function chatAnswerAsMessage(
  json: JsonObject,
  usage: TranslatedUsage,
  { created, request }: AnswerContext,
): TranslatedAnswer {
  const [choice = {}, ...others] = objectsIn(json.choices)
  const id = nonEmptyString(json.id) ?? `msg_${created}`
  const message = isJsonObject(choice.message) ? choice.message : {}
  const refusal = nonEmptyString(message.refusal)
  const content = readChatContent(message)
  const calls = objectsIn(message.tool_calls)
  const cutOff = choice.finish_reason === 'length'
  const names = callersNames(request)
  const uses = calls.flatMap((call, i) =>
    toolUse(call, sealedToolId(toolIdInAnswer(call.id, id, i), call.extra_content), cutOff, names),
  )
  const stopReason = stopReasonOf(choice.finish_reason, {
    toolCalls: uses.length > 0,
    refusal: refusal !== undefined,
  })
  const text = content.text + (refusal ?? '')
  const citations = citationsIn(message)
  return {
    body: {
      id,
      type: 'message',
      role: 'assistant',
      model: json.model,
      content: [
        ...thinkingOf(message, content),
        ...(text === '' ? [] : [{ type: 'text', text, ...(citations.length > 0 && { citations }) }]),
        ...uses,
      ],
      stop_reason: stopReason,
      stop_sequence: null,
      ...(refusal !== undefined && {
        stop_details: { type: 'refusal', category: null, explanation: refusal },
      }),
      usage: messagesUsage({ ...usage, reasoningTokens: chatReasoningTokens(json.usage) }),
    },
    skipped: others.length + content.skipped + (calls.length - uses.length) + countForeign(message),
  }
}

/** Returns the thinking of a message: with its signatures, if an Anthropic-style model wrote it. */
function thinkingOf(message: JsonObject, { reasoning, member }: ChatContent): readonly JsonObject[] {
  const signed = thinkingBlocks({ ...message, reasoning_content: reasoning })
  if (signed.length > 0 || reasoning === '') return signed
  return [{ type: 'thinking', thinking: reasoning, signature: unsignedOf(member) }]
}

/** Translates the call of a function; returns nothing for tools of other types, which the caller cannot have. */
function toolUse(
  call: JsonObject,
  id: string,
  cutOff: boolean,
  names: ReadonlyMap<unknown, string>,
): JsonObject[] {
  const { function: fn } = call
  if (!isJsonObject(fn) || typeof fn.name !== 'string') return []
  const { name, arguments: given } = fn
  // Some upstreams send the arguments as an object instead of its JSON text.
  const input = isJsonObject(given) ? given : argumentsOf(nonEmptyString(given) ?? '{}')
  // A call whose arguments were cut off cannot be run; the caller sees it by the stop reason.
  if (!input && !cutOff) throw new SyntaxError('the arguments of a tool call are not a JSON object')
  return [{ type: 'tool_use', id, name: names.get(name) ?? name, input: input ?? {} }]
}

/** Returns the arguments of a call, with integers of any size. */
function argumentsOf(text: string): JsonObject | undefined {
  return parseJsonObject(text, undefined, parseKeepingIntegers)
}

function citationsIn({ annotations }: JsonObject): JsonObject[] {
  return objectsIn(annotations).flatMap(({ url_citation: cited }) => {
    if (!isJsonObject(cited) || typeof cited.url !== 'string') return []
    const title = nonEmptyString(cited.title) ?? null
    const { url } = cited
    return [{ type: 'web_search_result_location', url, title, encrypted_index: UNSIGNED, cited_text: '' }]
  })
}

/** Counts the reasoning of other upstreams, for which Anthropic has no block. */
function countForeign({ reasoning_details: details }: JsonObject): number {
  return objectsIn(details).filter(({ format }) => format !== DETAIL_FORMAT).length
}
