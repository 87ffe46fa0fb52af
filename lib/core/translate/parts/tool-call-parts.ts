import type { JsonObject } from '../translation.ts'
import { isObject } from './json-object.ts'
import { answeredToolId } from './tool-ids.ts'

/** A tool call whose pieces come in chunks. */
interface Call<Told> {
  /** Its place in the answer. */
  readonly index: number
  /** As the upstream gave it. */
  readonly id: string | undefined
  /** What it is to the caller; undefined until its name is known. */
  told: Told | undefined
  /** Arguments that came before the name. */
  early: string
}

/** Arguments that come before the name may be this long, in UTF-16 units. */
const MOST_EARLY = 64 * 1024

/** Tells which tool call a piece of one belongs to. */
export class ToolCallParts<Told> {
  readonly #tell: (id: string, name: string) => Told
  readonly #byIndex = new Map<unknown, Call<Told>>()
  #latest: Call<Told> | undefined
  #count = 0

  /** @param tell makes of a call what it is to the caller, once its name is known. */
  constructor(tell: (id: string, name: string) => Told) {
    this.#tell = tell
  }

  /** How many calls have begun. */
  get count(): number {
    return this.#count
  }

  /** How many calls have no name yet. */
  get unnamed(): number {
    let unnamed = 0
    for (const call of this.#byIndex.values()) if (call.told === undefined) unnamed++
    return unnamed
  }

  /**
   * Takes one entry of `tool_calls`.
   *
   * @param answerId what ids are made of for upstreams that give none.
   * @returns the call and the piece of its arguments; undefined until its name is known.
   * @throws {RangeError} when arguments come on and on without a name.
   */
  take(part: JsonObject, answerId: string): { call: Told; text: string } | undefined {
    const fn = isObject(part.function) ? part.function : {}
    const name = typeof fn.name === 'string' ? fn.name : ''
    const text = argumentsText(fn.arguments)
    const call = this.#callOf(part, name)
    if (call.told !== undefined) return { call: call.told, text }
    call.early += text
    if (call.early.length > MOST_EARLY) throw new RangeError('a tool call has no name')
    if (name === '') return undefined
    call.told = this.#tell(answeredToolId(call.id, answerId, call.index), name)
    return { call: call.told, text: call.early }
  }

  /** Some upstreams give no index, or the same to every call; then a further call is told by its id and name. */
  #callOf({ index, id }: JsonObject, name: string): Call<Told> {
    const given = typeof id === 'string' && id !== '' ? id : undefined
    const known = typeof index === 'number' ? this.#byIndex.get(index) : this.#latest
    const goesOn =
      known && (given === undefined || given === known.id || name === '' || known.told === undefined)
    if (goesOn) return known
    const call: Call<Told> = { index: this.#count, id: given, told: undefined, early: '' }
    this.#count++
    this.#latest = call
    this.#byIndex.set(typeof index === 'number' ? index : `nameless ${this.#count}`, call)
    return call
  }
}

/** Some upstreams send an object where a text belongs. */
function argumentsText(value: unknown): string {
  if (typeof value === 'string') return value
  return isObject(value) ? JSON.stringify(value) : ''
}
