import { GatewayError } from '../../errors/index.ts'
import { isJsonObject, isText, type JsonObject, someObject } from '../../json/index.ts'

/** A resource that an upstream keeps, such as a file or a response, as a request names it. */
export interface Reference {
  /** The kind of resource: `file`, `response`, `vector_store` … */
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
  'tool_call_id',
  'tool_calls',
  'tool_use_id',
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
  'tool_search_call',
])

/** How the ids of web searches in translated answers begin, which no upstream keeps. */
export const TRANSLATED_SEARCH = 'ws_resp_'

/**
 * Returns the resources kept by an upstream that a JSON body names, without recursion. These name one:
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
  const ahead: object[] = [body]
  for (let value = ahead.pop(); value !== undefined; value = ahead.pop()) {
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
      if (namesResource(name, member)) found = (found ?? new BodyReferences(body)).read(value, name, member)
    }
  }
  return found?.list ?? NONE
}

/** Returns the fields of a query. Some upstreams divide it at semicolons, too. */
export function fieldsOf(query: URLSearchParams): Iterable<readonly [name: string, value: string]> {
  const text = query.toString()
  if (!text.includes('%3B')) return query
  return [...query, ...new URLSearchParams(text.replaceAll('%3B', '&').replaceAll('%3D', '='))]
}

/** Returns the resources that the query of a request names. */
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

/** Returns the kind of resource that a field of a form names, such as `file_ids[]` or `file_ids[0]`; undefined for any other field. */
export function kindOfField(name: string): string | undefined {
  const parts = partsOfField(name)
  const last = parts.at(-1) ?? ''
  if (parts.length > 1 && last.toLowerCase() === 'id') return kindOfHolder(parts.at(-2) ?? '')
  return kindOfMember(last)
}

/**
 * Returns the names in the name of a field: `sessions` and `model` of `sessions[0][model]`. A number is a place in a list. Some
 * upstreams end a name at an empty byte.
 */
export function partsOfField(name: string): readonly string[] {
  return name
    .replace(/\0.*/s, '')
    .split(/[[\].\s]+/)
    .filter((part) => !/^\d*$/.test(part))
}

/** Whether a member may name something: by its name, or by an `id` in its value. */
function namesResource(name: string, member: unknown): boolean {
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
  // The tabs and downloads of a browser that the caller runs.
  if (name === 'tabs' || name === 'state_changes') return type === 'browser_state'
  // The bytes of a file that came in a form.
  return ArrayBuffer.isView(member)
}

/** Returns the kind of resource that an item of a list names by its `id`; undefined if it names none. */
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
  return someObject(content, hasText) || someObject(summary, hasText)
}

/** Whether an item of an input is only an id: the upstream then looks up the rest. */
function isBareItem({ id, type, role, content }: JsonObject): boolean {
  if (typeof id !== 'string' || typeof type === 'string') return false
  return (role ?? undefined) === undefined || (content ?? undefined) === undefined
}

/** Whether a skill is one that the provider offers to all, such as `openai-spreadsheets`; the ids of others begin with `skill`. */
function isProvidersSkill({ type }: JsonObject, id: unknown): boolean {
  if (type === 'skill_reference') return typeof id === 'string' && id.startsWith('openai-')
  return type === 'anthropic'
}

/** The resources that a body names. */
class BodyReferences {
  readonly list: Reference[] = []
  readonly #body: JsonObject

  constructor(body: JsonObject) {
    this.#body = body
  }

