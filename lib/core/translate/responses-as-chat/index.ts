import { chainTranslators } from '../chain-translators.ts'
import { messageAsChatAnswer } from '../chat-as-messages/answer.ts'
import { chatWithoutForeign } from '../chat-as-messages/foreign-thinking.ts'
import { chatRequestAsMessages } from '../chat-as-messages/request.ts'
import { MessageAsChatStream } from '../chat-as-messages/stream.ts'
import type { Translator } from '../translation.ts'
import { chatAnswerAsResponse } from './answer.ts'
import { formatOf, responsesRequestAsChat } from './request.ts'
import { ChatAsResponseStream } from './stream.ts'
import { plainSearch } from './tools.ts'

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
  { messages: 'input', response_format: 'text.format', web_search_options: 'tools' },
  formatOf,
)
