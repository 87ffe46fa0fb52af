import { GatewayError } from '../../errors/index.ts'
import { isJsonObject, isText, type JsonObject, objectsIn } from '../../json/index.ts'
import { kindOfHolder, kindOfList, kindOfMember, kindOfType } from './reference-names.ts'

/** A thing that an upstream keeps, such as a file or a response, as a request names it. */
export interface Reference {
  /** The kind of thing: `file`, `response`, `vector_store` … */
  readonly kind: string
  /** The upstream's id. */
  readonly id: string
  /** Returns where the request names it, such as `input[0].file_id`. */
  place(): string
}

const NONE: readonly Reference[] = []

/** Members of almost every message, which name nothing. */
const PLAIN: ReadonlySet<string> = new Set(['role', 'text', 'type'])

/** Members of most requests that name nothing by their own name, unless they hold an object. */
const NAMELESS: ReadonlySet<string> = new Set([
  'content',
  'max_completion_tokens',
  'max_tokens',
  'messages',
  'model',
  'stream',
  'temperature',
])

/** More than any endpoint takes. Each is looked up. */
const MAX_REFERENCES = 1000

/**
 * Members whose content the caller defines and no upstream looks anything up in: names in it that look like ids are
 * data.
 */
const DATA: ReadonlySet<string> = new Set([
  'annotations',
  'arguments',
  'attributes',
  'client_metadata',
  'headers',
  'input_examples',
  'input_schema',
  'logprobs',
  'metadata',
  'output_schema',
  'provider',
  'response_schema',
])

/** Items of these types hold all that an upstream needs. An item of another type that a tool made is looked up. */
const WHOLE_CALLS: ReadonlySet<string> = new Set([
  'apply_patch_call',
  'computer_call',
  'custom_tool_call',
  'function_call',
  'local_shell_call',
  'mcp_call',
  'shell_call',
])

/** How the ids of web searches in translated answers begin, which no upstream keeps. */
export const TRANSLATED_SEARCH = 'ws_resp_'

/** What is to be looked at. It is shared, because a scan is never interrupted: an array that grows takes 17 elements. */
const ahead: object[] = []

/**
 * Returns the things kept by an upstream that a JSON body names, without recursion. These name one:
 *
 * - a member whose name ends in `_id`, `_ids`, `Id` or `Ids`, and members such as `container` or `thread`;
 * - an object with an `id` as the value of a member, such as `conversation: { id }`;
 * - an object with an `id` and a type that ends in `_reference` or `_id`;
 * - an item of a conversation that has an id and no content of its own.
 *
 * @throws {GatewayError} `invalid_request` if there are too many.
 */
export function referencesIn(body: JsonObject): readonly Reference[] {
  let found: BodyReferences | undefined
  // A scan that failed has left something.
  if (ahead.length > 0) ahead.length = 0
  for (let value: object | undefined = body; value !== undefined; value = ahead.pop()) {
    if (Array.isArray(value)) {
      for (let i = 0; i < value.length; i++) {
        const item: unknown = value[i]
        if (typeof item !== 'object' || item === null) continue
        ahead.push(item)
        const { id } = item as JsonObject
        const kind = typeof id === 'string' ? kindOfItem(item as JsonObject) : undefined
        if (kind !== undefined) found = (found ?? new BodyReferences(body)).add(item, '', kind, id)
      }
      continue
    }
    for (const name in value) {
      const member = (value as JsonObject)[name]
      if (member === null || member === undefined || PLAIN.has(name)) continue
      if (NAMELESS.has(name) && (typeof member !== 'object' || Array.isArray(member))) {
        if (typeof member === 'object') ahead.push(member)
        continue
      }
      if (typeof member === 'object') {
        if (isData(name, member, value as JsonObject)) continue
        ahead.push(member)
      }
      if (namesThings(name, member)) found = (found ?? new BodyReferences(body)).read(value, name, member)
    }
  }
  return found?.list ?? NONE
}

/** Returns the fields of a query. Some upstreams divide it at semicolons, too. */
export function fieldsOf(query: URLSearchParams): Iterable<readonly [name: string, value: string]> {
  const divided = new URLSearchParams(query.toString().replaceAll('%3B', '&').replaceAll('%3D', '='))
  return divided.size > query.size ? [...query, ...divided] : query
}

/** Returns the things that the query of a request names. */
export function referencesInQuery(query: URLSearchParams): readonly Reference[] {
  const found: Reference[] = []
  for (const [name, id] of fieldsOf(query)) {
    // Lists are filtered by what their callers wrote.
    // In a body it links parts of a conversation; in a query it is a call of the Realtime API.
    const ofField = name === 'call_id' ? 'call' : kindOfField(name)
    const kind = name.startsWith('metadata[') ? undefined : ofField
    if (kind !== undefined) found.push({ kind, id, place: () => name })
  }
  return found
}

/** Returns the kind of thing that a field of a form names, such as `file_ids[]`; undefined for any other field. */
export function kindOfField(name: string): string | undefined {
  const parts = partsOfField(name)
  const last = parts.at(-1) ?? ''
  if (parts.length > 1 && last.toLowerCase() === 'id') return kindOfHolder(parts.at(-2) ?? '')
  return kindOfMember(last)
}

