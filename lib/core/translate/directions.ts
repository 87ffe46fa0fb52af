import type { LineEndpoints } from '../catalog/index.ts'
import { type JsonObject, someObject } from '../json/index.ts'
import { chatCompletions, messages, type Operation, responses, servesNatively } from '../operations/index.ts'
import { chainTranslators } from './chain-translators.ts'
import { messageAsChatAnswer } from './chat-as-messages/answer.ts'
import { chatRequestAsMessages } from './chat-as-messages/request.ts'
import { MessageAsChatStream } from './chat-as-messages/stream.ts'
import { chatWithoutForeign, hasForeignThinking } from './chat-as-messages/thinking.ts'
import { chatAnswerAsMessage } from './messages-as-chat/answer.ts'
import { messagesWithoutForeign } from './messages-as-chat/messages.ts'
import { messagesRequestAsChat } from './messages-as-chat/request.ts'
import { ChatAsMessageStream } from './messages-as-chat/stream.ts'
import { UNSIGNED } from './reasoning.ts'
import { chatAnswerAsResponse } from './responses-as-chat/answer.ts'
import { ITEM_MARK, responsesWithoutForeign } from './responses-as-chat/reasoning.ts'
import { formatOf, responsesRequestAsChat } from './responses-as-chat/request.ts'
import { ChatAsResponseStream } from './responses-as-chat/stream.ts'
import { plainSearch } from './responses-as-chat/tools.ts'
import { CARRY, SEAL } from './tool-ids.ts'
import type { Translation, Translator } from './translation.ts'

const responsesAsPlainChat: Translator = {
  request: responsesRequestAsChat,
  answer: chatAnswerAsResponse,
  stream: (context) => new ChatAsResponseStream(context),
}

/** Translates `/v1/responses` for a line that has chat completions. */
export const responsesAsChat: Translator = {
  ...responsesAsPlainChat,
  request(json, context) {
    const chat = chatWithoutForeign(responsesRequestAsChat(json, context))
    return plainSearch(json, chat, context)
  },
}

/** Translates `/v1/responses` for a line that has messages, through a chat. */
export const responsesAsMessages: Translator = chainTranslators(
  responsesAsPlainChat,
  {
    request: chatRequestAsMessages,
    answer: messageAsChatAnswer,
    stream: (context) => new MessageAsChatStream(context),
  },
  {
    messages: 'input',
    response_format: 'text.format',
    reasoning_effort: 'reasoning.effort',
    web_search_options: 'tools',
  },
  formatOf,
)

/** All directions. If two fit a line, the first is used. */
const TRANSLATIONS: readonly Translation[] = [
  {
    from: chatCompletions,
    to: messages,
    request: chatRequestAsMessages,
    answer: messageAsChatAnswer,
    stream: (context) => new MessageAsChatStream(context),
    mayHaveForeign: ({ messages }) => someObject(messages, hasForeignThinking),
    withoutForeign: chatWithoutForeign,
  },
  {
    from: messages,
    to: chatCompletions,
    request: messagesRequestAsChat,
    answer: chatAnswerAsMessage,
    stream: (context) => new ChatAsMessageStream(context),
    mayHaveForeign: (_json, raw) => raw.includes(UNSIGNED) || raw.includes(SEAL),
    withoutForeign: messagesWithoutForeign,
  },
  {
    from: responses,
    to: chatCompletions,
    ...responsesAsChat,
    mayHaveForeign: hasOwnIds,
    withoutForeign: responsesWithoutForeign,
  },
  {
    from: responses,
    to: messages,
    ...responsesAsMessages,
    mayHaveForeign: hasOwnIds,
    withoutForeign: responsesWithoutForeign,
  },
]

/** Whether a request to `/v1/responses` may hold ids that the gateway made. */
function hasOwnIds(_json: JsonObject, raw: Buffer): boolean {
  return raw.includes(ITEM_MARK) || raw.includes(SEAL) || raw.includes(CARRY)
}

/**
 * Returns the translation for calls of `operation` on a line that has another endpoint; undefined if there is none.
 *
 * @example
 * const line = { protocol: 'anthropic' } as const
 * const body = translationOf(chatCompletions, line)?.request(json, { upstreamModel, defaultMaxTokens: 4096 })
 */
export function translationOf(operation: Operation, line: LineEndpoints): Translation | undefined {
  return translationsOf(operation).find(({ to }) => servesNatively(line, to))
}

export function translationsOf(operation: Operation): readonly Translation[] {
  return BY_OPERATION.get(operation) ?? []
}

const BY_OPERATION = Map.groupBy(TRANSLATIONS, ({ from }) => from)
