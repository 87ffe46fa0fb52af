import { isJsonObject, type JsonObject, nonEmptyString } from '../../json/index.ts'
import { finishReasonOf, refusalText } from '../answers/finish-reasons.ts'
import { chatUsage, messagesReasoningTokens } from '../answers/usage.ts'
import { encryptedDetail, type ReasoningDetail, signedDetail } from '../parts/reasoning-details.ts'
import { toolIdInAnswer } from '../parts/tool-ids.ts'
import type { AnswerContext, TranslatedAnswer, TranslatedUsage } from '../translation.ts'
import { citationsOf } from './citations.ts'
import { isPrompted } from './prompted-format.ts'
import { callersNames } from './tools.ts'
import { unfenced } from './unfenced.ts'
import { WebSearches } from './web-searches.ts'

/** Translates an Anthropic-style message into a chat completion. */
export function messageAsChatAnswer(
  json: JsonObject,
  usage: TranslatedUsage,
  { request, created, tellsSearches }: AnswerContext,
): TranslatedAnswer {
  const message = new ChatMessage(json.id, callersNames(request), tellsSearches)
  for (const block of Array.isArray(json.content) ? json.content : []) message.add(block)
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
          message: message.toJson(refusal, isPrompted(request)),
          logprobs: null,
          finish_reason: finishReasonOf(json.stop_reason),
        },
      ],
      ...(counts && { usage: counts }),
      // OpenRouter's SDK takes no answer without it.
      system_fingerprint: null,
    },
    skipped: message.skipped,
  }
}

/** Collects content blocks into the message of a chat. */
class ChatMessage {
  readonly #answerId: unknown
  /** The caller's names of the tools, where the line has others. */
  readonly #names: ReadonlyMap<unknown, string>
  #text = ''
  #reasoning = ''
  readonly #details: ReasoningDetail[] = []
  readonly #calls: JsonObject[] = []
  readonly #annotations: JsonObject[] = []
  readonly #searching: WebSearches | undefined
  readonly #searches: JsonObject[] = []
  skipped = 0

  constructor(answerId: unknown, names: ReadonlyMap<unknown, string>, tellsSearches: boolean | undefined) {
    this.#answerId = answerId
    this.#names = names
    this.#searching = tellsSearches ? new WebSearches() : undefined
  }

  add(block: unknown): void {
    const { type, text, thinking, signature, data, citations } = isJsonObject(block) ? block : {}
    if (type === 'text' && typeof text === 'string') this.#addText(text, citations)
    else if (type === 'thinking' && typeof thinking === 'string') this.#addThinking(thinking, signature)
    else if (type === 'redacted_thinking' && typeof data === 'string')
      this.#details.push(encryptedDetail(this.#details.length, data))
    else if (type === 'tool_use' && isJsonObject(block)) this.#addCall(block)
    else if (!isJsonObject(block) || !this.#addSearch(block)) this.skipped++
  }

  #addSearch(block: JsonObject): boolean {
    const search = this.#searching?.resultOf(block)
    if (search) this.#searches.push(search)
    return search !== undefined || this.#searching?.begin(block) !== undefined
  }

  /**
   * @param refusal the text of the refusal.
   * @param isJson whether the text is JSON, which may be in a code block.
   */
  toJson(refusal: string | null, isJson: boolean): JsonObject {
    const text = isJson ? unfenced(this.#text) : this.#text
    return {
      role: 'assistant',
      content: text === '' ? null : text,
      refusal,
      ...(this.#reasoning !== '' && { reasoning_content: this.#reasoning }),
      ...(this.#details.length > 0 && { reasoning_details: this.#details }),
      ...(this.#calls.length > 0 && { tool_calls: this.#calls }),
      ...(this.#annotations.length > 0 && { annotations: this.#annotations }),
      ...(this.#searches.length > 0 && { web_searches: this.#searches }),
    }
  }

  #addText(text: string, citations: unknown): void {
    const start = this.#text.length
    this.#text += text
    const { annotations, skipped } = citationsOf(citations, start, this.#text.length)
    this.#annotations.push(...annotations)
    this.skipped += skipped
  }

  #addThinking(thinking: string, signature: unknown): void {
    this.#reasoning += thinking
    const signed = nonEmptyString(signature)
    if (signed !== undefined) this.#details.push(signedDetail(this.#details.length, signed, thinking.length))
  }

  #addCall({ id, name, input }: JsonObject): void {
    const fn = {
      name: this.#names.get(name) ?? name,
      arguments: JSON.stringify(isJsonObject(input) ? input : {}),
    }
    this.#calls.push({
      id: toolIdInAnswer(id, this.#answerId, this.#calls.length),
      type: 'function',
      function: fn,
    })
  }
}
