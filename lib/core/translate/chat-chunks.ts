import { isObject, objectsIn, textIn } from './parts/json-object.ts'
import { type ReasoningMember, reasoningIn } from './parts/reasoning-details.ts'
import { othersIn } from './parts/stream-parts.ts'
import { ToolCallParts } from './parts/tool-call-parts.ts'
import type { JsonObject } from './translation.ts'
import { chatReasoningTokens } from './usage.ts'

/** What tells a caller of another protocol what chunks of a chat say. Each answers the events that can be written. */
export interface ChatTeller<Call> {
  /** The answer begins with this chunk. Told once. */
  begin(chunk: JsonObject): string
  /** @param member where it is told. */
  think(text: string, member: ReasoningMember): string
  say(text: string): string
  refuse(text: string): string
  /** An entry of `reasoning_details`; undefined where it has no counterpart. */
  detail(detail: JsonObject): string | undefined
  /** A page that is cited; undefined where that has no counterpart. */
  cite(cited: JsonObject): string | undefined
  /** What a tool call is to the caller, once its name is known. */
  newCall(id: string, name: string): Call
  /** A piece of the arguments of a call. */
  call(call: Call, text: string): string
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
])

/** Reads the chunks of an OpenAI-style stream for one who tells them on, whatever the upstream calls what it says. */
export class ChatChunks<Call> {
  readonly #teller: ChatTeller<Call>
  readonly #calls: ToolCallParts<Call>
  #id: string
  #begun = false
  #finishReason: unknown
  #reasoningTokens: number | undefined
  #skipped = 0

  /** @param id stands in for the id of an answer that has none. */
  constructor(teller: ChatTeller<Call>, id: string) {
    this.#teller = teller
    this.#id = id
    this.#calls = new ToolCallParts((id, name) => teller.newCall(id, name))
  }

  get begun(): boolean {
    return this.#begun
  }

  get finishReason(): unknown {
    return this.#finishReason
  }

  /** Of the output, what was thought, as far as it was told. */
  get reasoningTokens(): number | undefined {
    return this.#reasoningTokens
  }

  /** Whether tools were called. */
  get called(): boolean {
    return this.#calls.count > this.#calls.unnamed
  }

  /** What had no counterpart; a call that has no name yet among it. */
  get skipped(): number {
    return this.#skipped + this.#calls.unnamed
  }

  push(chunk: JsonObject): string {
    this.#reasoningTokens = chatReasoningTokens(chunk.usage) ?? this.#reasoningTokens
    let events = ''
    for (const choice of objectsIn(chunk.choices)) events += this.#choice(chunk, choice)
    return events
  }

  /** The beginning, where none has been told; an answer without any chunk has one too. */
  begin(chunk: JsonObject = {}): string {
    if (this.#begun) return ''
    this.#begun = true
    this.#id = textIn(chunk.id) ?? this.#id
    return this.#teller.begin(chunk)
  }

  #choice(chunk: JsonObject, { index, delta, finish_reason: finishReason }: JsonObject): string {
    // The caller's protocol has one answer; several are not asked for.
    if (typeof index === 'number' && index !== 0) {
      this.#skipped++
      return ''
    }
    if (finishReason) this.#finishReason = finishReason
    return this.begin(chunk) + (isObject(delta) ? this.#delta(delta) : '')
  }

  #delta(delta: JsonObject): string {
    this.#skipped += othersIn(delta, KNOWN_IN_DELTA)
    const { content, refusal, reasoning_details: details, annotations, tool_calls: calls } = delta
    const teller = this.#teller
    const { text: thought, member } = reasoningIn(delta)
    let events = thought === '' ? '' : teller.think(thought, member)
    for (const detail of objectsIn(details)) events += this.#counted(teller.detail(detail))
    events += told(refusal, (text) => teller.refuse(text)) + told(content, (text) => teller.say(text))
    for (const part of objectsIn(content)) events += this.#counted(this.#part(part))
    for (const { url_citation: cited } of objectsIn(annotations))
      events += this.#counted(isObject(cited) ? teller.cite(cited) : undefined)
    for (const call of objectsIn(calls)) events += this.#call(call)
    return events
  }

  /** Some upstreams tell content in parts, and what was thought as one of them. */
  #part({ type, text, thinking }: JsonObject): string | undefined {
    if (type === 'text') return told(text, (said) => this.#teller.say(said))
    if (type !== 'thinking') return undefined
    return objectsIn(thinking)
      .map((item) => told(item.text, (thought) => this.#teller.think(thought, 'reasoning_content')))
      .join('')
  }

  #call(part: JsonObject): string {
    const piece = this.#calls.take(part, this.#id)
    return piece ? this.#teller.call(piece.call, piece.text) : ''
  }

  #counted(events: string | undefined): string {
    if (events === undefined) this.#skipped++
    return events ?? ''
  }
}

function told(text: unknown, tell: (text: string) => string): string {
  return typeof text === 'string' && text !== '' ? tell(text) : ''
}
