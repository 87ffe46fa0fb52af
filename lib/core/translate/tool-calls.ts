import {
  isJsonObject,
  type JsonObject,
  type JsonTally,
  parseJsonObject,
  parseKeepingIntegers,
} from '../json/index.ts'

const EMPTY = '{}'

/** The arguments of a call without any, as models and clients of several languages write them. */
const NO_ARGUMENTS = /^\s*(?:null\s*)?$/

/** The beginning of such arguments. */
const MAYBE_NO_ARGUMENTS = /^(?:n(?:u(?:ll?)?)?)?$/

/**
 * Returns the input of a tool call as an object. It may be one, or its JSON as a text; an input that is missing, `null` or a
 * blank text is empty. Returns undefined for anything else.
 *
 * @param tally the total of the inputs of the same request so far.
 */
export function toolInput(value: unknown, tally?: JsonTally): JsonObject | undefined {
  if (value === undefined || value === null) return {}
  if (typeof value !== 'string') return isJsonObject(value) ? value : undefined
  return NO_ARGUMENTS.test(value) ? {} : parseJsonObject(value, tally, parseKeepingIntegers)
}

/** Returns the input of a tool call as JSON, in all the forms that {@link toolInput} knows. Any other text stays as it is. */
export function toolArguments(value: unknown): string {
  if (typeof value !== 'string') return JSON.stringify(value ?? {})
  return NO_ARGUMENTS.test(value) ? EMPTY : value
}

/** Passes on the arguments of a tool call that come in pieces. Pieces that say only that there are none are left out. */
export class ArgumentPieces {
  #held = ''
  /** Whether anything was passed on. */
  hasBegun = false

  /** Returns what can be passed on now. */
  push(piece: string): string {
    if (this.hasBegun) return piece
    this.#held = (this.#held + piece).trimStart()
    if (MAYBE_NO_ARGUMENTS.test(this.#held.trimEnd())) {
      this.#held = this.#held.trimEnd()
      return ''
    }
    this.hasBegun = true
    return this.#held
  }
}

/** The facts of a call of a message, whichever form it has. */
interface CallFacts {
  readonly id: unknown
  readonly name: unknown
  readonly input: unknown
}

/**
 * Returns the calls of a message, each once: some callers write one twice, or in two forms. Two of one id and name are one
 * if their inputs are equal, or one of the inputs is empty; the call with an input stays.
 */
export function eachCallOnce<T>(calls: readonly T[], read: (call: T) => CallFacts): T[] {
  const byId = Map.groupBy(calls, (call) => read(call).id)
  if (byId.size === calls.length) return [...calls]
  const repeated = new Set([...byId.values()].flatMap((same) => repeatedIn(same, read)))
  return calls.filter((call) => !repeated.has(call))
}

/** Returns those of the calls with one id that say nothing else than another of them. */
function repeatedIn<T>(calls: readonly T[], read: (call: T) => CallFacts): T[] {
  if (calls.length === 1) return []
  const known = new Set<string>()
  const facts = calls.map((call) => ({ call, name: String(read(call).name), text: inputText(read(call)) }))
  const withInput = new Set(facts.filter(({ text }) => text !== EMPTY).map(({ name }) => name))
  return facts.flatMap(({ call, name, text }) => {
    const key = `${name} ${text}`
    const isRepeated = known.has(key) || (text === EMPTY && withInput.has(name))
    known.add(key)
    return isRepeated ? [call] : []
  })
}

function inputText({ input }: CallFacts): string {
  return JSON.stringify(toolInput(input) ?? input)
}

/** The part of an entry of a conversation in tool calls. */
export interface ToolRole {
  /** Whether it is of the assistant. Adjacent entries of the assistant are one turn. */
  readonly isAssistants: boolean
  /** The ids of its calls. */
  readonly calls?: readonly unknown[]
  /** The id of the call that it is the result of. */
  readonly resultOf?: unknown
}

/** A part of a conversation: a turn of the assistant with the results of its calls, or another entry. */
interface Part<T> {
  readonly entries: T[]
  readonly calls: unknown[]
  readonly results: { readonly entry: T; readonly of: unknown }[]
}

/**
 * Returns the entries of a conversation with each result directly behind the turn of its call, as chats and Anthropic demand
 * it, and in the order of the calls: a line may give several the same id. Codex inserts messages before a result if its user
 * steers it.
 */
export function resultsBehindCalls<T>(entries: readonly T[], roleOf: (entry: T) => ToolRole): T[] {
  const parts: Part<T>[] = []
  const turnByCall = new Map<unknown, Part<T>>()
  let turn: Part<T> | undefined
  for (const entry of entries) {
    const { isAssistants, calls = [], resultOf: of } = roleOf(entry)
    const called = of === undefined ? undefined : turnByCall.get(of)
    if (called) called.results.push({ entry, of })
    else if (isAssistants && turn) turn.entries.push(entry)
    else parts.push({ entries: [entry], calls: [], results: [] })
    turn = isAssistants ? parts.at(-1) : undefined
    turn?.calls.push(...calls)
    for (const id of calls) if (turn) turnByCall.set(id, turn)
  }
  return parts.flatMap((part) => [...part.entries, ...resultsOf(part)])
}

function resultsOf<T>({ calls, results }: Part<T>): T[] {
  if (results.length < 2) return results.map(({ entry }) => entry)
  const places = new Map(calls.map((id, place) => [id, place]))
  const placeOf = ({ of }: Part<T>['results'][number]): number => places.get(of) ?? 0
  return results.toSorted((a, b) => placeOf(a) - placeOf(b)).map(({ entry }) => entry)
}
