import { chained, type Passage } from '../chained.ts'
import { messageAsChatAnswer } from '../chat-as-messages/answer.ts'
import { chatWithoutForeign } from '../chat-as-messages/foreign-thinking.ts'
import { chatRequestAsMessages } from '../chat-as-messages/request.ts'
import { MessageAsChatStream } from '../chat-as-messages/stream.ts'
import { chatAnswerAsResponse } from './answer.ts'
import { responsesRequestAsChat } from './request.ts'
import { ChatAsResponseStream } from './stream.ts'

const responsesAsAnyChat: Passage = {
  request: responsesRequestAsChat,
  answer: chatAnswerAsResponse,
  stream: (context) => new ChatAsResponseStream(context),
}

/** `/v1/responses` on a line that speaks chat completions. */
export const responsesAsChat: Passage = {
  ...responsesAsAnyChat,
  request: (json, context) => chatWithoutForeign(responsesRequestAsChat(json, context)),
}

/** `/v1/responses` on a line that speaks messages, by way of a chat. */
export const responsesAsMessages: Passage = chained(
  responsesAsAnyChat,
  {
    request: chatRequestAsMessages,
    answer: messageAsChatAnswer,
    stream: (context) => new MessageAsChatStream(context),
  },
  { messages: 'input', response_format: 'text.format' },
)
