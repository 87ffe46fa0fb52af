import { isJsonObject, type JsonObject, nonEmptyString, objectsIn } from '../json/index.ts'
import { type ReasoningMember, reasoningIn, reasoningOrDetails } from './reasoning.ts'
import { ArgumentPieces } from './tool-calls.ts'
import { AnswerIds, sealedToolId } from './tool-ids.ts'
import { chatReasoningTokens } from './usage.ts'

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
  'function_call',
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
  /** Whether reasoning has come in a member of its own. */
  #hasReasoning = false
  #lastChoice: JsonObject = {}
  #reasoningTokens: number | undefined
  #skipped = 0
  /** Whether the answer has a call in its old form, `function_call`, that came before any other. */
  #hasOldCall = false

  /**
   * @param id the id of an answer that has none of its own.
   * @param request the caller's request.
   */
  constructor(writer: ChatEventWriter<ToolCall>, id: string, request: JsonObject) {
    this.#writer = writer
    this.#id = id
    this.#calls = new ToolCallPieces(new AnswerIds(request), (id, name) => writer.newToolCall(id, name))
  }

  get begun(): boolean {
    return this.#begun
  }

  /** The choice that gave the finish reason; empty if there is none. */
  get lastChoice(): JsonObject {
    return this.#lastChoice
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

  #choice(chunk: JsonObject, choice: JsonObject): string {
    const { index, delta, finish_reason: finishReason } = choice
    // The caller's protocol has one answer, so that a request never asks for several.
    if (typeof index === 'number' && index !== 0) {
      this.#skipped++
      return ''
    }
    if (finishReason) this.#lastChoice = choice
    return this.begin(chunk) + (isJsonObject(delta) ? this.#delta(delta) : '')
  }

  #delta(delta: JsonObject): string {
    this.#skipped += countUnknownMembers(delta, KNOWN_IN_DELTA)
    const { content, refusal, reasoning_details: details, annotations, tool_calls: calls } = delta
    const writer = this.#writer
    const reasoning = this.#reasoningIn(delta)
    let events = reasoning.text === '' ? '' : writer.reasoning(reasoning.text, reasoning.member)
    for (const detail of objectsIn(details)) events += this.#counted(writer.reasoningDetail(detail))
    events += ifText(content, (text) => writer.text(text))
    for (const part of objectsIn(content)) events += this.#counted(this.#part(part))
    for (const { url_citation: cited } of objectsIn(annotations))
      events += this.#counted(isJsonObject(cited) ? writer.citation(cited) : undefined)
    events += ifText(refusal, (text) => writer.refusal(text))
    if (!this.#hasOldCall) for (const call of objectsIn(calls)) events += this.#toolCall(call)
    if (isJsonObject(delta.function_call)) events += this.#oldCall(delta.function_call)
    for (const search of objectsIn(delta.web_searches)) events += this.#counted(writer.webSearch?.(search))
    return events
  }

  /** A stream that has a member for its reasoning may repeat it in details, later too. */
  #reasoningIn(delta: JsonObject): ReturnType<typeof reasoningIn> {
    const reasoning = reasoningIn(delta)
    if (reasoning.text !== '') this.#hasReasoning = true
    return this.#hasReasoning ? reasoning : reasoningOrDetails(delta)
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

  /** Reads a call in its old form, which some upstreams send in its place or beside it. */
  #oldCall(fn: JsonObject): string {
    this.#hasOldCall ||= this.#calls.count === 0
    return this.#hasOldCall ? this.#toolCall({ index: 0, function: fn }) : ''
  }

  #counted(events: string | undefined): string {
    if (events === undefined) this.#skipped++
    return events ?? ''
  }
}

function ifText(text: unknown, write: (text: string) => string): string {
  return typeof text === 'string' && text !== '' ? write(text) : ''
}

/** A tool call whose pieces come in chunks. */
interface PendingCall<ToolCall> {
  /** The position of the call in the answer. */
  readonly index: number
  /** The upstream's id of the call. */
  readonly id: string | undefined
  /** Its name on the line; empty until it is known. */
  name: string
  /** The caller's record of the call; undefined until its name is known. */
  call: ToolCall | undefined
  /** The `extra_content` that the upstream wants back with the call. */
  extra?: unknown
  readonly pieces: ArgumentPieces
  /** Arguments that came before the name. */
  buffered: string
}

