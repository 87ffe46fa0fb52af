import type { LineEndpoints } from '../catalog/index.ts'
import { chatCompletions, messages, type Operation, responses, servesNatively } from '../operations/index.ts'
import { messageAsChatAnswer } from './chat-as-messages/answer.ts'
import { chatWithoutForeign } from './chat-as-messages/foreign-thinking.ts'
import { chatRequestAsMessages } from './chat-as-messages/request.ts'
import { MessageAsChatStream } from './chat-as-messages/stream.ts'
import { chatAnswerAsMessage } from './messages-as-chat/answer.ts'
import { messagesWithoutForeign } from './messages-as-chat/foreign-thinking.ts'
import { messagesRequestAsChat } from './messages-as-chat/request.ts'
import { ChatAsMessageStream } from './messages-as-chat/stream.ts'
import { DETAIL_FORMAT, UNSIGNED } from './parts/reasoning-details.ts'
import { SEAL } from './parts/tool-ids.ts'
import { ITEM_MARK, responsesWithoutForeign } from './responses-as-chat/foreign-reasoning.ts'
import { responsesAsChat, responsesAsMessages } from './responses-as-chat/index.ts'
import type { Translation } from './translation.ts'

/** All directions. If two fit a line, the first is used. */
const TRANSLATIONS: readonly Translation[] = [
  {
    from: chatCompletions,
    to: messages,
    request: chatRequestAsMessages,
    answer: messageAsChatAnswer,
    stream: (context) => new MessageAsChatStream(context),
    foreign: [DETAIL_FORMAT],
    withoutForeign: chatWithoutForeign,
  },
  {
    from: messages,
    to: chatCompletions,
    request: messagesRequestAsChat,
    answer: chatAnswerAsMessage,
    stream: (context) => new ChatAsMessageStream(context),
    foreign: [UNSIGNED, SEAL],
    withoutForeign: messagesWithoutForeign,
  },
  {
    from: responses,
    to: chatCompletions,
    ...responsesAsChat,
    foreign: [ITEM_MARK, SEAL],
    withoutForeign: responsesWithoutForeign,
  },
  {
    from: responses,
    to: messages,
    ...responsesAsMessages,
    foreign: [ITEM_MARK, SEAL],
    withoutForeign: responsesWithoutForeign,
  },
]

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
