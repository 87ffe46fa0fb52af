import { isJsonObject, type JsonObject, nonEmptyString, objectsIn } from '../../json/index.ts'
import { asksForUsage } from '../../operations/body/upstream-body.ts'
import { chatFinishReason } from '../../operations/index.ts'
import { countUnknownMembers, utf16Length } from '../chat-chunk-reader.ts'
import { FreeformReader, freeformText } from '../freeform-tools.ts'
import { type ReasoningForm, reasoningFormOf } from '../openrouter.ts'
import { DETAIL_FORMAT, encryptedDetail, type ReasoningDetail, signedDetail } from '../reasoning.ts'
import { ArgumentPieces } from '../tool-calls.ts'
import { AnswerIds, CHAT_ID_LENGTH } from '../tool-ids.ts'
import { type AnswerContext, modelOf, type StreamTranslator, type TranslatedUsage } from '../translation.ts'
import { chatUsage, messagesReasoningTokens } from '../usage.ts'
import { citationsOf, refusalText, type SearchBlock, WebSearches } from './answer.ts'
import { CodeBlockRemover, isPrompted } from './response-format.ts'
import { type CallersTools, callersTools, inputText } from './tools.ts'

const KNOWN_IN_DELTA: ReadonlySet<string> = new Set([
  'type',
  'text',
  'thinking',
  'partial_json',
  'signature',
  'citation',
])

/** Keeps the caller's connection alive. */
const COMMENT = ': ping\n\n'

/** Translates an Anthropic-style message stream into OpenAI-style chat completion chunks. */
export class MessageAsChatStream implements StreamTranslator {
  readonly #chunks: ChatChunkWriter
  readonly #open = new Map<unknown, OpenBlock>()
  /** The block of the last delta. */
  #latest: OpenBlock | undefined
  /** The length of the message's content so far, in UTF-16 units. */
  #contentUnits = 0
  /** The id of the answer, from which ids of tool calls are made if the line sends none. */
  #id: string
  readonly #request: JsonObject
  #tools: CallersTools | undefined
  readonly #ids: AnswerIds
  readonly #reasoning: ReasoningForm
  #toolCalls = 0
  #details = 0
  #stopReason: unknown
  #stopDetails: unknown
  #reasoningTokens: number | undefined
  readonly #searches: WebSearches | undefined
  /** Set if the answer is JSON that may be in a code block. */
  readonly #codeBlock: CodeBlockRemover | undefined
  textMember: string | undefined
  skipped = 0

  constructor(context: AnswerContext) {
    const { request, created, reportsSearches } = context
    this.#request = request
    this.#ids = new AnswerIds(request, CHAT_ID_LENGTH)
    this.#searches = reportsSearches && new WebSearches()
    this.#codeBlock = isPrompted(request) ? new CodeBlockRemover() : undefined
    this.#id = `chatcmpl-${created}`
    this.#reasoning = reasoningFormOf(request)
    const includesUsage = asksForUsage(request)
    this.#chunks = new ChatChunkWriter(context, includesUsage)
  }

  push(json: object | undefined): string {
    this.textMember = undefined
    if (!isJsonObject(json)) return COMMENT
    switch (json.type) {
      case 'ping':
        return COMMENT
      case 'message_start':
        return this.#start(json.message)
      case 'content_block_start':
        return this.#chunks.begin() + this.#startBlock(json.index, json.content_block)
      case 'content_block_delta':
        return this.#delta(json)
      case 'content_block_stop':
        return this.#stopBlock(json.index)
      case 'message_delta':
        this.#noteStop(json.delta)
        this.#reasoningTokens = messagesReasoningTokens(json.usage) ?? this.#reasoningTokens
        return ''
      case 'message_stop':
        return ''
    }
    this.skipped++
    return ''
  }