/** Most UTF-16 units of arguments that are buffered before the name comes. */
const MAX_BUFFERED = 64 * 1024

/** Finds the tool call that each piece of a stream belongs to. */
class ToolCallPieces<ToolCall> {
  readonly #ids: AnswerIds
  readonly #create: (id: string, name: string) => ToolCall
  readonly #byIndex = new Map<unknown, PendingCall<ToolCall>>()
  #latest: PendingCall<ToolCall> | undefined
  #count = 0

  /** @param create makes the caller's record of a call, once its name is known. */
  constructor(ids: AnswerIds, create: (id: string, name: string) => ToolCall) {
    this.#ids = ids
    this.#create = create
  }

  /** How many calls have begun. */
  get count(): number {
    return this.#count
  }

  /** How many calls have no name yet. */
  get unnamed(): number {
    let unnamed = 0
    for (const { call } of this.#byIndex.values()) if (call === undefined) unnamed++
    return unnamed
  }

  /**
   * Takes one entry of `tool_calls`.
   *
   * @param answerId the id of the answer, from which ids are made for upstreams that send none.
   * @returns the call and the piece of its arguments; undefined until its name is known.
   * @throws {RangeError} if too many arguments come without a name.
   */
  take(part: JsonObject, answerId: string): { call: ToolCall; text: string } | undefined {
    const fn = isJsonObject(part.function) ? part.function : {}
    const name = typeof fn.name === 'string' ? fn.name : ''
    const pending = this.#pendingCall(part, name)
    const text = pending.pieces.push(argumentsText(fn.arguments))
    if (pending.call !== undefined) return { call: pending.call, text }
    pending.buffered += text
    pending.extra ??= part.extra_content
    if (pending.buffered.length > MAX_BUFFERED) throw new RangeError('a tool call has no name')
    if (name === '') return undefined
    pending.name = name
    const id = sealedToolId(this.#ids.idOf(pending.id, answerId, pending.index), pending.extra)
    pending.call = this.#create(id, name)
    return { call: pending.call, text: pending.buffered }
  }

  #pendingCall({ index, id }: JsonObject, name: string): PendingCall<ToolCall> {
    const given = nonEmptyString(id)
    const known = typeof index === 'number' ? this.#byIndex.get(index) : this.#latest
    if (known && continues(known, { index, id: given, name })) return known
    const pending: PendingCall<ToolCall> = {
      index: this.#count,
      id: given,
      name,
      call: undefined,
      pieces: new ArgumentPieces(),
      buffered: '',
    }
    this.#count++
    this.#latest = pending
    this.#byIndex.set(typeof index === 'number' ? index : `nameless ${this.#count}`, pending)
    return pending
  }
}

/**
 * Whether a piece with a name or an id continues a call. Some upstreams send no index, or the same one for all calls: then
 * another id, or another name, begins a new call. Some send no id either: then a name begins one.
 */
function continues(
  call: PendingCall<unknown>,
  { index, id, name }: { readonly index: unknown; readonly id: string | undefined; readonly name: string },
): boolean {
  if (name === '' || call.call === undefined) return true
  if (id !== undefined && id !== call.id) return false
  if (id !== undefined || typeof index === 'number') return id === undefined || name === call.name
  return name === call.name && !call.pieces.hasBegun
}

/** Some upstreams send the arguments as an object instead of its JSON text. */
function argumentsText(value: unknown): string {
  if (typeof value === 'string') return value
  return isJsonObject(value) ? JSON.stringify(value) : ''
}

/** Counts the members that are neither known nor empty. */
export function countUnknownMembers(object: JsonObject, known: ReadonlySet<string>): number {
  let count = 0
  for (const member in object) {
    if (known.has(member)) continue
    const value = object[member]
    if (value !== null && value !== '') count++
  }
  return count
}

const PLAIN = /^[ -[\]-~]*$/

/**
 * Returns the length of a JSON string in UTF-16 units.
 *
 * @param delta the string as it stands in the JSON, with its escapes, UTF-8 read as latin1.
 */
export function utf16Length(delta: string): number {
  if (PLAIN.test(delta)) return delta.length
  const text = Buffer.from(delta, 'latin1').toString()
  try {
    return String(JSON.parse(`"${text}"`)).length
  } catch {
    // Some servers send raw control characters, which JSON forbids.
    return text.length
  }
}
