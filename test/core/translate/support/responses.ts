import OpenAI from 'openai'
import type { JsonObject } from '../../../../lib/core/json/index.ts'
import { responsesAsChat } from '../../../../lib/core/translate/directions.ts'
import type { Translator } from '../../../../lib/core/translate/translation.ts'
import { type LineProtocol, relayTranslated } from './streams.ts'

/** An OpenAI client whose answers are what a translation makes of these events of a line. */
export function clientOn(
  line: LineProtocol,
  passage: Translator,
  events: readonly string[],
  request: Record<string, unknown> = {},
): OpenAI {
  const fetch = async (): Promise<Response> => {
    const { text, end, detail } = relayTranslated(line, events.join(''), { passage, request })
    if (end !== 'complete') throw new Error(String(detail))
    return new Response(text, { headers: { 'content-type': 'text/event-stream' } })
  }
  return new OpenAI({ apiKey: 'none', maxRetries: 0, fetch })
}

/** The line's model searches, by its name. */
const context = { upstreamModel: 'm-search', defaultMaxTokens: 100 }

/** A request for a response, as a line that has chat completions gets it. */
export const chatAsked = (json: JsonObject): JsonObject =>
  responsesAsChat.request({ model: 'm', input: 'hi', ...json }, context)

/** The answer of such a line, as the caller of a response gets it. */
export const chatAnswered = (json: JsonObject, request: JsonObject = {}, usage: object = {}) =>
  responsesAsChat.answer(json, usage, { request, created: 5, estimatedInputTokens: 9 })
