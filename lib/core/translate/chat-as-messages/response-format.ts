import { isJsonObject, isKeptInteger, type JsonObject, nonEmptyString, someObject } from '../../json/index.ts'

const INSTRUCTION =
  'Answer with exactly one JSON object. Write nothing before or after it, and do not put it into a code block.'

/** The `response_format` of a chat, as an Anthropic-style line gets it. */
interface MessageFormat {
  /** The format for `output_config`; undefined if the line has none for it. */
  readonly format?: JsonObject
  /** Instructions that ask for what the line has no format for. */
  readonly instruction?: string
}

/**
 * Translates `response_format`. Anthropic-style lines know schemas only: a JSON object without one, or with one that they
 * refuse, is asked for in words.
 *
 * @returns undefined if the format is unknown.
 */
export function messageFormatOf({ response_format: format }: JsonObject): MessageFormat | undefined {
  if (!isJsonObject(format) || format.type === 'text') return {}
  if (format.type !== 'json_object' && format.type !== 'json_schema') return undefined
  // Together, Fireworks and others have the schema in the format itself.
  const { schema } = isJsonObject(format.json_schema) ? format.json_schema : format
  if (!isJsonObject(schema)) return format.type === 'json_object' ? { instruction: INSTRUCTION } : undefined
  const fitted = fittedSchema(schema)
  if (fitted) return { format: { type: 'json_schema', schema: fitted } }
  return {
    instruction: `${INSTRUCTION} It must be valid against this JSON schema:\n${JSON.stringify(schema)}`,
  }
}

/** Whether the answer to a chat is JSON that was asked for in words, which a model may put into a code block all the same. */
export function isPrompted(request: JsonObject): boolean {
  return isJsonObject(request.response_format) && messageFormatOf(request)?.instruction !== undefined
}

/** The formats of strings that Anthropic knows. */
const FORMATS: ReadonlySet<unknown> = new Set([
  'date',
  'date-time',
  'duration',
  'email',
  'hostname',
  'ipv4',
  'ipv6',
  'time',
  'uri',
  'uuid',
])

/** Keywords that constrain nothing and are of no use to a model. */
const DIALECT: ReadonlySet<string> = new Set(['$anchor', '$comment', '$id', '$schema'])

/** Keywords that are kept with any value. */
const KEPT: ReadonlySet<string> = new Set(['default', 'required', 'title', 'type'])

/** Keywords whose value is a schema for each name. */
const NAMED: ReadonlySet<string> = new Set(['$defs', 'definitions', 'properties'])

/** Types of a schema that has none, by a keyword that stands for one. */
const IMPLIED: readonly (readonly [keyword: string, type: string])[] = [
  ['properties', 'object'],
  ['items', 'array'],
]

/**
 * Returns a JSON schema with the keywords that Anthropic accepts, at every depth. All others stand in the description, as
 * text, and every object is closed: a value that fits the closed schema fits the open one.
 *
 * Source: Anthropic's documentation, "Structured outputs", and the helpers of its SDKs.
 *
 * @returns undefined if the schema refers to itself or to anything but its own definitions, which Anthropic refuses.
 */
export function fittedSchema(schema: JsonObject): JsonObject | undefined {
  const refs = new References()
  const fitted = fitOne(schema, refs, '')
  return refs.areFit(schema) ? fitted : undefined
}

/** The references between the definitions of a schema. */
class References {
  /** The definitions that each definition refers to; the schema itself has the name ''. */
  readonly #byName = new Map<string, Set<string>>()
  #isFit = true

  add(from: string, ref: unknown): void {
    const name = /^#\/((?:\$defs|definitions)\/[^/]+)$/.exec(String(ref))?.[1]
    if (name === undefined) this.#isFit = false
    else this.#byName.set(from, (this.#byName.get(from) ?? new Set()).add(name))
  }

  refuse(): void {
    this.#isFit = false
  }

