import { isJsonObject, type JsonObject, nonEmptyString } from '../../json/index.ts'
import { finishReasonOf, refusalText } from '../answers/finish-reasons.ts'
import { messagesReasoningTokens } from '../answers/usage.ts'
import { encryptedDetail, type ReasoningDetail, signedDetail } from '../parts/reasoning-details.ts'
import { toolIdInAnswer } from '../parts/tool-ids.ts'
import { countUnknownMembers, utf16Length } from '../streams/delta-members.ts'
import type { AnswerContext, StreamTranslator, TranslatedUsage } from '../translation.ts'
import { ChatChunkWriter } from './chunk-writer.ts'
import { citationsOf } from './citations.ts'
import type { OpenBlock, TextBlock, ThinkingBlock } from './open-block.ts'
import { isPrompted } from './prompted-format.ts'
import { callersNames } from './tools.ts'
import { Unfenced } from './unfenced.ts'
import { WebSearches } from './web-searches.ts'

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
  #names: ReadonlyMap<unknown, string> | undefined
  #toolCalls = 0
  #details = 0
  #stopReason: unknown
  #stopDetails: unknown
  #reasoningTokens: number | undefined
  readonly #searches: WebSearches | undefined
  /** Set if the answer is JSON that may be in a code block. */
  readonly #unfenced: Unfenced | undefined
  textMember: string | undefined
  skipped = 0

  constructor({ request, created, tellsSearches }: AnswerContext) {
    this.#request = request
    this.#searches = tellsSearches && new WebSearches()
    this.#unfenced = isPrompted(request) ? new Unfenced() : undefined
    const { stream_options: options } = request
    this.#id = `chatcmpl-${created}`
    const includesUsage = isJsonObject(options) && options.include_usage === true
    this.#chunks = new ChatChunkWriter(created, includesUsage)
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
    if (this.#unfenced) events += this.#chunks.text('content', this.#unfenced.end())
    if (this.#stopReason === 'refusal') {
      events += this.#chunks.text('refusal', refusalText(this.#stopDetails))
    }
    const counts = { ...usage, reasoningTokens: this.#reasoningTokens }
    return events + this.#chunks.end(finishReasonOf(this.#stopReason), counts)
  }

  #start(message: unknown): string {
    if (!isJsonObject(message)) return ''
    this.#reasoningTokens = messagesReasoningTokens(message.usage)
    this.#id = nonEmptyString(message.id) ?? this.#id
    return this.#chunks.begin(message)
  }

  #startBlock(index: unknown, block: unknown): string {
    if (!isJsonObject(block)) return ''
    switch (block.type) {
      case 'text':
        return this.#text(this.#openText(index), block.text)
      case 'thinking': {
        const signature = typeof block.signature === 'string' ? block.signature : ''
        const open: ThinkingBlock = { kind: 'thinking', signature, units: 0 }
        this.#open.set(index, open)
        return this.#thinking(open, block.thinking)
      }
      case 'redacted_thinking':
        this.#open.set(index, { kind: 'skipped' })
        return typeof block.data === 'string' ? this.#detail(encryptedDetail(this.#details, block.data)) : ''
      case 'tool_use':
        return this.#startCall(index, block)
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

  #openText(index: unknown): TextBlock {
    const block: TextBlock = { kind: 'text', from: this.#contentUnits, citations: [] }
    this.#open.set(index, block)
    return block
  }

  #startCall(index: unknown, { id, name, input }: JsonObject): string {
    const call = this.#toolCalls++
    this.#open.set(index, { kind: 'tool', call, input, hasArguments: false })
    this.#names ??= callersNames(this.#request)
    const called = this.#names.get(name) ?? name
    const fn = { name: typeof called === 'string' ? called : '', arguments: '' }
    const callId = toolIdInAnswer(id, this.#id, call)
    return this.#chunks.delta({
      tool_calls: [{ index: call, id: callId, type: 'function', function: fn }],
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
    if (typeof delta.partial_json !== 'string' || delta.partial_json === '') return ''
    this.textMember = 'arguments'
    block.hasArguments = true
    return this.#chunks.arguments(block.call, delta.partial_json)
  }

  #text(block: TextBlock, text: unknown): string {
    if (typeof text !== 'string') return ''
    if (this.#unfenced) return this.#chunks.text('content', this.#unfenced.push(text))
    this.textMember = 'content'
    this.#latest = block
    this.#contentUnits += text.length
    return this.#chunks.text('content', text)
  }

  #thinking(block: ThinkingBlock, thinking: unknown): string {
    if (typeof thinking !== 'string') return ''
    this.textMember = 'reasoning_content'
    block.units += thinking.length
    return this.#chunks.text('reasoning_content', thinking)
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
        return block.hasArguments ? '' : this.#chunks.arguments(block.call, inputText(block.input))
    }
    return ''
  }

  #citations(block: TextBlock): string {
    const { annotations, skipped } = citationsOf(block.citations, block.from, this.#contentUnits)
    this.skipped += skipped
    return annotations.length > 0 ? this.#chunks.delta({ annotations }) : ''
  }

  #detail(detail: ReasoningDetail): string {
    this.#details++
    return this.#chunks.delta({ reasoning_details: [detail] })
  }

  #noteStop(delta: unknown): void {
    if (!isJsonObject(delta) || typeof delta.stop_reason !== 'string') return
    this.#stopReason = delta.stop_reason
    this.#stopDetails = delta.stop_details
  }
}

/** Returns arguments as JSON; `{}` for a call without any, as OpenAI sends it. */
function inputText(input: unknown): string {
  return JSON.stringify(isJsonObject(input) ? input : {})
}
