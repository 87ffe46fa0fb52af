import { randomBytes } from 'node:crypto'
import { editMembers, isJsonObject, type MemberEdits, memberText } from '../../json/index.ts'
import type { UpstreamEdit } from '../operation.ts'

/** Members that are for the gateway. */
const OWN_MEMBERS = ['provider', 'models']

/**
 * Returns the body for a line: the caller's bytes with the line's name of the model, without the gateway's own members.
 */
export function renamedBody(
  raw: Buffer,
  json: Readonly<Record<string, unknown>>,
  model: string,
  streamOptions?: string,
): Buffer {
  // No member stands twice in a body that was read, so nothing else in it can name the model.
  const own = OWN_MEMBERS.filter((member) => member in json)
  if (json.model === model && own.length === 0 && streamOptions === undefined) return raw
  const edits: Record<string, string | null> = { model: JSON.stringify(model) }
  for (const member of own) edits[member] = null
  if (streamOptions !== undefined) edits.stream_options = streamOptions
  return editMembers(raw, edits)
}

/** Whether the caller of an OpenAI-style stream asks for the usage chunk, in the words of OpenAI or of OpenRouter. */
export function asksForUsage(json: Readonly<Record<string, unknown>>): boolean {
  const { usage } = json
  return hasUsageOption(json) || (isJsonObject(usage) && usage.include === true)
}

function hasUsageOption({ stream_options: given }: Readonly<Record<string, unknown>>): boolean {
  return isJsonObject(given) && given.include_usage === true
}

/** Returns the body of an OpenAI-style call. If it streams, it asks for the usage chunk in any case. */
export function meteredBody(
  raw: Buffer,
  json: Readonly<Record<string, unknown>>,
  { model }: UpstreamEdit,
): Buffer {
  if (json.stream !== true || hasUsageOption(json)) return renamedBody(raw, json, model)
  return renamedBody(
    raw,
    json,
    model,
    withUsage(json.stream_options ? memberText(raw, 'stream_options') : undefined),
  )
}

/** Returns the caller's stream options with the usage chunk; all other options stay as they are. */
function withUsage(streamOptions = '{}'): string {
  return editMembers(Buffer.from(streamOptions), { include_usage: 'true' }).toString()
}

/** The bytes of a form, and the content type that names their boundary. */
interface MultipartBody {
  readonly type: string
  readonly bytes: Buffer
}

/**
 * Returns the form for a line: the caller's fields and files with the line's name of the model, without the gateway's own
 * members.
 *
 * @param edits the line's own changes.
 */
export function renamedForm(
  json: Readonly<Record<string, unknown>>,
  model: string,
  edits: MemberEdits = {},
): MultipartBody {
  const members: Record<string, unknown> = { ...json, model, provider: undefined, models: undefined }
  for (const name in edits) members[name] = JSON.parse(edits[name] ?? 'null')
  return multipartBody(members)
}

/** Writes members as a multipart form: files as files, all other values as text. */
export function multipartBody(members: Readonly<Record<string, unknown>>): MultipartBody {
  const boundary = `form-${randomBytes(16).toString('hex')}`
  const pieces: (string | Buffer)[] = []
  for (const [name, value] of leavesOf(members)) {
    pieces.push(`--${boundary}\r\ncontent-disposition: form-data; name="${quoted(name)}"`)
    if (value instanceof FormFile) {
      pieces.push(`; filename="${quoted(value.filename || 'file')}"\r\n`)
      pieces.push(`content-type: ${value.contentType}\r\n\r\n`, value.bytes, '\r\n')
    } else pieces.push(`\r\n\r\n${String(value)}\r\n`)
  }
  pieces.push(`--${boundary}--\r\n`)
  const bytes = Buffer.concat(pieces.map((piece) => (typeof piece === 'string' ? Buffer.from(piece) : piece)))
  return { type: `multipart/form-data; boundary=${boundary}`, bytes }
}

/** Yields the leaves of nested members, with names such as `a[b]` for objects and `a[]` for lists. */
function* leavesOf(
  members: Readonly<Record<string, unknown>>,
  within?: string,
): Generator<[string, unknown]> {
  for (const [key, value] of Object.entries(members)) {
    const name = within === undefined ? key : `${within}[${key}]`
    if (value === null || value === undefined) continue
    if (Array.isArray(value)) yield* listItems(value, name)
    else if (typeof value === 'object' && !(value instanceof FormFile))
      yield* leavesOf(value as Record<string, unknown>, name)
    else yield [name, value]
  }
}

function* listItems(list: readonly unknown[], name: string): Generator<[string, unknown]> {
  for (const item of list) {
    const isRecord = typeof item === 'object' && item !== null && !(item instanceof FormFile)
    if (isRecord) yield* leavesOf(item as Record<string, unknown>, `${name}[]`)
    else yield [`${name}[]`, item]
  }
}

/** Escapes a name as browsers do. */
function quoted(name: string): string {
  return name.replaceAll('"', '%22').replaceAll('\r', '%0D').replaceAll('\n', '%0A')
}

/** A file from a multipart body. In the body's JSON, it is the value of the part's name. */
export class FormFile {
  /** The name that the caller gave, without a path. */
  readonly filename: string
  /** The media type that the caller declared, in lower case, without parameters. */
  readonly contentType: string
  readonly bytes: Buffer

  constructor(filename: string, contentType: string, bytes: Buffer) {
    this.filename = filename
    this.contentType = contentType
    this.bytes = bytes
  }
}
