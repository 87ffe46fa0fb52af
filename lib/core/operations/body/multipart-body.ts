import { randomBytes } from 'node:crypto'
import { FormFile } from './form-file.ts'
import type { MemberEdits } from './upstream-body.ts'

/** The bytes of a form, and the content type that names their boundary. */
export interface MultipartBody {
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
  const members: Record<string, unknown> = { ...json, model, provider: undefined }
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