  copied(delta: string): void {
    if (this.#latest?.kind === 'thinking') this.#latest.units += utf16Length(delta)
    else if (this.#latest?.kind === 'text') this.#contentUnits += utf16Length(delta)
  }

  end(usage: TranslatedUsage): string {
    let events = this.#chunks.begin()
    for (const index of [...this.#open.keys()]) events += this.#stopBlock(index)
    if (this.#codeBlock) events += this.#chunks.text('content', this.#codeBlock.end())
    if (this.#stopReason === 'refusal') {
      events += this.#chunks.text('refusal', refusalText(this.#stopDetails))
    }
    const counts = { ...usage, reasoningTokens: this.#reasoningTokens }
    const finishReason = chatFinishReason(this.#stopReason, { toolCalls: this.#toolCalls > 0 })
    return events + this.#chunks.end(finishReason, counts)
  }

  #start(message: unknown): string {
    if (!isJsonObject(message)) return ''
    this.#reasoningTokens = messagesReasoningTokens(message.usage)
    this.#id = nonEmptyString(message.id) ?? this.#id
    this.#noteStop(message)
    let events = this.#chunks.begin(message)
    // Some messages begin with blocks, or come whole.
    for (const [index, block] of objectsIn(message.content).entries())
      events += this.#startBlock(index, block) + this.#stopBlock(index)
    this.textMember = undefined
    return events
  }

  #startBlock(index: unknown, block: unknown): string {
    if (!isJsonObject(block)) return ''
    switch (block.type) {
      case 'text':
        return this.#text(this.#openText(index, objectsIn(block.citations)), block.text)
      case 'thinking': {
        const signature = typeof block.signature === 'string' ? block.signature : ''
        const open: ThinkingBlock = { kind: 'thinking', signature, units: 0 }
        this.#open.set(index, open)
        return this.#thinking(open, block.thinking)
      }
      case 'redacted_thinking':
        this.#open.set(index, { kind: 'skipped' })
        return typeof block.data === 'string' ? this.#detail(encryptedDetail(this.#details, block.data)) : ''
      case 'tool_use': {
        const name = nonEmptyString(block.name)
        if (name !== undefined) return this.#startCall(index, name, block)
      }
    }
    return this.#startSearch(index, block)
  }

  /** Begins a search, or takes its result; any other block is left out. */
  #startSearch(index: unknown, block: JsonObject): string {
    const search = this.#searches?.begin(block)
    const result = this.#searches?.resultOf(block)
    this.#open.set(index, search ?? { kind: 'skipped' })
    if (!search && !result) this.skipped++
    return result ? this.#chunks.delta({ web_searches: [result] }) : ''
  }

  #openText(index: unknown, cited: readonly JsonObject[] = []): TextBlock {
    const block: TextBlock = { kind: 'text', from: this.#contentUnits, citations: [...cited] }
    this.#open.set(index, block)
    return block
  }

  #startCall(index: unknown, name: string, { id, input }: JsonObject): string {
    const call = this.#toolCalls++
    this.#tools ??= callersTools(this.#request)
    const called = this.#tools.names.get(name) ?? name
    const freeform = this.#tools.freeform.has(called) ? new FreeformReader() : undefined
    this.#open.set(index, { kind: 'tool', call, input, pieces: new ArgumentPieces(), freeform })
    const tool = freeform
      ? { type: 'custom', custom: { name: called, input: '' } }
      : { type: 'function', function: { name: called, arguments: '' } }
    const callId = this.#ids.idOf(id, this.#id, call)
    return this.#chunks.delta({
      tool_calls: [{ index: call, id: callId, ...tool }],
    })
  }

  #delta({ index, delta }: JsonObject): string {
    if (!isJsonObject(delta)) return ''
    const block = this.#open.get(index) ?? this.#openText(index)
    if (block.kind === 'skipped') return ''
    this.#latest = block
    const begin = this.#chunks.begin()
    const events = this.#pieceOf(block, delta)
    const unknown = countUnknownMembers(delta, KNOWN_IN_DELTA)
    this.skipped += unknown
    if (begin !== '' || unknown > 0) this.textMember = undefined
    return begin + events
  }

  #pieceOf(block: Exclude<OpenBlock, { kind: 'skipped' }>, delta: JsonObject): string {
    if (block.kind === 'text') {
      if (isJsonObject(delta.citation)) block.citations.push(delta.citation)
      return this.#text(block, delta.text)
    }
    if (block.kind === 'search') {
      this.#searches?.add(block, delta.partial_json)
      return ''
    }
    if (block.kind === 'thinking') {
      if (typeof delta.signature === 'string') block.signature = delta.signature
      return this.#thinking(block, delta.thinking)
    }
    const piece = typeof delta.partial_json === 'string' ? block.pieces.push(delta.partial_json) : ''
    if (piece === '') return ''
    if (block.freeform) return this.#chunks.input(block.call, block.freeform.push(piece))
    this.textMember = 'arguments'
    return this.#chunks.arguments(block.call, piece)
  }

  #text(block: TextBlock, text: unknown): string {
    if (typeof text !== 'string') return ''
    if (this.#codeBlock) return this.#chunks.text('content', this.#codeBlock.push(text))
    this.textMember = 'content'
    this.#latest = block
    this.#contentUnits += text.length
    return this.#chunks.text('content', text)
  }

  #thinking(block: ThinkingBlock, thinking: unknown): string {
    if (typeof thinking !== 'string') return ''
    const { member, isExcluded } = this.#reasoning
    if (isExcluded || thinking === '') return ''
    block.units += thinking.length
    if (member === 'reasoning') {
      const detail = { type: 'reasoning.text', format: DETAIL_FORMAT, index: this.#details, text: thinking }
      return this.#chunks.delta({ reasoning: thinking, reasoning_details: [detail] })
    }
    this.textMember = member
    return this.#chunks.text(member, thinking)
  }

  #stopBlock(index: unknown): string {
    const block = this.#open.get(index)
    this.#open.delete(index)
    switch (block?.kind) {
      case 'text':
        return this.#citations(block)
      case 'thinking':
        if (block.signature === '') return ''
        return this.#detail(signedDetail(this.#details, block.signature, block.units))
      case 'search':
        this.#searches?.finish(block)
        return ''
      case 'tool':
        return this.#endCall(block)
    }
    return ''
  }

  #endCall({ call, input, pieces, freeform }: ToolBlock): string {
    if (freeform) return this.#chunks.input(call, pieces.hasBegun ? freeform.end() : freeformText(input))
    return pieces.hasBegun ? '' : this.#chunks.arguments(call, inputText(input))
  }

  #citations(block: TextBlock): string {
    const { annotations, skipped } = citationsOf(block.citations, block.from, this.#contentUnits)
    this.skipped += skipped
    return annotations.length > 0 ? this.#chunks.delta({ annotations }) : ''
  }

  #detail(detail: ReasoningDetail): string {
    if (this.#reasoning.isExcluded) return ''
    this.#details++
    return this.#chunks.delta({ reasoning_details: [detail] })
  }

  #noteStop(delta: unknown): void {
    if (!isJsonObject(delta) || !delta.stop_reason) return
    this.#stopReason = delta.stop_reason
    this.#stopDetails = delta.stop_details
  }
}

