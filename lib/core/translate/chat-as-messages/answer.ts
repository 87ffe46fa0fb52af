import { isObject, textIn } from '../parts/json-object.ts'
import { encryptedDetail, type ReasoningDetail, signedDetail } from '../parts/reasoning-details.ts'
import { answeredToolId } from '../parts/tool-ids.ts'
import { finishReasonOf, refusalText } from '../stop-reasons.ts'
import type { AnswerContext, JsonObject, TranslatedAnswer, TranslatedUsage } from '../translation.ts'
import { chatUsage, messagesReasoningTokens } from '../usage.ts'
import { citationsOf } from './citations.ts'

/** An Anthropic-style message as a chat completion. */
export function messageAsChatAnswer(
  json: JsonObject,
  usage: TranslatedUsage,
  { created }: AnswerContext,
): TranslatedAnswer {
  const said = new ChatMessage(json.id)
  for (const block of Array.isArray(json.content) ? json.content : []) said.add(block)
  const refusal = json.stop_reason === 'refusal' ? refusalText(json.stop_details) : null
  const counts = chatUsage({ ...usage, reasoningTokens: messagesReasoningTokens(json.usage) })
  return {
    body: {
      id: json.id,
      object: 'chat.completion',
      created,
      model: json.model,
      choices: [
        {
          index: 0,
          message: said.message(refusal),
          logprobs: null,
          finish_reason: finishReasonOf(json.stop_reason),
        },
      ],
      ...(counts && { usage: counts }),
    },
    skipped: said.skipped,
  }
}

/** The message of a chat, put together block by block. */
class ChatMessage {
  readonly #answerId: unknown
  #text = ''
  #reasoning = ''
  readonly #details: ReasoningDetail[] = []
  readonly #calls: JsonObject[] = []
  readonly #annotations: JsonObject[] = []
  skipped = 0

  constructor(answerId: unknown) {
    this.#answerId = answerId
  }

  add(block: unknown): void {
    const { type, text, thinking, signature, data, citations } = isObject(block) ? block : {}
    if (type === 'text' && typeof text === 'string') this.#say(text, citations)
    else if (type === 'thinking' && typeof thinking === 'string') this.#think(thinking, signature)
    else if (type === 'redacted_thinking' && typeof data === 'string')
      this.#details.push(encryptedDetail(this.#details.length, data))
    else if (type === 'tool_use' && isObject(block)) this.#call(block)
    else this.skipped++
  }

  /** @param refusal why the model declined, in words. */
  message(refusal: string | null): JsonObject {
    return {
      role: 'assistant',
      content: this.#text === '' ? null : this.#text,
      refusal,
      ...(this.#reasoning !== '' && { reasoning_content: this.#reasoning }),
      ...(this.#details.length > 0 && { reasoning_details: this.#details }),
      ...(this.#calls.length > 0 && { tool_calls: this.#calls }),
      ...(this.#annotations.length > 0 && { annotations: this.#annotations }),
    }
  }

  #say(text: string, citations: unknown): void {
    const start = this.#text.length
    this.#text += text
    const { annotations, skipped } = citationsOf(citations, start, this.#text.length)
    this.#annotations.push(...annotations)
    this.skipped += skipped
  }

  #think(thinking: string, signature: unknown): void {
    this.#reasoning += thinking
    const signed = textIn(signature)
    if (signed !== undefined) this.#details.push(signedDetail(this.#details.length, signed, thinking.length))
  }

  #call({ id, name, input }: JsonObject): void {
    const called = { name, arguments: JSON.stringify(isObject(input) ? input : {}) }
    this.#calls.push({
      id: answeredToolId(id, this.#answerId, this.#calls.length),
      type: 'function',
      function: called,
    })
  }
}
