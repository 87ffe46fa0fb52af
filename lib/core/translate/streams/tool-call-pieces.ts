import { isJsonObject, type JsonObject, nonEmptyString } from '../../json/index.ts'
import { sealedToolId, toolIdInAnswer } from '../parts/tool-ids.ts'

/** A tool call whose pieces come in chunks. */
interface PendingCall<ToolCall> {
  /** The position of the call in the answer. */
  readonly index: number
  /** The upstream's id of the call. */
  readonly id: string | undefined
  /** The caller's record of the call; undefined until its name is known. */
  call: ToolCall | undefined
  /** What the upstream wants back with the call. */
  extra?: unknown
  /** Arguments that came before the name. */
  buffered: string
}

/** Most UTF-16 units of arguments that are buffered before the name comes. */
const MAX_BUFFERED = 64 * 1024

/** Finds the tool call that each piece of a stream belongs to. */
export class ToolCallPieces<ToolCall> {
  readonly #create: (id: string, name: string) => ToolCall
  readonly #byIndex = new Map<unknown, PendingCall<ToolCall>>()
  #latest: PendingCall<ToolCall> | undefined
  #count = 0

  /** @param create makes the caller's record of a call, once its name is known. */
  constructor(create: (id: string, name: string) => ToolCall) {
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
    const text = argumentsText(fn.arguments)
    const pending = this.#pendingCall(part, name)
    if (pending.call !== undefined) return { call: pending.call, text }
    pending.buffered += text
    pending.extra ??= part.extra_content
    if (pending.buffered.length > MAX_BUFFERED) throw new RangeError('a tool call has no name')
    if (name === '') return undefined
    const id = sealedToolId(toolIdInAnswer(pending.id, answerId, pending.index), pending.extra)
    pending.call = this.#create(id, name)
    return { call: pending.call, text: pending.buffered }
  }

  /** Some upstreams send no index, or the same one for all calls: then a new id with a name begins a new call. */
  #pendingCall({ index, id }: JsonObject, name: string): PendingCall<ToolCall> {
    const given = nonEmptyString(id)
    const known = typeof index === 'number' ? this.#byIndex.get(index) : this.#latest
    const continues =
      known && (given === undefined || given === known.id || name === '' || known.call === undefined)
    if (continues) return known
    const pending: PendingCall<ToolCall> = { index: this.#count, id: given, call: undefined, buffered: '' }
    this.#count++
    this.#latest = pending
    this.#byIndex.set(typeof index === 'number' ? index : `nameless ${this.#count}`, pending)
    return pending
  }
}

/** Some upstreams send the arguments as an object instead of its JSON text. */
function argumentsText(value: unknown): string {
  if (typeof value === 'string') return value
  return isJsonObject(value) ? JSON.stringify(value) : ''
}