/** A content block of the line's message that has begun and not ended. */
type OpenBlock = TextBlock | ThinkingBlock | ToolBlock | SearchBlock | { readonly kind: 'skipped' }

interface TextBlock {
  readonly kind: 'text'
  /** Where the text begins in the message's content, in UTF-16 units. */
  readonly from: number
  readonly citations: JsonObject[]
}

interface ThinkingBlock {
  readonly kind: 'thinking'
  signature: string
  /** The length so far, in UTF-16 units. */
  units: number
}

interface ToolBlock {
  readonly kind: 'tool'
  /** The position among the tool calls. */
  readonly call: number
  /** The arguments in the start of the block. */
  readonly input: unknown
  readonly pieces: ArgumentPieces
  /** Reads the text of a freeform tool; undefined for a function. */
  readonly freeform: FreeformReader | undefined
}

/** Writes the chunks of one OpenAI-style stream, each as a complete event. */
class ChatChunkWriter {
  readonly #context: AnswerContext
  readonly #includesUsage: boolean
  /** The JSON before the choices, the same in each chunk; empty until the stream has begun. */
  #before = ''
  /** The JSON behind the choices. */
  readonly #after: string

  /**
   * @param includesUsage whether the caller asked for a last chunk with the usage; all others then hold `"usage": null`.
   */
  constructor(context: AnswerContext, includesUsage: boolean) {
    this.#context = context
    this.#includesUsage = includesUsage
    this.#after = includesUsage ? '],"usage":null}\n\n' : ']}\n\n'
  }

  get begun(): boolean {
    return this.#before !== ''
  }

  /** Returns the first chunk, which holds the role; '' if it has been written. */
  begin(message: JsonObject = {}): string {
    if (this.begun) return ''
    const { created } = this.#context
    const head = JSON.stringify({
      id: nonEmptyString(message.id) ?? `chatcmpl-${created}`,
      object: 'chat.completion.chunk',
      created,
      model: modelOf(message, this.#context),
    })
    this.#before = `data: ${head.slice(0, -1)},"choices":[`
    return this.delta({ role: 'assistant', content: '' })
  }

  delta(delta: JsonObject): string {
    return this.#choice(JSON.stringify(delta), 'null')
  }

  /** Returns a chunk with one text member; '' for an empty text. */
  text(member: string, text: string): string {
    return text === '' ? '' : this.#choice(`{"${member}":${JSON.stringify(text)}}`, 'null')
  }

  /** Returns a chunk with a piece of the arguments of a tool call. */
  arguments(call: number, text: string): string {
    const fn = `{"arguments":${JSON.stringify(text)}}`
    return this.#choice(`{"tool_calls":[{"index":${call},"function":${fn}}]}`, 'null')
  }

  /** Returns a chunk with a piece of the input of a freeform tool; '' for an empty piece. */
  input(call: number, text: string): string {
    return text === '' ? '' : this.delta({ tool_calls: [{ index: call, custom: { input: text } }] })
  }

  /** Returns the finish reason, the usage if the caller asked for it, and the last event. */
  end(finishReason: string, usage: TranslatedUsage): string {
    const counts = this.#includesUsage ? chatUsage(usage) : undefined
    const usageChunk = counts ? `${this.#before}],"usage":${JSON.stringify(counts)}}\n\n` : ''
    return `${this.#choice('{}', JSON.stringify(finishReason))}${usageChunk}data: [DONE]\n\n`
  }

  #choice(delta: string, finishReason: string): string {
    return `${this.#before}{"index":0,"delta":${delta},"finish_reason":${finishReason}}${this.#after}`
  }
}
