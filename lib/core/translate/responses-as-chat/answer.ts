import { isJsonObject, type JsonObject, nonEmptyString, objectsIn } from '../../json/index.ts'
import { chatReasoningTokens } from '../answers/usage.ts'
import { reasoningIn } from '../parts/reasoning-details.ts'
import { toolIdInAnswer } from '../parts/tool-ids.ts'
import type { AnswerContext, TranslatedAnswer, TranslatedUsage } from '../translation.ts'
import { encodeReasoning } from './encrypted-content.ts'
import { endedResponse, endStatus, responseAnnotations, responseShell } from './response.ts'

/** Translates a chat completion into a response. */
export function chatAnswerAsResponse(
  json: JsonObject,
  usage: TranslatedUsage,
  context: AnswerContext,
): TranslatedAnswer {
  const [choice = {}, ...others] = objectsIn(json.choices)
  const message = isJsonObject(choice.message) ? choice.message : {}
  const shell = responseShell(json, context)
  const counts = { ...usage, reasoningTokens: chatReasoningTokens(json.usage) }
  const output = [
    ...reasoningItem(message, shell.id),
    ...messageItem(message, shell.id),
    ...callItems(message, shell.id),
  ]
  const last = output.pop()
  const ended = last ? [...output, { ...last, status: endStatus(choice.finish_reason) }] : output
  return { body: endedResponse(shell, ended, choice.finish_reason, counts), skipped: others.length }
}

function reasoningItem(message: JsonObject, id: unknown): JsonObject[] {
  const { text, member } = reasoningIn(message)
  const details = objectsIn(message.reasoning_details)
  if (text === '' && details.length === 0) return []
  return [
    {
      id: `rs_${id}`,
      type: 'reasoning',
      summary: [],
      ...(text !== '' && { content: [{ type: 'reasoning_text', text }] }),
      ...encodeReasoning({ details, member }),
      status: 'completed',
    },
  ]
}

function messageItem(message: JsonObject, id: unknown): JsonObject[] {
  const text = contentText(message.content)
  const refusal = nonEmptyString(message.refusal)
  const annotations = responseAnnotations(message.annotations)
  const content = [
    ...(text === '' ? [] : [{ type: 'output_text', text, annotations, logprobs: [] }]),
    ...(refusal === undefined ? [] : [{ type: 'refusal', refusal }]),
  ]
  if (content.length === 0) return []
  return [{ id: `msg_${id}`, type: 'message', status: 'completed', role: 'assistant', content }]
}

/** Returns the text of a content, which some upstreams send in parts. */
function contentText(content: unknown): string {
  if (typeof content === 'string') return content
  return objectsIn(content)
    .map(({ text }) => nonEmptyString(text) ?? '')
    .join('')
}

function callItems({ tool_calls: calls }: JsonObject, id: unknown): JsonObject[] {
  return objectsIn(calls).flatMap(({ id: callId, function: fn }, i) => {
    if (!isJsonObject(fn) || typeof fn.name !== 'string') return []
    const { name, arguments: given } = fn
    const args = typeof given === 'string' ? given : JSON.stringify(given ?? {})
    return [
      {
        id: `fc_${id}_${i}`,
        type: 'function_call',
        status: 'completed',
        call_id: toolIdInAnswer(callId, id, i),
        name,
        arguments: args === '' ? '{}' : args,
      },
    ]
  })
}