  /** Adds what a member names. */
  read(owner: object, name: string, member: unknown): this {
    if (name === 'skill_id' && isProvidersSkill(owner as JsonObject, member)) return this
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
        message: `The body names more than ${MAX_REFERENCES} stored resources. Send fewer at a time.`,
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

/**
 * Kinds of resources that upstreams keep, by the names that end with them: `input_file_id` is the id of a `file`,
 * `previous_response_id` that of a `response`, a thread's `previous_message_id` that of a `message`.
 */
const KINDS = [
  'file',
  'vector_store',
  'response',
  'conversation',
  'container',
  'thread',
  'assistant',
  'message_batch',
  'batch',
  'upload',
  'skill',
  'cached_content',
  'message',
]

/** Ids that name nothing an upstream keeps: they link parts of one request, or name what belongs to the caller. */
const HARMLESS: ReadonlySet<string> = new Set([
  'approval_request',
  'call',
  'caller',
  'client',
  'client_request',
  'connector',
  'custom',
  'customer',
  'end_user',
  'group',
  'model',
  'parent_tool_use',
  'part',
  'request',
  'span',
  'tool',
  'tool_call',
  'tool_use',
  'trace',
  'user',
])

/** Names without an ending that hold an id. */
const BARE: Readonly<Record<string, string>> = {
  agent: 'agent',
  agents: 'agent',
  assistant: 'assistant',
  cached_content: 'cached_content',
  callable_agents: 'agent',
  container: 'container',
  conversation: 'conversation',
  file_uri: 'file',
  input_files: 'file',
  predefined_agents: 'agent',
  session: 'session',
  thread: 'thread',
  training_file: 'file',
  training_files: 'file',
  validation_file: 'file',
  validation_files: 'file',
  vector_store: 'vector_store',
}

/** Members whose value is an object with an `id` of its own that names nothing kept. */
const OWN_IDS: ReadonlySet<string> = new Set(['function', 'message', 'model', 'provider', 'tool', 'user'])

const ID_ENDING = /[_-][iI][dD][sS]?$|[a-z0-9]I[dD][sS]?$/

/**
 * Returns the kind of resource that a member with an id names, in any case and form of the name: `file_id`,
 * `file_ids`, `fileId`. Returns undefined for any other member.
 */
export function kindOfMember(name: string): string | undefined {
  const last = name.charCodeAt(name.length - 1) | 0x20
  // Of the ending "id" or "ids"; the test spares most names the expression.
  const mayEndSo = last === 0x64 || last === 0x73
  if (mayEndSo && ID_ENDING.test(name)) {
    const base = snakeCase(name).replace(/_ids?$/, '')
    return HARMLESS.has(base) || base.endsWith('token') ? undefined : kindOfBase(base)
  }
  return name.length > MAX_BARE_LENGTH ? undefined : bareKindOf(name)
}

/** Returns the kind of resource that a member names whose value is an object with an `id`, such as `conversation`. */
export function kindOfHolder(name: string): string | undefined {
  const base = snakeCase(name)
  return OWN_IDS.has(base) ? undefined : kindOfBase(base)
}

/** Returns the kind of resource whose plural a name is, such as `files`; undefined for any other name. */
export function kindOfList(name: string): string | undefined {
  return KINDS.find((kind) => name === `${kind}s` || name === `${kind}es`)
}

/** Returns the kind of resource that an object with an `id` names by its type, such as `item_reference` or `file_id`. */
export function kindOfType(type: string): string | undefined {
  const base = /^(\w{1,64})_(?:reference|id)$/i.exec(type)?.[1]
  return base === undefined ? undefined : kindOfBase(snakeCase(base))
}

/** Whether a name may be another form of a name in snake case. */
const OTHER_FORM = /[A-Z-]/
const MAX_BARE_LENGTH = Math.max(...Object.keys(BARE).map((name) => name.length))

function bareKindOf(name: string): string | undefined {
  if (Object.hasOwn(BARE, name)) return BARE[name]
  if (!OTHER_FORM.test(name)) return undefined
  const base = snakeCase(name)
  return Object.hasOwn(BARE, base) ? BARE[base] : undefined
}

function kindOfBase(base: string): string {
  return KINDS.find((kind) => base === kind || base.endsWith(`_${kind}`)) ?? base
}

function snakeCase(name: string): string {
  return name
    .slice(-64)
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replaceAll('-', '_')
    .toLowerCase()
}