/** Returns the names in the name of a field: `session` and `model` of `session[model]`. */
export function partsOfField(name: string): readonly string[] {
  return name.split(/[[\].]+/).filter((part) => part !== '')
}

/** Whether a member may name something: by its name, or by an `id` in its value. */
function namesThings(name: string, member: unknown): boolean {
  if (kindOfMember(name) !== undefined) return true
  if (typeof member !== 'object') return false
  if (Array.isArray(member)) return name === 'input' || name === 'items' || kindOfList(name) !== undefined
  return (member as JsonObject).id !== undefined
}

/** Whether a member holds data of the caller's. */
export function isData(name: string, member: unknown, { name: ownName, type }: JsonObject): boolean {
  if (DATA.has(name)) return true
  // The schema of a function or an answer, and the input of a tool.
  if (name === 'parameters' || name === 'schema') return typeof ownName === 'string' || type === 'json_schema'
  if (name === 'citations') return Array.isArray(member)
  if (name === 'input') return typeof type === 'string' && type.endsWith('tool_use')
  // The bytes of a file that came in a form.
  return ArrayBuffer.isView(member)
}

/** Returns the kind of thing that an item of a list names by its `id`; undefined if it names none. */
function kindOfItem(item: JsonObject): string | undefined {
  const { type } = item
  if (typeof type !== 'string') return undefined
  const kind = kindOfType(type)
  if (kind !== undefined) return kind
  if (String(item.id).startsWith(TRANSLATED_SEARCH)) return undefined
  if (type === 'reasoning') return isWholeReasoning(item) ? undefined : 'item'
  return type.endsWith('_call') && !WHOLE_CALLS.has(type) ? 'item' : undefined
}

function isWholeReasoning({ encrypted_content: sealed, content, summary }: JsonObject): boolean {
  if (isText(sealed)) return true
  const hasText = ({ text }: JsonObject): boolean => isText(text)
  return objectsIn(content).some(hasText) || objectsIn(summary).some(hasText)
}

/** Whether an item of an input is only an id: the upstream then looks up the rest. */
function isBareItem({ id, type, role, content }: JsonObject): boolean {
  if (typeof id !== 'string' || typeof type === 'string') return false
  return (role ?? undefined) === undefined || (content ?? undefined) === undefined
}

/** The things that a body names. */
class BodyReferences {
  readonly list: Reference[] = []
  readonly #body: JsonObject

  constructor(body: JsonObject) {
    this.#body = body
  }

  /** Adds what a member names. */
  read(owner: object, name: string, member: unknown): this {
    if (name === 'skill_id' && (owner as JsonObject).type === 'anthropic') return this
    const kind = kindOfMember(name)
    if (Array.isArray(member)) return this.#readList(owner, name, member, kind)
    if (!isJsonObject(member)) return kind === undefined ? this : this.add(owner, name, kind, member)
    const { id, type } = member
    if (id === undefined) return this
    const byType = typeof type === 'string' ? kindOfType(type) : undefined
    const holds = kind ?? byType ?? kindOfHolder(name)
    return holds === undefined ? this : this.add(owner, name, holds, id)
  }

  #readList(owner: object, name: string, list: readonly unknown[], kind: string | undefined): this {
    const ofList = kind ?? kindOfList(name)
    const isInput = name === 'input' || name === 'items'
    for (const item of list) {
      if (!isJsonObject(item)) {
        if (kind !== undefined) this.add(owner, name, kind, item)
      } else if (isInput && isBareItem(item)) this.add(item, '', 'item', item.id)
      else if (ofList !== undefined) this.add(item, 'id', ofList, item.id)
    }
    return this
  }

  add(owner: object, name: string, kind: string, id: unknown): this {
    if (typeof id !== 'string' && typeof id !== 'number') return this
    if (this.list.length >= MAX_REFERENCES) {
      throw new GatewayError('invalid_request', {
        message: `The body names more than ${MAX_REFERENCES} stored things. Send fewer at a time.`,
      })
    }
    const body = this.#body
    this.list.push({ kind, id: String(id), place: () => placeOf(body, owner, name) })
    return this
  }
}

/** Returns the path of a member: `input[0].content[1].file_id`. Searches the body, which few requests need. */
function placeOf(body: JsonObject, owner: object, name: string): string {
  const ahead: { value: object; place: string }[] = [{ value: body, place: '' }]
  for (let next = ahead.pop(); next !== undefined; next = ahead.pop()) {
    const { value, place } = next
    if (value === owner) return name === '' ? place : joined(place, name)
    const isList = Array.isArray(value)
    for (const [key, member] of Object.entries(value)) {
      if (typeof member !== 'object' || member === null) continue
      ahead.push({ value: member, place: isList ? `${place}[${key}]` : joined(place, key) })
    }
  }
  return name
}

function joined(place: string, name: string): string {
  return (place === '' ? name : `${place}.${name}`).slice(0, 200)
}
