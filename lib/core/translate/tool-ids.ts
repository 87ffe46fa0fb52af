import { hash } from 'node:crypto'
import {
  isJsonObject,
  type JsonObject,
  type JsonTally,
  nonEmptyString,
  objectsIn,
  parseJsonObject,
} from '../json/index.ts'
import { isOpenAiModel } from './openai-models.ts'

/** The longest id of a tool call that OpenAI's chats accept. */
export const CHAT_ID_LENGTH = 40

/** The longest id of a tool call that OpenAI's responses accept. */
export const RESPONSE_ID_LENGTH = 64

/** The ids that every protocol accepts; OpenAI's length limit is the smallest. */
const COMMON_ID = /^[a-zA-Z0-9_-]{1,40}$/

/** The ids that Anthropic accepts. It has no limit for their length; Bedrock has this one. */
const MESSAGE_ID = /^[a-zA-Z0-9_-]{1,64}$/

/** Stands between the part of an id that makes it unique and the id of the line that it carries. */
export const CARRY = '__for__'

/** An id that carries the line's. */
const CARRYING = /^call_[0-9a-f]{6}__for__((?:\w|-[0-9A-F]{2})*)$/

/** The longest id of a line that is carried. */
const MAX_CARRIED = 256

/** The characters of a carried id that are escaped: no other protocol accepts them, or they separate its parts. */
const ESCAPED = /[^a-zA-Z0-9_]|(?<=_)_/gu

/** Returns an id that carries the line's own in characters that every protocol accepts. */
function carryingId(own: string, salt: string): string {
  const carried = own.replace(ESCAPED, (unit) =>
    Buffer.from(unit).toString('hex').toUpperCase().replace(/../g, '-$&'),
  )
  return `call_${hash('sha256', salt).slice(0, 6)}${CARRY}${carried}`
}

/** Returns the id of the line that an id carries; undefined if it carries none. */
function carriedId(id: string): string | undefined {
  if (!id.includes(CARRY) || id.length > 4 * MAX_CARRIED) return undefined
  return CARRYING.exec(id)?.[1]?.replace(/(?:-[0-9A-F]{2})+/g, (bytes) =>
    Buffer.from(bytes.replaceAll('-', ''), 'hex').toString(),
  )
}

/** Returns an id that is derived from another one. It is the same in every place and process. */
export function derivedId(id: string): string {
  return `call_${hash('sha256', id).slice(0, 32)}`
}

/** Separates the id of a tool call from what its line wants back with the call. */
export const SEAL = '__sealed__'

const MAX_SEALED_LENGTH = 64 * 1024

/**
 * Adds the `extra_content` of a chat's tool call to its id, such as Gemini's `thought_signature`, without which Gemini
 * refuses the result. Callers of other protocols have no member for it, and return the id unread.
 */
export function sealedToolId(id: string, extra: unknown): string {
  if (!isJsonObject(extra)) return id
  const sealed = Buffer.from(JSON.stringify(extra)).toString('base64url')
  return sealed.length > MAX_SEALED_LENGTH ? id : `${id}${SEAL}${sealed}`
}

function withoutSeal(id: string): string {
  const at = id.indexOf(SEAL)
  return at < 0 ? id : id.slice(0, at)
}

/**
 * Returns the `extra_content` that {@link sealedToolId} added, as a member of the tool call; nothing if there is none.
 *
 * @param tally the total of the ids of the same request so far.
 */
export function sealOf(id: string, tally: JsonTally): { extra_content?: JsonObject } {
  const at = id.indexOf(SEAL)
  if (at < 0) return {}
  const extra = parseJsonObject(Buffer.from(id.slice(at + SEAL.length), 'base64url').toString(), tally)
  return extra ? { extra_content: extra } : {}
}

/**
 * Gives the tool calls of an answer the ids that the caller gets: mostly those of the line. One that the conversation
 * already has, because the line counts its calls from the start in each turn, or that some protocol refuses becomes another
 * one that carries it, so that the line gets its own back.
 */
export class AnswerIds {
  readonly #request: JsonObject
  readonly #most: number
  #taken: Set<string> | undefined

  /**
   * @param request the caller's request.
   * @param most the longest id that the caller's protocol accepts. A line's id that does not fit is not carried.
   */
  constructor(request: JsonObject, most = Number.POSITIVE_INFINITY) {
    this.#request = request
    this.#most = most
  }

  /**
   * Returns the id of a tool call. Some upstreams send none; the caller needs one to send the result back.
   *
   * @param index the position of the call in the answer.
   */
  idOf(given: unknown, answerId: unknown, index: number): string {
    const own = nonEmptyString(given)
    const place = `${String(answerId)}:${index}`
    if (own === undefined) return this.#unique(derivedId(place), own, place)
    return this.#unique(isAccepted(own) ? own : this.#replaced(own, place), own, place)
  }

  /** Returns the id of a tool call for a caller of the line's own protocol: that of the line, if the conversation has not. */
  uniqueIdOf(own: string, answerId: unknown, index: number): string {
    return this.#unique(own, own, `${String(answerId)}:${index}`)
  }

  #unique(first: string, own: string | undefined, place: string): string {
    this.#taken ??= idsIn(this.#request)
    let id = first
    for (let n = 1; this.#taken.has(id); n++) id = this.#replaced(own, `${place}:${n}`)
    this.#taken.add(id)
    return id
  }

