import { ChatChunks, type ChatTeller } from '../chat-chunks.ts'
import { isObject } from '../parts/json-object.ts'
import type { ReasoningMember } from '../parts/reasoning-details.ts'
import type { AnswerContext, JsonObject, StreamTranslator, TranslatedUsage } from '../translation.ts'
import { type CallItem, OutputItems } from './output-items.ts'
import { endedResponse, endStatus, responseId, responseShell } from './response.ts'

/** A comment keeps the caller's connection alive too. */
const COMMENT = ': ping\n\n'

/** OpenAI-style chat completion chunks as the stream of a response. */
export class ChatAsResponseStream implements StreamTranslator, ChatTeller<CallItem> {
  readonly #context: AnswerContext
  readonly #chunks: ChatChunks<CallItem>
  #shell: JsonObject = {}
  #items: OutputItems
  /** No two events are alike: they are numbered. */
  readonly textMember = undefined

  constructor(context: AnswerContext) {
    this.#context = context
    const id = responseId(undefined, context.created)
    this.#items = new OutputItems(id)
    this.#chunks = new ChatChunks(this, id)
  }

  get skipped(): number {
    return this.#chunks.skipped
  }

  push(json: object | undefined): string {
    if (isObject(json)) return this.#chunks.push(json)
    return this.#chunks.begun ? COMMENT : ''
  }

  copied(): void {}

  end(usage: TranslatedUsage): string {
    const { finishReason, reasoningTokens } = this.#chunks
    const events = this.#chunks.begin() + this.#items.end(endStatus(finishReason))
    const counts = { ...usage, reasoningTokens }
    const response = endedResponse(this.#shell, this.#items.output, finishReason, counts)
    return events + this.#items.event(`response.${response.status}`, { response })
  }

  begin(chunk: JsonObject): string {
    this.#shell = responseShell(chunk, this.#context)
    this.#items = new OutputItems(responseId(chunk.id, this.#context.created))
    const response = this.#shell
    const created = this.#items.event('response.created', { response })
    return created + this.#items.event('response.in_progress', { response })
  }

  think(text: string, member: ReasoningMember): string {
    return this.#items.think(text, member)
  }

  say(text: string): string {
    return this.#items.say('output_text', text)
  }

  refuse(text: string): string {
    return this.#items.say('refusal', text)
  }

  detail(detail: JsonObject): string {
    return this.#items.detail(detail)
  }

  cite(cited: JsonObject): string | undefined {
    return this.#items.annotate({ type: 'url_citation', ...cited })
  }

  newCall(id: string, name: string): CallItem {
    return this.#items.newCall(id, name)
  }

  call(call: CallItem, text: string): string {
    return this.#items.call(call, text)
  }
}
