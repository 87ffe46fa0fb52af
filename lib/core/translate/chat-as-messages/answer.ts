import {
  isJsonObject,
  type JsonObject,
  nonEmptyString,
  objectsIn,
  parseJsonObject,
} from '../../json/index.ts'
import { chatFinishReason } from '../../operations/index.ts'
import { type ReasoningForm, reasoningFormOf } from '../openrouter.ts'
import { encryptedDetail, type ReasoningDetail, signedDetail } from '../reasoning.ts'
import { AnswerIds, CHAT_ID_LENGTH } from '../tool-ids.ts'
import { type AnswerContext, modelOf, type TranslatedAnswer, type TranslatedUsage } from '../translation.ts'
import { chatUsage, messagesReasoningTokens } from '../usage.ts'
import { SEARCH_NAME } from '../web-search.ts'
import { isPrompted, withoutCodeBlock } from './response-format.ts'
import { type CallersTools, callersTools, toolCallOf } from './tools.ts'

/** Translates an Anthropic-style message into a chat completion. */
export function messageAsChatAnswer(
  json: JsonObject,
  usage: TranslatedUsage,
  context: AnswerContext,
): TranslatedAnswer {
  const { request, created, reportsSearches } = context
  const id = nonEmptyString(json.id) ?? `chatcmpl-${created}`
  const message = new ChatMessage(id, request, reportsSearches)
  for (const block of Array.isArray(json.content) ? json.content : []) message.add(block)
  const refusal = json.stop_reason === 'refusal' ? refusalText(json.stop_details) : null
  const counts = chatUsage({ ...usage, reasoningTokens: messagesReasoningTokens(json.usage) })
  return {
    body: {
      id,
      object: 'chat.completion',
      created,
      model: modelOf(json, context),
      choices: [
        {
          index: 0,
          message: message.toJson(refusal, isPrompted(request)),
          logprobs: null,
          finish_reason: chatFinishReason(json.stop_reason, { toolCalls: message.hasCalls }),
        },
      ],
      ...(counts && { usage: counts }),
      // OpenRouter's SDK takes no answer without it.
      system_fingerprint: null,
    },
    skipped: message.skipped,
  }
}

/** OpenAI's refusals have a text, Anthropic's mostly have none. */
const DEFAULT_REFUSAL = 'The model declined to answer.'

/** Returns the text of an Anthropic-style refusal. */
export function refusalText(stopDetails: unknown): string {
  const explanation = isJsonObject(stopDetails) ? nonEmptyString(stopDetails.explanation) : undefined
  return explanation ?? DEFAULT_REFUSAL
}

/** Collects content blocks into the message of a chat. */
class ChatMessage {
  readonly #answerId: unknown
  readonly #tools: CallersTools
  readonly #ids: AnswerIds
  readonly #form: ReasoningForm
  #text = ''
  #reasoning = ''
  readonly #details: ReasoningDetail[] = []
  readonly #calls: JsonObject[] = []
  readonly #annotations: JsonObject[] = []
  readonly #searching: WebSearches | undefined
  readonly #searches: JsonObject[] = []
  skipped = 0

  constructor(answerId: unknown, request: JsonObject, reportsSearches: boolean | undefined) {
    this.#answerId = answerId
    this.#tools = callersTools(request)
    this.#ids = new AnswerIds(request, CHAT_ID_LENGTH)
    this.#form = reasoningFormOf(request)
    this.#searching = reportsSearches ? new WebSearches() : undefined
  }

  get hasCalls(): boolean {
    return this.#calls.length > 0
  }

