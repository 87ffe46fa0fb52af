import type { Request } from 'express'
import type { OpenCall } from '../call/index.ts'
import { keepingIntegers } from '../json/index.ts'

/** The content of a request, or why it is not known: no parser is mounted, or none took a body of this type. */
export type RequestContent = KnownContent | 'no parser' | 'not parsed'

export interface KnownContent {
  /** The value of the body, with what is known of uploads. */
  readonly value: unknown
  /** The paths of uploaded files whose content is only on the disk. Empty: there are none. */
  readonly files: readonly string[]
}

/** Returns the content of a request. */
export function contentOf(req: Request, call: OpenCall): RequestContent {
  const files: string[] = []
  if (call.request) {
    const { json, raw } = call.request.body
    return { value: raw.length > 0 ? keepingIntegers(json, raw) : json, files }
  }
  const uploads = uploadsOf(req, files)
  if (uploads) return { value: { body: req.body, uploads }, files }
  if (req.body !== undefined) return { value: req.body, files }
  const { 'content-length': length = '0', 'transfer-encoding': coding } = req.headers
  if (coding === undefined && length === '0') return { value: undefined, files }
  // A parser of Express leaves the property behind also where the type of the body is not its own.
  return 'body' in req ? 'not parsed' : 'no parser'
}

/** The members by which parsers of uploads (multer, express-fileupload, formidable) name and describe a file. */
const ABOUT = ['fieldname', 'originalname', 'originalFilename', 'name', 'mimetype', 'size']
/** The members that have its content, or a hash of it. */
const CONTENT = ['md5', 'hash', 'buffer', 'data']
/** The members that have its path on the disk, which differs each time. */
const PATHS = ['path', 'filepath', 'tempFilePath']

/** Files by field, each field with a list of them. */
const DEPTH = 3

/**
 * Returns the identifying members of the files in `req.file` and `req.files`; undefined if there are none.
 *
 * @param onDisk receives the paths of those whose content is only there.
 */
function uploadsOf(req: object, onDisk: string[]): readonly unknown[] | undefined {
  const { file, files } = req as { file?: unknown; files?: unknown }
  if (file === undefined && files === undefined) return undefined
  return [aboutUpload(file, onDisk, DEPTH), aboutUpload(files, onDisk, DEPTH)]
}

function aboutUpload(given: unknown, onDisk: string[], depth: number): unknown {
  if (typeof given !== 'object' || given === null || depth === 0) return undefined
  if (Array.isArray(given)) return given.map((each) => aboutUpload(each, onDisk, depth - 1))
  const members = given as Readonly<Record<string, unknown>>
  if (typeof members.size !== 'number')
    return Object.fromEntries(
      Object.entries(members).map(([field, each]) => [field, aboutUpload(each, onDisk, depth - 1)]),
    )
  const path = PATHS.map((name) => members[name]).find((each) => typeof each === 'string' && each !== '')
  if (typeof path === 'string' && !CONTENT.some((name) => hasContent(members[name]))) onDisk.push(path)
  return [...ABOUT, ...CONTENT].map((name) => members[name])
}

function hasContent(value: unknown): boolean {
  return (typeof value === 'string' || value instanceof Uint8Array) && value.length > 0
}
