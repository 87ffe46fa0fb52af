import { ChatChunks, type ChatTeller } from '../chat-chunks.ts'
import { isObject, textIn } from '../parts/json-object.ts'
import { DETAIL_FORMAT, type ReasoningMember, UNSIGNED } from '../parts/reasoning-details.ts'
import { stopReasonOf } from '../stop-reasons.ts'
import type { AnswerContext, JsonObject, StreamTranslator, TranslatedUsage } from '../translation.ts'
import { messagesUsage } from '../usage.ts'
import { type Block, BlockSequence, newBlock } from './block-sequence.ts'

/** What a block begins with. */
const EMPTY = { text: { text: '' }, thinking: { thinking: '', signature: '' } }

const PING = 'event: ping\ndata: {"type":"ping"}\n\n'
const STOP = 'event: message_stop\ndata: {"type":"message_stop"}\n\n'

/** OpenAI-style chat completion chunks as an Anthropic-style message stream. */
export class ChatAsMessageStream implements StreamTranslator, ChatTeller<Block> {
  readonly #ownId: string
  readonly #blocks = new BlockSequence()
  readonly #chunks: ChatChunks<Block>
  #refused = false
  textMember: string | undefined

  constructor({ created }: AnswerContext) {
    this.#ownId = `msg_${created}`
    this.#chunks = new ChatChunks(this, this.#ownId)
  }

  get skipped(): number {
    return this.#chunks.skipped
  }

  push(json: object | undefined): string {
    this.textMember = undefined
    if (isObject(json)) return this.#chunks.push(json)
    return this.#chunks.begun ? PING : ''
  }

  copied(): void {}

  end(usage: TranslatedUsage): string {
    const { finishReason, called, reasoningTokens } = this.#chunks
    const start = this.#chunks.begin()
    const delta = {
      stop_reason: stopReasonOf(finishReason, { toolCalls: called, refusal: this.#refused }),
      stop_sequence: null,
      // The words are in the content.
      ...(this.#refused && { stop_details: { type: 'refusal', category: null, explanation: null } }),
    }
    const counts = messagesUsage({ ...usage, reasoningTokens })
    const end = JSON.stringify({ type: 'message_delta', delta, usage: counts })
    return `${start}${this.#blocks.end()}event: message_delta\ndata: ${end}\n\n${STOP}`
  }

  begin({ id, model }: JsonObject): string {
    const message = {
      id: textIn(id) ?? this.#ownId,
      type: 'message',
      role: 'assistant',
      model: typeof model === 'string' ? model : '',
      content: [],
      stop_reason: null,
      stop_sequence: null,
      // Not known before the end.
      usage: messagesUsage({}),
    }
    return `event: message_start\ndata: ${JSON.stringify({ type: 'message_start', message })}\n\n`
  }

  think(text: string, member: ReasoningMember): string {
    this.#blocks.reasoningMember = member
    return this.#tell('thinking', text)
  }

  say(text: string): string {
    return this.#tell('text', text)
  }

  refuse(text: string): string {
    this.#refused = true
    return this.#tell('text', text)
  }

  /** What an Anthropic-style model thought comes with a signature at its end, or encrypted. */
  detail({ format, data, signature, text }: JsonObject): string | undefined {
    if (format !== DETAIL_FORMAT) return undefined
    // Hosted routers tell the text once more.
    if (typeof text === 'string' && typeof signature !== 'string') return ''
    if (typeof data === 'string') return this.#blocks.add(newBlock('redacted_thinking', { data }), '')
    const { last } = this.#blocks
    if (typeof signature !== 'string' || last?.kind !== 'thinking' || last.closed) return undefined
    last.signature = signature
    return ''
  }

  cite({ url, title }: JsonObject): string | undefined {
    if (typeof url !== 'string') return undefined
    const page = { url, title: textIn(title) ?? null, encrypted_index: UNSIGNED, cited_text: '' }
    const citation = { type: 'web_search_result_location', ...page }
    return this.#blocks.addDelta('text', { type: 'citations_delta', citation })
  }

  newCall(id: string, name: string): Block {
    return newBlock('tool_use', { id, name, input: {} })
  }

  call(block: Block, text: string): string {
    return this.#blocks.add(block, text)
  }

  #tell(kind: 'text' | 'thinking', text: string): string {
    const { open, last } = this.#blocks
    if (last?.kind !== kind || last.signature !== '')
      return this.#blocks.add(newBlock(kind, EMPTY[kind]), text)
    if (last === open) this.textMember = kind
    return this.#blocks.add(last, text)
  }
}
