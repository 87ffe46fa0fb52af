import { isJsonObject, type JsonObject, nonEmptyString, parseJsonObject } from '../json/index.ts'

/** The member of a function that stands for a freeform tool. */
const TEXT = 'input'

/**
 * Returns the function that stands for a freeform tool of OpenAI's on a line that has functions only. Such a tool takes a
 * text, which a grammar may bound; the function takes an object with this text.
 *
 * @param tool the members of the tool, in the form of a chat or of a response.
 */
export function freeformFunction({ name, description, format }: JsonObject): JsonObject {
  const words = nonEmptyString(description)
  const grammar = grammarOf(format)
  return {
    name,
    ...(words !== undefined && { description: words }),
    parameters: {
      type: 'object',
      properties: { [TEXT]: { type: 'string', ...(grammar !== undefined && { description: grammar }) } },
      required: [TEXT],
      additionalProperties: false,
    },
  }
}

/** Returns what the model reads of the grammar, which only the provider itself can enforce. */
function grammarOf(format: unknown): string | undefined {
  if (!isJsonObject(format) || format.type !== 'grammar') return undefined
  // A chat has a member of this name in between.
  const { syntax, definition } = isJsonObject(format.grammar) ? format.grammar : format
  const text = nonEmptyString(definition)
  const what = syntax === 'regex' ? 'regular expression' : `${nonEmptyString(syntax) ?? 'lark'} grammar`
  return text === undefined ? undefined : `The text must match this ${what}:\n${text}`
}

/** Returns a text as the arguments of the function. */
export function freeformInput(text: unknown): JsonObject {
  return { [TEXT]: typeof text === 'string' ? text : '' }
}

/**
 * Returns the text in the arguments of the function. Some models write the text itself in place of an object.
 *
 * @param args the arguments, or their JSON text.
 */
export function freeformText(args: unknown): string {
  const json = typeof args === 'string' ? parseJsonObject(args) : args
  if (!isJsonObject(json)) return typeof args === 'string' ? args : ''
  const text = json[TEXT]
  if (typeof text === 'string') return text
  return Object.keys(json).length > 0 ? JSON.stringify(json) : ''
}

/** The beginning of the arguments, up to the text. */
const BEGINNING = new RegExp(`^\\s*\\{\\s*"${TEXT}"\\s*:\\s*"`)
const MAX_BEGINNING = 64

/** Most UTF-16 units of arguments of another form that are buffered. */
const MAX_BUFFERED = 1024 * 1024

/** Reads the text in the arguments of the function, which come in pieces of their JSON text. */
export class FreeformReader {
  /** The text that has come and is not read yet. */
  #pending = ''
  #state: 'beginning' | 'text' | 'other' | 'ended' = 'beginning'

  /**
   * @returns the next piece of the text; '' if it is not known yet.
   * @throws {RangeError} if too much comes in another form.
   */
  push(piece: string): string {
    if (this.#state === 'ended') return ''
    this.#pending += piece
    if (this.#state === 'beginning') this.#begin()
    if (this.#state === 'text') return this.#readText()
    if (this.#pending.length > MAX_BUFFERED) throw new RangeError('the input of a tool call is too long')
    return ''
  }

  /** Returns the rest of the text. */
  end(): string {
    const rest = this.#pending
    const hasBegun = this.#state === 'text' || this.#state === 'ended'
    this.#pending = ''
    this.#state = 'ended'
    return hasBegun ? '' : freeformText(rest)
  }

  #begin(): void {
    const begun = BEGINNING.exec(this.#pending.slice(0, MAX_BEGINNING))
    if (begun) {
      this.#state = 'text'
      this.#pending = this.#pending.slice(begun[0].length)
    } else if (this.#pending.length >= MAX_BEGINNING) this.#state = 'other'
  }

  #readText(): string {
    const raw = this.#pending
    let at = 0
    while (at < raw.length && raw[at] !== '"') {
      const length = raw[at] === '\\' ? escapeLength(raw, at) : 1
      if (at + length > raw.length) break
      at += length
    }
    const text = unescaped(raw.slice(0, at))
    if (raw[at] === '"') this.#state = 'ended'
    this.#pending = this.#state === 'ended' ? '' : raw.slice(at)
    return text
  }
}

/** Returns the length of an escape sequence, of both halves of a surrogate pair. */
function escapeLength(raw: string, at: number): number {
  if (raw[at + 1] !== 'u') return 2
  return /^d[89ab]/i.test(raw.slice(at + 2, at + 4)) && '\\u'.startsWith(raw.slice(at + 6, at + 8)) ? 12 : 6
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: some models write them as they are, which JSON forbids.
const CONTROL = /[\u0000-\u001f]/g

function unescaped(raw: string): string {
  if (!raw.includes('\\')) return raw
  try {
    return String(JSON.parse(`"${raw.replace(CONTROL, (one) => JSON.stringify(one).slice(1, -1))}"`))
  } catch {
    return raw
  }
}
