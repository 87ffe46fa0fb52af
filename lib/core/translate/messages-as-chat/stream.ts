import { isJsonObject, type JsonObject, nonEmptyString } from '../../json/index.ts'
import { ChatChunkReader, type ChatEventWriter } from '../chat-chunk-reader.ts'
import { DETAIL_FORMAT, type ReasoningMember, textOfDetail, UNSIGNED, unsignedOf } from '../reasoning.ts'
import { type AnswerContext, modelOf, type StreamTranslator, type TranslatedUsage } from '../translation.ts'
import { messagesUsage } from '../usage.ts'
import { messageStop } from './answer.ts'
import { callersNames } from './tools.ts'

/** Blocks at their beginning, as JSON: in a stream of small pieces of both kinds, every piece begins one. */
const EMPTY = {
  text: '{"type":"text","text":""}',
  thinking: '{"type":"thinking","thinking":"","signature":""}',
}

const PING = 'event: ping\ndata: {"type":"ping"}\n\n'
const STOP = 'event: message_stop\ndata: {"type":"message_stop"}\n\n'

/** Translates OpenAI-style chat completion chunks into an Anthropic-style message stream. */
export class ChatAsMessageStream implements StreamTranslator, ChatEventWriter<Block> {
  readonly #context: AnswerContext
  readonly #fallbackId: string
  readonly #estimatedInput: number
  readonly #blocks = new BlockSequence()
  readonly #chunks: ChatChunkReader<Block>
  readonly #request: JsonObject
  #names: ReadonlyMap<unknown, string> | undefined
  #refusal: string | undefined
  textMember: string | undefined

