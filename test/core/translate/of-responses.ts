import type { JsonObject } from '../../../lib/core/json/index.ts'
import { responsesAsChat } from '../../../lib/core/translate/responses-as-chat/index.ts'

const context = { upstreamModel: 'm', defaultMaxTokens: 100 }

/** A request for a response, as a line that has chat completions gets it. */
export const chatAsked = (json: JsonObject): JsonObject =>
  responsesAsChat.request({ model: 'm', input: 'hi', ...json }, context)

/** The answer of such a line, as the caller of a response gets it. */
export const chatAnswered = (json: JsonObject, request: JsonObject = {}, usage: object = {}) =>
  responsesAsChat.answer(json, usage, { request, created: 5, estimatedInputTokens: 9 })
