/**
 * Kinds of things that upstreams keep, by the names that end with them: `input_file_id` is the id of a `file`,
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
  'client',
  'client_request',
  'connector',
  'custom',
  'customer',
  'end_user',
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
 * Returns the kind of thing that a member with an id names, whatever the case and form of the name: `file_id`,
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

/** Returns the kind of thing that a member names whose value is an object with an `id`, such as `conversation`. */
export function kindOfHolder(name: string): string | undefined {
  const base = snakeCase(name)
  return OWN_IDS.has(base) ? undefined : kindOfBase(base)
}

/** Returns the kind of thing whose plural a name is, such as `files`; undefined for any other name. */
export function kindOfList(name: string): string | undefined {
  return KINDS.find((kind) => name === `${kind}s` || name === `${kind}es`)
}

/** Returns the kind of thing that an object with an `id` names by its type, such as `item_reference` or `file_id`. */
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
