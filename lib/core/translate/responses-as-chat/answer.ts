import { isJsonObject, type JsonObject, nonEmptyString, objectsIn } from '../../json/index.ts'
import { type ChatContent, readChatContent } from '../answers/chat-content.ts'
import { chatReasoningTokens } from '../answers/usage.ts'
import { sealedToolId, toolIdInAnswer } from '../parts/tool-ids.ts'
import type { AnswerContext, TranslatedAnswer, TranslatedUsage } from '../translation.ts'
import { encodeReasoning } from './encrypted-content.ts'
import { type NamespacedFunction, namespacedFunctions } from './namespaces.ts'
import { endedResponse, endStatus, responseAnnotations, responseShell } from './response.ts'
import { type ReasoningForm, reasoningForm, reasoningParts } from './text-parts.ts'
import { webSearchItems } from './web-search-item.ts'

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
  const calls = callItems(message, shell.id, namespacedFunctions(context.request))
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
    skipped: others.length + content.skipped + (objectsIn(message.tool_calls).length - calls.length),
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

function callItems(
  { tool_calls: calls }: JsonObject,
  id: unknown,
  functions: ReadonlyMap<unknown, NamespacedFunction>,
): JsonObject[] {
  return objectsIn(calls).flatMap(({ id: callId, function: fn, extra_content: extra }, i) => {
    if (!isJsonObject(fn) || typeof fn.name !== 'string') return []
    const { name, arguments: given } = fn
    const args = typeof given === 'string' ? given : JSON.stringify(given ?? {})
    return [
      {
        id: `fc_${id}_${i}`,
        type: 'function_call',
        status: 'completed',
        call_id: sealedToolId(toolIdInAnswer(callId, id, i), extra),
        ...(functions.get(name) ?? { name }),
        arguments: args === '' ? '{}' : args,
      },
    ]
  })
}
