import { isJsonObject, type JsonObject, nonEmptyString } from '../../json/index.ts'
import { stopReasonOf } from '../answers/finish-reasons.ts'
import { messagesUsage } from '../answers/usage.ts'
import { DETAIL_FORMAT, type ReasoningMember, UNSIGNED } from '../parts/reasoning-details.ts'
import { ChatChunkReader, type ChatEventWriter } from '../streams/chat-chunk-reader.ts'
import type { AnswerContext, StreamTranslator, TranslatedUsage } from '../translation.ts'
import { type Block, BlockSequence, newBlock } from './block-sequence.ts'
import { callersNames } from './tools.ts'

/** The content of a block at its beginning. */
const EMPTY = { text: { text: '' }, thinking: { thinking: '', signature: '' } }

const PING = 'event: ping\ndata: {"type":"ping"}\n\n'
const STOP = 'event: message_stop\ndata: {"type":"message_stop"}\n\n'

/** Translates OpenAI-style chat completion chunks into an Anthropic-style message stream. */
export class ChatAsMessageStream implements StreamTranslator, ChatEventWriter<Block> {
  readonly #fallbackId: string
  readonly #estimatedInput: number
  readonly #blocks = new BlockSequence()
  readonly #chunks: ChatChunkReader<Block>
  readonly #request: JsonObject
  #names: ReadonlyMap<unknown, string> | undefined
  #refused = false
  textMember: string | undefined

  constructor({ request, created, estimatedInputTokens }: AnswerContext) {
    this.#request = request
    this.#estimatedInput = estimatedInputTokens
    this.#fallbackId = `msg_${created}`
    this.#chunks = new ChatChunkReader(this, this.#fallbackId)
  }

  get skipped(): number {
    return this.#chunks.skipped
  }

  push(json: object | undefined): string {
    this.textMember = undefined
    if (isJsonObject(json)) return this.#chunks.push(json)
    return this.#chunks.begun ? PING : ''
  }

  copied(): void {}

  end(usage: TranslatedUsage): string {
    const { finishReason, hasToolCalls, reasoningTokens } = this.#chunks
    const start = this.#chunks.begin()
    const delta = {
      stop_reason: stopReasonOf(finishReason, { toolCalls: hasToolCalls, refusal: this.#refused }),
      stop_sequence: null,
      // The text of the refusal is in the content.
      ...(this.#refused && { stop_details: { type: 'refusal', category: null, explanation: null } }),
    }
    const counts = messagesUsage({ ...usage, reasoningTokens })
    const end = JSON.stringify({ type: 'message_delta', delta, usage: counts })
    return `${start}${this.#blocks.end()}event: message_delta\ndata: ${end}\n\n${STOP}`
  }

  begin({ id, model }: JsonObject): string {
    const message = {
      id: nonEmptyString(id) ?? this.#fallbackId,
      type: 'message',
      role: 'assistant',
      model: typeof model === 'string' ? model : '',
      content: [],
      stop_reason: null,
      stop_sequence: null,
      // The true count is known at the end.
      usage: messagesUsage({ inputTokens: this.#estimatedInput }),
    }
    return `event: message_start\ndata: ${JSON.stringify({ type: 'message_start', message })}\n\n`
  }

  reasoning(text: string, member: ReasoningMember): string {
    this.#blocks.reasoningMember = member
    return this.#add('thinking', text)
  }

  text(text: string): string {
    return this.#add('text', text)
  }

  refusal(text: string): string {
    this.#refused = true
    return this.#add('text', text)
  }

  /** Takes the signature of an Anthropic-style model's thinking, or thinking that is encrypted. */
  reasoningDetail({ format, data, signature, text }: JsonObject): string | undefined {
    if (format !== DETAIL_FORMAT) return undefined
    // Hosted routers repeat the text in the detail.
    if (typeof text === 'string' && typeof signature !== 'string') return ''
    if (typeof data === 'string') return this.#blocks.add(newBlock('redacted_thinking', { data }), '')
    const { last } = this.#blocks
    if (typeof signature !== 'string' || last?.kind !== 'thinking' || last.closed) return undefined
    last.signature = signature
    return ''
  }

  citation({ url, title }: JsonObject): string | undefined {
    if (typeof url !== 'string') return undefined
    const page = { url, title: nonEmptyString(title) ?? null, encrypted_index: UNSIGNED, cited_text: '' }
    const citation = { type: 'web_search_result_location', ...page }
    return this.#blocks.addDelta('text', { type: 'citations_delta', citation })
  }

  newToolCall(id: string, name: string): Block {
    this.#names ??= callersNames(this.#request)
    return newBlock('tool_use', { id, name: this.#names.get(name) ?? name, input: {} })
  }

  toolArguments(block: Block, text: string): string {
    return this.#blocks.add(block, text)
  }

  #add(kind: 'text' | 'thinking', text: string): string {
    const { open, last } = this.#blocks
    if (last?.kind !== kind || last.signature !== '')
      return this.#blocks.add(newBlock(kind, EMPTY[kind]), text)
    if (last === open) this.textMember = kind
    return this.#blocks.add(last, text)
  }
}
