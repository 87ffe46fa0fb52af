import { isJsonObject, type JsonObject, objectsIn } from '../../json/index.ts'
import { type AnswerForm, mergeDelta } from '../answer-form.ts'

const event = (chunk: JsonObject): string => `data: ${JSON.stringify(chunk)}\n\n`
const DONE = 'data: [DONE]\n\n'

export const chatForm: AnswerForm = {
  toStream: (answer) =>
    streamOf(
      answer,
      'chat.completion.chunk',
      ({ message, index = 0, finish_reason = null, logprobs = null }) => {
        const delta = isJsonObject(message) ? indexed(message) : {}
        return [
          { index, delta, logprobs, finish_reason: null },
          { index, delta: {}, finish_reason },
        ]
      },
    ),
  fromStream: (chunks) =>
    answerOf(chunks, 'chat.completion', ({ delta, ...choice }) => {
      const message = { content: null, ...(delta as JsonObject | undefined) } as Record<string, unknown>
      if (Array.isArray(message.tool_calls))
        message.tool_calls = objectsIn(message.tool_calls).map(({ index: _, ...call }) => call)
      return { ...choice, message: { role: 'assistant', ...message } }
    }),
}

export const completionForm: AnswerForm = {
  toStream: (answer) =>
    streamOf(answer, 'text_completion', ({ finish_reason = null, ...choice }) => [
      { ...choice, finish_reason: null },
      { index: choice.index ?? 0, text: '', logprobs: null, finish_reason },
    ]),
  fromStream: (chunks) => answerOf(chunks, 'text_completion', (choice) => choice),
}

function streamOf(
  answer: JsonObject,
  object: string,
  choicesOf: (choice: JsonObject) => readonly JsonObject[],
): string {
  const { choices, usage, ...rest } = answer
  const head = { ...rest, object }
  const events = objectsIn(choices).flatMap((choice) =>
    choicesOf(choice).map((part) => event({ ...head, choices: [part] })),
  )
  if (isJsonObject(usage)) events.push(event({ ...head, choices: [], usage }))
  return events.join('') + DONE
}

function indexed(message: JsonObject): JsonObject {
  if (!Array.isArray(message.tool_calls)) return message
  return { ...message, tool_calls: message.tool_calls.map((call: JsonObject, index) => ({ index, ...call })) }
}

function answerOf(
  chunks: readonly JsonObject[],
  object: string,
  choiceOf: (choice: JsonObject) => JsonObject,
): JsonObject {
  const choices = new Map<unknown, Record<string, unknown>>()
  let head: JsonObject = {}
  let usage: unknown
  for (const { choices: parts, usage: report, ...rest } of chunks) {
    head = { ...rest, ...head }
    usage = report ?? usage
    for (const { index = 0, finish_reason, ...part } of objectsIn(parts)) {
      const choice = choices.get(index) ?? { index, finish_reason: null }
      choices.set(index, choice)
      mergeDelta(choice, part)
      if (finish_reason) choice.finish_reason = finish_reason
    }
  }
  return {
    ...head,
    object,
    choices: [...choices.values()].map(choiceOf),
    ...(usage !== undefined && { usage }),
  }
}