  #replaced(own: string | undefined, salt: string): string {
    if (own === undefined) return derivedId(salt)
    const carried = carriedId(own) ?? own
    const id = carryingId(carried, salt)
    return carried.length > MAX_CARRIED || id.length > this.#most ? derivedId(`${salt}:${own}`) : id
  }
}

/** Whether an id of a line may go to a caller. One that carries another was made here for the first of two translations. */
function isAccepted(id: string): boolean {
  return (COMMON_ID.test(id) && !id.includes(SEAL)) || carriedId(id) !== undefined
}

/** Returns the ids of the tool calls in the conversation of a request of any protocol. */
function idsIn({ messages, input }: JsonObject): Set<string> {
  const ids = new Set<string>()
  const add = (id: unknown): void => {
    if (typeof id === 'string') ids.add(withoutSeal(id))
  }
  for (const { content, tool_calls: calls } of objectsIn(messages)) {
    for (const call of objectsIn(calls)) add(call.id)
    for (const block of objectsIn(content)) add(block.id)
  }
  for (const item of objectsIn(input)) add(item.call_id)
  return ids
}

/**
 * Returns the id of a tool call, or of its result, as a chat line gets it: its own if the caller's id carries it.
 *
 * @param upstreamModel the upstream's name of the model, which shows whether OpenAI's limit counts for an id that is carried.
 */
export function chatToolId(id: string, upstreamModel: string): string {
  const plain = withoutSeal(id)
  const carried = carriedId(plain)
  const fits = plain !== '' && plain.length <= CHAT_ID_LENGTH
  if (carried === undefined) return fits ? plain : derivedId(plain)
  return carried.length > CHAT_ID_LENGTH && isOpenAiModel(upstreamModel) ? derivedId(plain) : carried
}

/**
 * Returns the id of a tool call, or of its result, as a line of the caller's own protocol gets it: without what other lines
 * added to it.
 *
 * @param most the longest id that the protocol accepts.
 */
export function plainToolId(id: unknown, most = Number.POSITIVE_INFINITY): unknown {
  if (typeof id !== 'string' || !(id.includes(SEAL) || id.includes(CARRY))) return id
  const plain = withoutSeal(id)
  return plain.length > most || plain === '' ? derivedId(plain) : plain
}

/**
 * Gives the tool calls of a conversation the ids that a line gets which accepts no other ones, and none twice. They depend on
 * nothing but the calls before, so that the beginning of a conversation stays the same.
 */
export class UniqueLineIds {
  readonly #accepted: RegExp
  readonly #derive: (id: string) => string
  readonly #taken = new Set<string>()
  /** The line's ids of the calls of the last turn, by the caller's. */
  #calls = new Map<string, string[]>()

  /**
   * @param accepted the ids that the line accepts.
   * @param derive returns an id that the line accepts, always the same for the same id.
   */
  constructor(accepted: RegExp, derive: (id: string) => string) {
    this.#accepted = accepted
    this.#derive = derive
  }

  /** Returns those for an Anthropic-style line. */
  static forMessages(): UniqueLineIds {
    return new UniqueLineIds(MESSAGE_ID, derivedId)
  }

  /** Begins a turn of the assistant. Its calls may have the ids of earlier ones. */
  beginTurn(): void {
    this.#calls = new Map()
  }

  idOfCall(given: string): string {
    const id = this.#free(withoutSeal(given))
    this.#taken.add(id)
    this.#calls.set(given, [...(this.#calls.get(given) ?? []), id])
    return id
  }

  /** Returns the id of the call that has a result. Of several calls with one id, each has a result in their order. */
  idOfResult(given: string): string {
    const [id, ...others] = this.#calls.get(given) ?? []
    if (id === undefined) return this.#first(withoutSeal(given))
    if (others.length > 0) this.#calls.set(given, others)
    return id
  }

  #free(plain: string): string {
    const own = carriedId(plain)
    for (const id of [own, plain])
      if (id !== undefined && this.#accepted.test(id) && !this.#taken.has(id)) return id
    let id = this.#derive(plain)
    for (let n = 1; this.#taken.has(id); n++) id = this.#derive(`${plain}:${n}`)
    return id
  }

  #first(plain: string): string {
    return this.#accepted.test(plain) ? plain : this.#derive(plain)
  }
}

/** OpenAI's longest name of a function. */
const SHORT = 64

/** Anthropic's longest name of a tool. */
export const LONG = 128

const FOREIGN = /[^a-zA-Z0-9_-]/g
const HASH_LENGTH = 8

/**
 * Returns the name of a tool in a form that the line accepts: mostly the name itself, else one that is derived from it. It
 * is the same in every turn, place and process, so that a tool keeps its name.
 *
 * @param most the length that the line accepts.
 */
export function toolName(name: unknown, most = SHORT): unknown {
  if (typeof name !== 'string' || name === '') return name
  const plain = name.replace(FOREIGN, '_')
  if (plain === name && name.length <= most) return name
  return `${plain.slice(0, most - HASH_LENGTH - 1)}_${hash('sha256', name).slice(0, HASH_LENGTH)}`
}

/** Returns the callers' names of the tools whose names {@link toolName} changes, by the line's. */
export function changedNames(names: readonly unknown[], most = SHORT): ReadonlyMap<unknown, string> {
  const byName = new Map<unknown, string>()
  for (const name of names) {
    const changed = toolName(name, most)
    if (changed !== name) byName.set(changed, String(name))
  }
  return byName
}
