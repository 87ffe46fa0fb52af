import { isJsonObject, type JsonObject } from '../../json/index.ts'
import type { ReasoningMember } from '../parts/reasoning-details.ts'
import { ChatChunkReader, type ChatEventWriter } from '../streams/chat-chunk-reader.ts'
import type { AnswerContext, StreamTranslator, TranslatedUsage } from '../translation.ts'
import { type NamespacedFunction, namespacedFunctions } from './namespaces.ts'
import { type CallItem, OutputItems } from './output-items.ts'
import { endedResponse, endStatus, responseId, responseShell } from './response.ts'
import { reasoningForm } from './text-parts.ts'
import { includesSources } from './web-search-item.ts'

/** Keeps the caller's connection alive. */
const COMMENT = ': ping\n\n'

/** Translates OpenAI-style chat completion chunks into the stream of a response. */
export class ChatAsResponseStream implements StreamTranslator, ChatEventWriter<CallItem> {
  readonly #context: AnswerContext
  readonly #chunks: ChatChunkReader<CallItem>
  #shell: JsonObject = {}
  #items: OutputItems
  /** The functions of the caller's namespaces. */
  #functions: ReadonlyMap<unknown, NamespacedFunction> | undefined
  /** Never set: events are numbered, so that no two are alike. */
  readonly textMember = undefined

  constructor(context: AnswerContext) {
    this.#context = context
    const id = responseId(undefined, context.created)
    this.#items = new OutputItems(id, reasoningForm(context.request))
    this.#chunks = new ChatChunkReader(this, id)
  }

  get skipped(): number {
    return this.#chunks.skipped
  }

  get nextEventNumber(): number {
    return this.#items.nextEventNumber
  }

  push(json: object | undefined): string {
    if (isJsonObject(json)) return this.#chunks.push(json)
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
    const id = responseId(chunk.id, this.#context.created)
    this.#items = new OutputItems(id, reasoningForm(this.#context.request))
    const response = this.#shell
    const created = this.#items.event('response.created', { response })
    return created + this.#items.event('response.in_progress', { response })
  }

  reasoning(text: string, member: ReasoningMember): string {
    return this.#items.reasoning(text, member)
  }

  text(text: string): string {
    return this.#items.text('output_text', text)
  }

  refusal(text: string): string {
    return this.#items.text('refusal', text)
  }

  reasoningDetail(detail: JsonObject): string {
    return this.#items.reasoningDetail(detail)
  }

  citation(cited: JsonObject): string | undefined {
    return this.#items.annotate({ type: 'url_citation', ...cited })
  }

  webSearch(search: JsonObject): string {
    return this.#items.webSearch(search, includesSources(this.#context.request))
  }

  newToolCall(id: string, name: string): CallItem {
    this.#functions ??= namespacedFunctions(this.#context.request)
    return this.#items.newToolCall(id, this.#functions.get(name) ?? { name })
  }

  toolArguments(call: CallItem, text: string): string {
    return this.#items.toolArguments(call, text)
  }
}
