import { GatewayError } from '../../core/errors/index.ts'
import { isJsonObject } from '../../core/json/index.ts'

/** A text of a body or an answer, and how to replace it. */
export interface Text {
  readonly text: string
  /** @throws {GatewayError} if the replaced text is not what must stand there. */
  set(text: string): void
}

/** Strings of these members are names and keys of the protocols, or data, and no text that people or models write. */
const NO_TEXT: ReadonlySet<string> = new Set([
  ...['type', 'role', 'id', 'model', 'object', 'status', 'index', 'stop_reason', 'finish_reason'],
  ...['tool_call_id', 'tool_use_id', 'call_id', 'item_id', 'response_id', 'previous_response_id', 'file_id'],
  ...['media_type', 'format', 'detail', 'data', 'file_data', 'b64_json', 'encrypted_content', 'signature'],
  ...['service_tier', 'system_fingerprint', 'event_id', 'obfuscation', '$schema'],
])

/** Nothing in these members is a text: logprobs repeat one, and no line gets the constraint of providers. */
const NO_TEXTS: ReadonlySet<string> = new Set(['logprobs', 'provider'])

/** A file may stand in these members in place of its address. */
const ADDRESSES: ReadonlySet<string> = new Set(['url', 'image_url', 'video_url', 'audio_url', 'file_url'])

/** Arguments of tools that are objects rather than their JSON. */
const TOOL_USES: ReadonlySet<unknown> = new Set(['tool_use', 'server_tool_use', 'mcp_tool_use'])

const MAX_DEPTH = 200

/** The descriptions of data: a model also reads the names in them. */
const SCHEMAS: ReadonlySet<string> = new Set([
  ...['parameters', 'input_schema', 'output_schema', 'schema', 'json_schema'],
])

/**
 * Returns the texts of a JSON value, in their order. Arguments of tools, and schemas, are one text, their JSON.
 *
 * @param isOfProtocol whether members have the meaning that the protocols of models give them; else each string is a text.
 */
export function textsOf(json: unknown, isOfProtocol = true): Text[] {
  const found: Text[] = []
  walk(json, { found, isOfProtocol }, 0)
  return found
}

interface Search {
  readonly found: Text[]
  readonly isOfProtocol: boolean
}

function walk(value: unknown, search: Search, depth: number): void {
  if (typeof value !== 'object' || value === null) return
  if (depth > MAX_DEPTH)
    throw new GatewayError('invalid_request', { message: 'The body has too many levels to be checked.' })
  const members = value as Record<string, unknown>
  const { found, isOfProtocol } = search
  const isToolUse = TOOL_USES.has(members.type)
  for (const [name, member] of Object.entries(members)) {
    if (isOfProtocol && !Array.isArray(value) && NO_TEXTS.has(name)) continue
    if (typeof member === 'string') {
      if (isText(name, members, isOfProtocol)) found.push(textMember(members, name))
    } else if (isJsonObject(member) && ((isToolUse && name === 'input') || SCHEMAS.has(name))) {
      if (Object.keys(member).length > 0) found.push(jsonMember(members, name))
    } else walk(member, search, depth + 1)
  }
}

function isText(name: string, members: Record<string, unknown>, isOfProtocol: boolean): boolean {
  const text = members[name] as string
  if (text === '' || (ADDRESSES.has(name) && text.startsWith('data:'))) return false
  if (!isOfProtocol) return !(name === 'data' && members.type === 'base64')
  // A document of Anthropic's protocol may be plain text.
  return !NO_TEXT.has(name) || (name === 'data' && members.type === 'text')
}

/** Whether the text of a member, or of a stream of pieces with this name, is JSON: the arguments of a tool. */
export function isJsonText(name: string): boolean {
  return /arguments|partial_json/.test(name)
}

/** Writes escaped letters of JSON as themselves, which means the same: `\u00fc` hides nothing from a pattern. */
export function withoutEscapes(json: string): string {
  return json.replace(/\\(?:u([\da-f]{4})|.)/gis, (given: string, code: string | undefined) => {
    const letter = code === undefined ? '' : String.fromCharCode(Number.parseInt(code, 16))
    return letter === '' || letter < ' ' || letter === '"' || letter === '\\' ? given : letter
  })
}

function textMember(members: Record<string, unknown>, name: string): Text {
  const text = members[name] as string
  return {
    text: isJsonText(name) ? withoutEscapes(text) : text,
    set(text) {
      members[name] = text
    },
  }
}

function jsonMember(members: Record<string, unknown>, name: string): Text {
  return {
    text: JSON.stringify(members[name]),
    set(text) {
      try {
        members[name] = JSON.parse(text)
      } catch {
        throw new GatewayError('content_filtered', {
          message: 'The arguments or the schema of a tool contain text that is not allowed.',
        })
      }
    },
  }
}

/** Removes the texts of single tokens, which repeat a text that was replaced. */
export function dropLogprobs(value: unknown, depth = 0): void {
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return
  const members = value as Record<string, unknown>
  for (const [name, member] of Object.entries(members)) {
    if (name === 'logprobs' && typeof member === 'object' && !Array.isArray(value))
      members[name] = Array.isArray(member) ? [] : null
    else dropLogprobs(member, depth + 1)
  }
}
