import { isJsonObject, type JsonObject, nonEmptyString, objectsIn } from '../../json/index.ts'
import { chatReasoningTokens } from '../answers/usage.ts'
import { type ReasoningMember, reasoningIn } from '../parts/reasoning-details.ts'
import { countUnknownMembers } from './delta-members.ts'
import { ToolCallPieces } from './tool-call-pieces.ts'

/**
 * Writes the content of chat chunks as events of another protocol. Each method returns the events that can be sent now.
 *
 * @typeParam ToolCall the writer's own record of a tool call.
 */
export interface ChatEventWriter<ToolCall> {
  /** Begins the answer with its first chunk. Called once. */
  begin(chunk: JsonObject): string
  /** @param member the member of the delta that holds the reasoning. */
  reasoning(text: string, member: ReasoningMember): string
  text(text: string): string
  refusal(text: string): string
  /** Writes an entry of `reasoning_details`; returns undefined if it has no counterpart. */
  reasoningDetail(detail: JsonObject): string | undefined
  /** Writes a cited page; returns undefined if it has no counterpart. */
  citation(cited: JsonObject): string | undefined
  /** Writes a web search of the line's. */
  webSearch?(search: JsonObject): string
  /** Makes the record of a tool call, once its name is known. */
  newToolCall(id: string, name: string): ToolCall
  /** Writes a piece of the arguments of a tool call. */
  toolArguments(call: ToolCall, text: string): string
}

const KNOWN_IN_DELTA: ReadonlySet<string> = new Set([
  'role',
  'content',
  'refusal',
  'tool_calls',
  'reasoning_content',
  'reasoning',
  'reasoning_details',
  'annotations',
  'web_searches',
])

/** Reads the chunks of an OpenAI-style stream, in each upstream's dialect, and passes their content to a writer. */
export class ChatChunkReader<ToolCall> {
  readonly #writer: ChatEventWriter<ToolCall>
  readonly #calls: ToolCallPieces<ToolCall>
  #id: string
  #begun = false
  #finishReason: unknown
  #reasoningTokens: number | undefined
  #skipped = 0

  /** @param id the id of an answer that has none of its own. */
  constructor(writer: ChatEventWriter<ToolCall>, id: string) {
    this.#writer = writer
    this.#id = id
    this.#calls = new ToolCallPieces((id, name) => writer.newToolCall(id, name))
  }

  get begun(): boolean {
    return this.#begun
  }

  get finishReason(): unknown {
    return this.#finishReason
  }

  /** The part of the output tokens that was reasoning; undefined if the upstream did not report it. */
  get reasoningTokens(): number | undefined {
    return this.#reasoningTokens
  }

  get hasToolCalls(): boolean {
    return this.#calls.count > this.#calls.unnamed
  }

  /** How many parts had no counterpart, tool calls without a name included. */
  get skipped(): number {
    return this.#skipped + this.#calls.unnamed
  }

  push(chunk: JsonObject): string {
    this.#reasoningTokens = chatReasoningTokens(chunk.usage) ?? this.#reasoningTokens
    let events = ''
    for (const choice of objectsIn(chunk.choices)) events += this.#choice(chunk, choice)
    return events
  }

  /** Begins the answer if it has not begun; an answer without any chunk has a beginning too. */
  begin(chunk: JsonObject = {}): string {
    if (this.#begun) return ''
    this.#begun = true
    this.#id = nonEmptyString(chunk.id) ?? this.#id
    return this.#writer.begin(chunk)
  }

  #choice(chunk: JsonObject, { index, delta, finish_reason: finishReason }: JsonObject): string {
    // The caller's protocol has one answer, so that a request never asks for several.
    if (typeof index === 'number' && index !== 0) {
      this.#skipped++
      return ''
    }
    if (finishReason) this.#finishReason = finishReason
    return this.begin(chunk) + (isJsonObject(delta) ? this.#delta(delta) : '')
  }

  #delta(delta: JsonObject): string {
    this.#skipped += countUnknownMembers(delta, KNOWN_IN_DELTA)
    const { content, refusal, reasoning_details: details, annotations, tool_calls: calls } = delta
    const writer = this.#writer
    const reasoning = reasoningIn(delta)
    let events = reasoning.text === '' ? '' : writer.reasoning(reasoning.text, reasoning.member)
    for (const detail of objectsIn(details)) events += this.#counted(writer.reasoningDetail(detail))
    events += ifText(refusal, (text) => writer.refusal(text)) + ifText(content, (text) => writer.text(text))
    for (const part of objectsIn(content)) events += this.#counted(this.#part(part))
    for (const { url_citation: cited } of objectsIn(annotations))
      events += this.#counted(isJsonObject(cited) ? writer.citation(cited) : undefined)
    for (const call of objectsIn(calls)) events += this.#toolCall(call)
    for (const search of objectsIn(delta.web_searches)) events += this.#counted(writer.webSearch?.(search))
    return events
  }

  /** Reads a content part: some upstreams send content, and reasoning, in parts. */
  #part({ type, text, thinking }: JsonObject): string | undefined {
    if (type === 'text') return ifText(text, (part) => this.#writer.text(part))
    if (type !== 'thinking') return undefined
    return objectsIn(thinking)
      .map((item) => ifText(item.text, (part) => this.#writer.reasoning(part, 'reasoning_content')))
      .join('')
  }

  #toolCall(part: JsonObject): string {
    const piece = this.#calls.take(part, this.#id)
    return piece ? this.#writer.toolArguments(piece.call, piece.text) : ''
  }

  #counted(events: string | undefined): string {
    if (events === undefined) this.#skipped++
    return events ?? ''
  }
}

function ifText(text: unknown, write: (text: string) => string): string {
  return typeof text === 'string' && text !== '' ? write(text) : ''
}
