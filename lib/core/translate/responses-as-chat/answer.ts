import { isObject, objectsIn, textIn } from '../parts/json-object.ts'
import { reasoningIn } from '../parts/reasoning-details.ts'
import { answeredToolId } from '../parts/tool-ids.ts'
import type { AnswerContext, JsonObject, TranslatedAnswer, TranslatedUsage } from '../translation.ts'
import { chatReasoningTokens } from '../usage.ts'
import { endedResponse, endStatus, responseAnnotations, responseShell } from './response.ts'
import { seal } from './sealed-reasoning.ts'

/** A chat completion as a response. */
export function chatAnswerAsResponse(
  json: JsonObject,
  usage: TranslatedUsage,
  context: AnswerContext,
): TranslatedAnswer {
  const [choice = {}, ...others] = objectsIn(json.choices)
  const message = isObject(choice.message) ? choice.message : {}
  const shell = responseShell(json, context)
  const counts = { ...usage, reasoningTokens: chatReasoningTokens(json.usage) }
  const output = [...thought(message, shell.id), ...said(message, shell.id), ...called(message, shell.id)]
  const last = output.pop()
  const ended = last ? [...output, { ...last, status: endStatus(choice.finish_reason) }] : output
  return { body: endedResponse(shell, ended, choice.finish_reason, counts), skipped: others.length }
}

function thought(message: JsonObject, id: unknown): JsonObject[] {
  const { text, member } = reasoningIn(message)
  const details = objectsIn(message.reasoning_details)
  if (text === '' && details.length === 0) return []
  return [
    {
      id: `rs_${id}`,
      type: 'reasoning',
      summary: [],
      ...(text !== '' && { content: [{ type: 'reasoning_text', text }] }),
      ...seal({ details, member }),
      status: 'completed',
    },
  ]
}

function said(message: JsonObject, id: unknown): JsonObject[] {
  const text = contentText(message.content)
  const refusal = textIn(message.refusal)
  const annotations = responseAnnotations(message.annotations)
  const content = [
    ...(text === '' ? [] : [{ type: 'output_text', text, annotations, logprobs: [] }]),
    ...(refusal === undefined ? [] : [{ type: 'refusal', refusal }]),
  ]
  if (content.length === 0) return []
  return [{ id: `msg_${id}`, type: 'message', status: 'completed', role: 'assistant', content }]
}

/** Some upstreams tell content in parts. */
function contentText(content: unknown): string {
  if (typeof content === 'string') return content
  return objectsIn(content)
    .map(({ text }) => textIn(text) ?? '')
    .join('')
}

function called({ tool_calls: calls }: JsonObject, id: unknown): JsonObject[] {
  return objectsIn(calls).flatMap(({ id: callId, function: fn }, i) => {
    if (!isObject(fn) || typeof fn.name !== 'string') return []
    const { name, arguments: given } = fn
    const args = typeof given === 'string' ? given : JSON.stringify(given ?? {})
    return [
      {
        id: `fc_${id}_${i}`,
        type: 'function_call',
        status: 'completed',
        call_id: answeredToolId(callId, id, i),
        name,
        arguments: args === '' ? '{}' : args,
      },
    ]
  })
}
