import { chatCompletions, messages, type Operation, responses } from '../operations/index.ts'
import type { ProtocolName } from '../protocols/index.ts'
import { messageAsChatAnswer } from './chat-as-messages/answer.ts'
import { chatWithoutForeign } from './chat-as-messages/foreign-thinking.ts'
import { chatRequestAsMessages } from './chat-as-messages/request.ts'
import { MessageAsChatStream } from './chat-as-messages/stream.ts'
import { chatAnswerAsMessage } from './messages-as-chat/answer.ts'
import { messagesWithoutForeign } from './messages-as-chat/foreign-thinking.ts'
import { messagesRequestAsChat } from './messages-as-chat/request.ts'
import { ChatAsMessageStream } from './messages-as-chat/stream.ts'
import { DETAIL_FORMAT, UNSIGNED } from './reasoning-details.ts'
import { ITEM_PREFIX, responsesWithoutForeign } from './responses-as-chat/foreign-reasoning.ts'
import { responsesAsMessages } from './responses-as-chat/index.ts'
import type { Translation } from './translation.ts'

/** Every direction, one row each; of two that would do the first is taken. */
const TRANSLATIONS: readonly Translation[] = [
  {
    from: chatCompletions,
    to: messages,
    request: chatRequestAsMessages,
    answer: messageAsChatAnswer,
    stream: (context) => new MessageAsChatStream(context),
    foreign: DETAIL_FORMAT,
    withoutForeign: chatWithoutForeign,
  },
  {
    from: messages,
    to: chatCompletions,
    request: messagesRequestAsChat,
    answer: chatAnswerAsMessage,
    stream: (context) => new ChatAsMessageStream(context),
    foreign: UNSIGNED,
    withoutForeign: messagesWithoutForeign,
  },
  {
    from: responses,
    to: messages,
    ...responsesAsMessages,
    foreign: ITEM_PREFIX,
    withoutForeign: responsesWithoutForeign,
  },
]

/**
 * How a call of `operation` is put to a line that speaks `protocol`; undefined where it cannot be.
 *
 * @example
 * const body = translationOf(chatCompletions, 'anthropic')?.request(json, { upstreamModel, defaultMaxTokens: 4096 })
 */
export function translationOf(operation: Operation, protocol: ProtocolName): Translation | undefined {
  return TRANSLATIONS.find(({ from, to }) => from === operation && to.protocol === protocol)
}
