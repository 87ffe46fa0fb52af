import { isObject, objectsIn, parseObject, textIn } from '../parts/json-object.ts'
import {
  DETAIL_FORMAT,
  reasoningIn,
  thinkingBlocks,
  UNSIGNED,
  unsignedOf,
} from '../parts/reasoning-details.ts'
import { answeredToolId } from '../parts/tool-ids.ts'
import { stopReasonOf } from '../stop-reasons.ts'
import type { AnswerContext, JsonObject, TranslatedAnswer, TranslatedUsage } from '../translation.ts'
import { chatReasoningTokens, messagesUsage } from '../usage.ts'

/**
 * A chat completion as an Anthropic-style message.
 *
 * @throws {SyntaxError} where the arguments of a tool call are no JSON object although the model was done with them.
 */
export function chatAnswerAsMessage(
  json: JsonObject,
  usage: TranslatedUsage,
  { created }: AnswerContext,
): TranslatedAnswer {
  const [choice = {}, ...others] = objectsIn(json.choices)
  const id = textIn(json.id) ?? `msg_${created}`
  const message = isObject(choice.message) ? choice.message : {}
  const refusal = textIn(message.refusal)
  const said = saidIn(message)
  const calls = objectsIn(message.tool_calls)
  const cutOff = choice.finish_reason === 'length'
  const uses = calls.flatMap((call, i) => toolUse(call, answeredToolId(call.id, id, i), cutOff))
  const stopReason = stopReasonOf(choice.finish_reason, {
    toolCalls: uses.length > 0,
    refusal: refusal !== undefined,
  })
  const text = said.text + (refusal ?? '')
  const citations = citationsIn(message)
  return {
    body: {
      id,
      type: 'message',
      role: 'assistant',
      model: json.model,
      content: [
        ...said.thinking,
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
    skipped: others.length + said.skipped + (calls.length - uses.length) + unknownIn(message),
  }
}

/** What a chat message says and how it was come by. */
interface Said {
  readonly thinking: readonly JsonObject[]
  readonly text: string
  readonly skipped: number
}

/** Some upstreams tell content in parts, and what was thought as one of them. */
function saidIn(message: JsonObject): Said {
  const { content } = message
  const { text: told, member } = reasoningIn(message)
  let reasoning = told
  let text = textIn(content) ?? ''
  let skipped = 0
  for (const part of objectsIn(content)) {
    if (part.type === 'text') text += textIn(part.text) ?? ''
    else if (part.type === 'thinking')
      for (const item of objectsIn(part.thinking)) reasoning += textIn(item.text) ?? ''
    else skipped++
  }
  const signed = thinkingBlocks({ ...message, reasoning_content: reasoning })
  const unsigned =
    reasoning === '' ? [] : [{ type: 'thinking', thinking: reasoning, signature: unsignedOf(member) }]
  return { thinking: signed.length > 0 ? signed : unsigned, text, skipped }
}

/** A call of a function; of another kind of tool nothing, because the caller has none. */
function toolUse(call: JsonObject, id: string, cutOff: boolean): JsonObject[] {
  const { function: called } = call
  if (!isObject(called) || typeof called.name !== 'string') return []
  const { name, arguments: given } = called
  // Some upstreams send an object where a text belongs.
  const input = isObject(given) ? given : parseObject(textIn(given) ?? '{}')
  // Cut off in its arguments, a call is nothing that could be run; the stop reason tells.
  if (!input && !cutOff) throw new SyntaxError('the arguments of a tool call are not a JSON object')
  return [{ type: 'tool_use', id, name, input: input ?? {} }]
}

function citationsIn({ annotations }: JsonObject): JsonObject[] {
  return objectsIn(annotations).flatMap(({ url_citation: cited }) => {
    if (!isObject(cited) || typeof cited.url !== 'string') return []
    const title = textIn(cited.title) ?? null
    const { url } = cited
    return [{ type: 'web_search_result_location', url, title, encrypted_index: UNSIGNED, cited_text: '' }]
  })
}

/** Members that hold output of a kind that Anthropic has no block for. */
function unknownIn({ audio, images, function_call: called, reasoning_details: details }: JsonObject): number {
  const filled = [audio, called].filter(isObject).length + objectsIn(images).length
  return filled + objectsIn(details).filter(({ format }) => format !== DETAIL_FORMAT).length
}