  /**
   * Whether each reference leads to a definition, and none back to where it stands. Without recursion: a schema can have
   * thousands of definitions, each of which refers to the next.
   */
  areFit(schema: JsonObject): boolean {
    const above = new Set<string>()
    const done = new Set<string>()
    const ahead = ['']
    for (let name = ahead.at(-1); name !== undefined; name = ahead.at(-1)) {
      if (above.has(name) || done.has(name)) {
        above.delete(name)
        done.add(name)
        ahead.pop()
        continue
      }
      above.add(name)
      for (const next of this.#byName.get(name) ?? []) {
        if (above.has(next) || !isDefined(schema, next)) return false
        if (!done.has(next)) ahead.push(next)
      }
    }
    return this.#isFit
  }
}

function isDefined(schema: JsonObject, name: string): boolean {
  const [member = '', key = ''] = name.split('/')
  const named = schema[member]
  return isJsonObject(named) && isJsonObject(named[key])
}

/** @param place the definition that the schema belongs to; '' if to none. */
function fitOne(schema: unknown, refs: References, place: string): JsonObject {
  if (!isJsonObject(schema)) {
    refs.refuse()
    return {}
  }
  const fitted: Record<string, unknown> = {}
  const moved: string[] = []
  for (const keyword of Object.keys(schema)) {
    const value = schema[keyword]
    if (value === undefined || keyword === 'description' || DIALECT.has(keyword)) continue
    if (!addFitted(fitted, schema, keyword, refs, place)) moved.push(`${keyword}: ${JSON.stringify(value)}`)
  }
  const implied = IMPLIED.find(([keyword]) => fitted.type === undefined && keyword in fitted)
  if (implied) fitted.type = implied[1]
  if (isOfType(fitted, 'object')) fitted.additionalProperties = false
  const description = [
    nonEmptyString(schema.description),
    moved.length > 0 ? `{${moved.join(', ')}}` : undefined,
  ]
  const text = description.filter((part) => part !== undefined).join('\n\n')
  const { $ref: ref, ...others } = fitted
  // Nothing may stand beside a reference.
  const whole =
    ref === undefined || (text === '' && Object.keys(others).length === 0) ? fitted : beside(ref, others)
  return text === '' ? whole : { ...whole, description: text }
}

function beside(ref: unknown, others: JsonObject): JsonObject {
  return { ...others, anyOf: [{ $ref: ref }] }
}

/** Adds a keyword, if Anthropic accepts it; returns false if not. */
function addFitted(
  fitted: Record<string, unknown>,
  schema: JsonObject,
  keyword: string,
  refs: References,
  place: string,
): boolean {
  const value = schema[keyword]
  const fitList = (list: readonly unknown[]): JsonObject[] => list.map((one) => fitOne(one, refs, place))
  if (NAMED.has(keyword) && isJsonObject(value)) {
    const within = (name: string): string => (keyword === 'properties' ? place : `${keyword}/${name}`)
    fitted[keyword] = Object.fromEntries(
      Object.entries(value).map(([name, one]) => [name, fitOne(one, refs, within(name))]),
    )
    return true
  }
  switch (keyword) {
    case '$ref':
      refs.add(place, value)
      fitted.$ref = value
      return true
    case 'anyOf':
    case 'oneOf': {
      if (!Array.isArray(value) || (keyword === 'oneOf' && schema.anyOf !== undefined)) return false
      fitted.anyOf = fitList(value)
      return true
    }
    case 'allOf':
      if (!Array.isArray(value)) return false
      // A reference is refused there; a single one is the same in `anyOf`.
      if (someObject(value, ({ $ref }) => $ref !== undefined)) {
        if (value.length > 1 || schema.anyOf !== undefined || schema.oneOf !== undefined) refs.refuse()
        fitted.anyOf = fitList(value)
      } else fitted.allOf = fitList(value)
      return true
    case 'items':
      if (isJsonObject(value)) fitted.items = fitOne(value, refs, place)
      return isJsonObject(value)
    case 'additionalProperties':
      return value === false
  }
  if (!accepts(schema, keyword, value)) return false
  fitted[keyword] = value
  return true
}