  constructor(context: AnswerContext) {
    const { request, created, estimatedInputTokens } = context
    this.#context = context
    this.#request = request
    this.#estimatedInput = estimatedInputTokens
    this.#fallbackId = `msg_${created}`
    this.#chunks = new ChatChunkReader(this, this.#fallbackId, request)
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
    const { lastChoice, hasToolCalls, reasoningTokens } = this.#chunks
    const start = this.#chunks.begin()
    const content = { toolCalls: hasToolCalls, refusal: this.#refusal }
    const delta = messageStop(lastChoice, this.#request, content)
    const counts = messagesUsage({ ...usage, reasoningTokens })
    const end = JSON.stringify({ type: 'message_delta', delta, usage: counts })
    return `${start}${this.#blocks.end()}event: message_delta\ndata: ${end}\n\n${STOP}`
  }

  begin(chunk: JsonObject): string {
    const message = {
      id: nonEmptyString(chunk.id) ?? this.#fallbackId,
      type: 'message',
      role: 'assistant',
      model: modelOf(chunk, this.#context),
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
    this.#refusal = (this.#refusal ?? '') + text
    return this.#add('text', text)
  }

  /** Takes the signature of an Anthropic-style model's thinking, or thinking that is encrypted. */
  reasoningDetail(detail: JsonObject): string | undefined {
    const { format, data, signature } = detail
    // Hosted routers repeat the text in the detail.
    const hasText = textOfDetail(detail) !== undefined
    if (format !== DETAIL_FORMAT) return hasText ? '' : undefined
    if (hasText && typeof signature !== 'string') return ''
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
      return this.#blocks.add(blockFrom(kind, EMPTY[kind]), text)
    if (last === open) this.textMember = kind
    return this.#blocks.add(last, text)
  }
}

/** A content block of the caller's message. */
interface Block {
  readonly kind: 'text' | 'thinking' | 'tool_use' | 'redacted_thinking'
  /** The block in `content_block_start`, as JSON. */
  readonly start: string
  /** Finds the end of the arguments; for tool calls only. */
  readonly json: JsonScanner | undefined
  /** The signature of a thinking block, sent as the block closes. Empty until it comes. */
  signature: string
  /** Text that came before the block could be opened. */
  buffered: string
  closed: boolean
}

export function newBlock(kind: Block['kind'], content: object): Block {
  return blockFrom(kind, JSON.stringify({ type: kind, ...content }))
}

function blockFrom(kind: Block['kind'], start: string): Block {
  const json = kind === 'tool_use' ? new JsonScanner() : undefined
  return { kind, start, json, signature: '', buffered: '', closed: false }
}

/**
 * Most UTF-16 units that are buffered until the open block ends; with more, the open block counts as ended. Upstreams that
 * interleave the pieces of several tool calls are rare, and their arguments are short.
 */
const MAX_BUFFERED = 64 * 1024

/** The characters that a block adds to the buffer beside its text. */
const BLOCK_SIZE = 64

const DELTA = {
  text: '{"type":"text_delta","text":',
  thinking: '{"type":"thinking_delta","thinking":',
  tool_use: '{"type":"input_json_delta","partial_json":',
  redacted_thinking: '',
}
const SIGNATURE = '{"type":"signature_delta","signature":'

/**
 * Writes content blocks one after another, as Anthropic's protocol demands, in any order of their pieces. A tool
 * call stays open until its arguments are complete; what comes for other blocks meanwhile is buffered.
 */
export class BlockSequence {
  #index = -1
  #open: Block | undefined
  #queue: Block[] = []
  #buffered = 0
  /** The member in which thinking without a signature came. */
  reasoningMember: ReasoningMember = 'reasoning_content'

  get open(): Block | undefined {
    return this.#open
  }

  /** The block that was added last. */
  get last(): Block | undefined {
    return this.#queue.at(-1) ?? this.#open
  }

  /**
   * Adds a piece of a block. A new block opens as soon as no other is open.
   *
   * @returns the events that can be sent.
   * @throws {RangeError} if the block was closed because too much was buffered behind it.
   */
  add(block: Block, text: string): string {
    if (block === this.#open) return this.#write(block, text) + this.#advance()
    if (block.closed) {
      if (text.trim() === '') return ''
      throw new RangeError('a tool call continued after the next one had to begin')
    }
    if (!this.#queue.includes(block)) {
      this.#queue.push(block)
      this.#buffered += BLOCK_SIZE
    }
    block.buffered += text
    this.#buffered += text.length
    return this.#advance()
  }

  /** Adds a delta of another type to the open block; returns undefined if a block of another kind is open. */
  addDelta(kind: Block['kind'], delta: object): string | undefined {
    return this.#open?.kind === kind ? this.#delta(JSON.stringify(delta)) : undefined
  }

  /** Writes all that is buffered and closes the last block. */
  end(): string {
    let events = this.#close()
    while (this.#queue.length > 0) events += this.#openNext() + this.#close()
    return events
  }

  #advance(): string {
    let events = ''
    while (this.#queue.length > 0 && (this.#mayClose() || this.#buffered > MAX_BUFFERED))
      events += this.#close() + this.#openNext()
    return events
  }

  #mayClose(): boolean {
    return this.#open?.json === undefined || this.#open.json.complete
  }

  #openNext(): string {
    const block = this.#queue.shift()
    if (!block) return ''
    const { buffered, start } = block
    this.#buffered -= buffered.length + BLOCK_SIZE
    block.buffered = ''
    this.#open = block
    this.#index++
    const type = 'content_block_start'
    const event = `event: ${type}\ndata: {"type":"${type}","index":${this.#index},"content_block":${start}}\n\n`
    return event + this.#write(block, buffered)
  }

  #write(block: Block, text: string): string {
    if (text === '') return ''
    block.json?.push(text)
    return this.#delta(`${DELTA[block.kind]}${JSON.stringify(text)}}`)
  }

  #delta(delta: string): string {
    return `event: content_block_delta\ndata: {"type":"content_block_delta","index":${this.#index},"delta":${delta}}\n\n`
  }

  #close(): string {
    const block = this.#open
    if (!block) return ''
    this.#open = undefined
    block.closed = true
    const signature =
      block.kind === 'thinking'
        ? this.#delta(`${SIGNATURE}${JSON.stringify(block.signature || unsignedOf(this.reasoningMember))}}`)
        : ''
    const type = 'content_block_stop'
    return `${signature}event: ${type}\ndata: {"type":"${type}","index":${this.#index}}\n\n`
  }
}

/** Finds the end of a JSON object or array that comes in pieces, without storing it. */
export class JsonScanner {
  #depth = 0
  #inString = false
  #escaped = false
  /** Whether the JSON has begun and each bracket is closed. */
  complete = false

  push(piece: string): void {
    for (let i = 0; i < piece.length; i++) this.#step(piece.charCodeAt(i))
  }

  #step(code: number): void {
    if (this.#escaped) this.#escaped = false
    else if (this.#inString) {
      if (code === BACKSLASH) this.#escaped = true
      else if (code === QUOTE) this.#inString = false
    } else if (code === QUOTE) this.#inString = true
    else if (code === OPEN_BRACE || code === OPEN_BRACKET) this.#depth++
    else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
      this.#depth--
      this.complete = this.#depth <= 0
    }
  }
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
