import {
  isJsonObject,
  type JsonObject,
  nonEmptyString,
  objectsIn,
  parseJsonObject,
} from '../../json/index.ts'
import { stopReasonOf } from '../answers/finish-reasons.ts'
import { chatReasoningTokens, messagesUsage } from '../answers/usage.ts'
import {
  DETAIL_FORMAT,
  reasoningIn,
  thinkingBlocks,
  UNSIGNED,
  unsignedOf,
} from '../parts/reasoning-details.ts'
import { toolIdInAnswer } from '../parts/tool-ids.ts'
import type { AnswerContext, TranslatedAnswer, TranslatedUsage } from '../translation.ts'

/**
 * Translates a chat completion into an Anthropic-style message.
 *
 * @throws {SyntaxError} if the complete arguments of a tool call are not a JSON object.
 */
export function chatAnswerAsMessage(
  json: JsonObject,
  usage: TranslatedUsage,
  { created }: AnswerContext,
): TranslatedAnswer {
  const [choice = {}, ...others] = objectsIn(json.choices)
  const id = nonEmptyString(json.id) ?? `msg_${created}`
  const message = isJsonObject(choice.message) ? choice.message : {}
  const refusal = nonEmptyString(message.refusal)
  const content = contentOf(message)
  const calls = objectsIn(message.tool_calls)
  const cutOff = choice.finish_reason === 'length'
  const uses = calls.flatMap((call, i) => toolUse(call, toolIdInAnswer(call.id, id, i), cutOff))
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
        ...content.thinking,
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
    skipped: others.length + content.skipped + (calls.length - uses.length) + countUntranslated(message),
  }
}

/** Text and thinking of a chat message. */
interface MessageContent {
  readonly thinking: readonly JsonObject[]
  readonly text: string
  readonly skipped: number
}

/** Reads the content of a chat message; some upstreams send it, and the reasoning, in parts. */
function contentOf(message: JsonObject): MessageContent {
  const { content } = message
  const { text: reasoningText, member } = reasoningIn(message)
  let reasoning = reasoningText
  let text = nonEmptyString(content) ?? ''
  let skipped = 0
  for (const part of objectsIn(content)) {
    if (part.type === 'text') text += nonEmptyString(part.text) ?? ''
    else if (part.type === 'thinking')
      for (const item of objectsIn(part.thinking)) reasoning += nonEmptyString(item.text) ?? ''
    else skipped++
  }
  const signed = thinkingBlocks({ ...message, reasoning_content: reasoning })
  const unsigned =
    reasoning === '' ? [] : [{ type: 'thinking', thinking: reasoning, signature: unsignedOf(member) }]
  return { thinking: signed.length > 0 ? signed : unsigned, text, skipped }
}

/** Translates the call of a function; returns nothing for tools of other types, which the caller cannot have. */
function toolUse(call: JsonObject, id: string, cutOff: boolean): JsonObject[] {
  const { function: fn } = call
  if (!isJsonObject(fn) || typeof fn.name !== 'string') return []
  const { name, arguments: given } = fn
  // Some upstreams send the arguments as an object instead of its JSON text.
  const input = isJsonObject(given) ? given : parseJsonObject(nonEmptyString(given) ?? '{}')
  // A call whose arguments were cut off cannot be run; the caller sees it by the stop reason.
  if (!input && !cutOff) throw new SyntaxError('the arguments of a tool call are not a JSON object')
  return [{ type: 'tool_use', id, name, input: input ?? {} }]
}

function citationsIn({ annotations }: JsonObject): JsonObject[] {
  return objectsIn(annotations).flatMap(({ url_citation: cited }) => {
    if (!isJsonObject(cited) || typeof cited.url !== 'string') return []
    const title = nonEmptyString(cited.title) ?? null
    const { url } = cited
    return [{ type: 'web_search_result_location', url, title, encrypted_index: UNSIGNED, cited_text: '' }]
  })
}

/** Counts the output for which Anthropic has no block. */
function countUntranslated({
  audio,
  images,
  function_call: functionCall,
  reasoning_details: details,
}: JsonObject): number {
  const filled = [audio, functionCall].filter(isJsonObject).length + objectsIn(images).length
  return filled + objectsIn(details).filter(({ format }) => format !== DETAIL_FORMAT).length
}