/** Whether Anthropic accepts a keyword that holds no schema. */
function accepts(schema: JsonObject, keyword: string, value: unknown): boolean {
  switch (keyword) {
    case 'enum':
      return Array.isArray(value) && value.length > 0 && value.every(isPrimitive)
    case 'const':
      return isPrimitive(value)
    case 'minItems':
      return value === 0 || value === 1
    case 'format':
      return isOfType(schema, 'string') && FORMATS.has(value)
    case 'pattern':
      return isOfType(schema, 'string') && isPlainPattern(value)
  }
  return KEPT.has(keyword)
}

function isOfType({ type }: JsonObject, name: string): boolean {
  return type === name || (Array.isArray(type) && type.includes(name))
}

const isPrimitive = (value: unknown): boolean =>
  typeof value !== 'object' || value === null || isKeptInteger(value)

/** More repetitions than this are refused. */
const MAX_REPEATS = 100

/** The syntax that Anthropic's expressions lack: look-arounds and other special groups, lazy quantifiers, and most escapes. */
const SPECIAL = /\(\?(?!:)|[*+?}][?+]|\\(?![dDsSwWnrt\\/.^$*+?()[\]{}|-])/

/** Whether Anthropic accepts a regular expression: one of classes, groups, choices and small repetitions. */
export function isPlainPattern(pattern: unknown): boolean {
  if (typeof pattern !== 'string' || SPECIAL.test(pattern)) return false
  for (const [, counts = ''] of pattern.matchAll(/\{([\d,]*)\}/g))
    if (counts.split(',').some((count) => Number(count) > MAX_REPEATS)) return false
  try {
    new RegExp(pattern, 'u')
    return true
  } catch {
    return false
  }
}

const FENCE = '```'

/** Removes the code block around an answer that comes in pieces. Text without one comes out as it is. */
export class CodeBlockRemover {
  /** Undefined until it is known whether the answer begins with a code block. */
  #fenced: boolean | undefined
  /** Text that may belong to the beginning or to the end of a code block. It is not read again for a piece that cannot end it. */
  #held = ''
  /** A piece has to match this before it is known how the answer begins. */
  #awaited = /\S/

  /** Returns the text that can be sent. */
  push(text: string): string {
    if (this.#fenced === undefined) {
      this.#held += text
      if (!this.#awaited.test(text) || !this.#begin()) return ''
      const begun = this.#held
      this.#held = ''
      return this.push(begun)
    }
    const end = this.#fenced ? endOfContent(text) : text.length
    if (end === 0) {
      this.#held += text
      return ''
    }
    const sent = this.#held + text.slice(0, end)
    this.#held = text.slice(end)
    return sent
  }

  end(): string {
    const rest = this.#held
    this.#held = ''
    return this.#fenced && rest.trim() === FENCE ? '' : rest
  }

  /** Returns whether it is known how the answer begins. */
  #begin(): boolean {
    const begun = this.#held.trimStart()
    if (!begun.startsWith(FENCE)) {
      if (FENCE.startsWith(begun)) return false
      this.#fenced = false
      return true
    }
    this.#awaited = /\n/
    const lineEnd = begun.indexOf('\n')
    if (lineEnd < 0) return false
    this.#fenced = true
    this.#held = begun.slice(lineEnd + 1)
    return true
  }
}

/** Returns where the white space and the backticks at the end of a text begin. */
function endOfContent(text: string): number {
  let end = text.length
  while (end > 0 && /[\s`]/.test(text[end - 1] as string)) end--
  return end
}

/** Returns a whole answer without the code block around it. */
export function withoutCodeBlock(text: string): string {
  const pieces = new CodeBlockRemover()
  return pieces.push(text) + pieces.end()
}