  add(block: unknown): void {
    const { type, text, thinking, signature, data, citations } = isJsonObject(block) ? block : {}
    if (type === 'text' && typeof text === 'string') this.#addText(text, citations)
    else if (type === 'thinking' && typeof thinking === 'string') this.#addThinking(thinking, signature)
    else if (type === 'redacted_thinking' && typeof data === 'string') {
      if (!this.#form.isExcluded) this.#details.push(encryptedDetail(this.#details.length, data))
    } else if (type === 'tool_use' && isJsonObject(block) && nonEmptyString(block.name) !== undefined)
      this.#addCall(block)
    else if (!isJsonObject(block) || !this.#addSearch(block)) this.skipped++
  }

  #addCall(block: JsonObject): void {
    const id = this.#ids.idOf(block.id, this.#answerId, this.#calls.length)
    this.#calls.push(toolCallOf(block, id, this.#tools))
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
    const text = isJson ? withoutCodeBlock(this.#text) : this.#text
    return {
      role: 'assistant',
      content: text === '' ? null : text,
      refusal,
      ...(this.#reasoning !== '' && { [this.#form.member]: this.#reasoning }),
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
    if (this.#form.isExcluded) return
    this.#reasoning += thinking
    const signed = nonEmptyString(signature)
    if (signed === undefined) return
    const detail = signedDetail(this.#details.length, signed, thinking.length)
    this.#details.push(this.#form.member === 'reasoning' ? { ...detail, text: thinking } : detail)
  }
}

/**
 * Translates the citations of a text block into annotations of the text from `start` to `end`. Only citations of web
 * pages have a counterpart.
 */
export function citationsOf(
  citations: unknown,
  start: number,
  end: number,
): { annotations: readonly JsonObject[]; skipped: number } {
  const all = objectsIn(citations)
  const annotations = all.flatMap((citation) => {
    const source = annotationSource(citation)
    // A text that is missing cites nothing.
    if (!source || start === end) return []
    return [{ type: 'url_citation', url_citation: { start_index: start, end_index: end, ...source } }]
  })
  return { annotations, skipped: all.length - annotations.length }
}

/** Returns the address and the title of a cited web page; undefined for any other source. */
function annotationSource({ type, url, source, title }: JsonObject): JsonObject | undefined {
  const page =
    type === 'web_search_result_location' ? url : type === 'search_result_location' ? source : undefined
  if (typeof page !== 'string' || !/^https?:\/\//i.test(page)) return undefined
  return { url: page, title: nonEmptyString(title) ?? page }
}

/** Longer inputs of a search are not read. */
const MAX_INPUT_LENGTH = 16 * 1024

export interface SearchBlock {
  readonly kind: 'search'
  readonly id: unknown
  /** The input as JSON, as far as it has come. */
  input: string
}

/**
 * Puts together the web searches of an answer: two blocks of a message, the search and its result. A chat has no counterpart,
 * so that they are passed on, in `web_searches`, only if the chat is translated into something that has.
 */
export class WebSearches {
  readonly #queries = new Map<unknown, string>()

  /** Begins a search; returns undefined for any other block. */
  begin({ type, name, id, input }: JsonObject): SearchBlock | undefined {
    if (type !== 'server_tool_use' || name !== SEARCH_NAME) return undefined
    this.#note(id, input)
    return { kind: 'search', id, input: '' }
  }

  add(block: SearchBlock, piece: unknown): void {
    if (typeof piece === 'string' && block.input.length < MAX_INPUT_LENGTH) block.input += piece
  }

  /** Takes note of the input of a search, which has come whole. */
  finish({ id, input }: SearchBlock): void {
    this.#note(id, parseJsonObject(input))
  }

  /** Returns the search that a block is the result of, for `web_searches`; undefined for any other block. */
  resultOf({ type, tool_use_id: id, content }: JsonObject): JsonObject | undefined {
    if (type !== 'web_search_tool_result') return undefined
    const urls = objectsIn(content).flatMap(({ url }) => nonEmptyString(url) ?? [])
    return { query: this.#queries.get(id), urls, failed: !Array.isArray(content) }
  }

  #note(id: unknown, input: unknown): void {
    const query = isJsonObject(input) ? nonEmptyString(input.query) : undefined
    if (query !== undefined) this.#queries.set(id, query)
  }
}
