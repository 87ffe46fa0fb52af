import type { Request } from 'express'
import type { OpenCall } from '../call/index.ts'

/** The value of a request's body, or why it is not known: no parser is mounted, or none took a body of this type. */
export type RequestContent = { readonly value: unknown } | 'no parser' | 'not parsed'

/** Returns the value of the request's body. */
export function contentOf(req: Request, call: OpenCall): RequestContent {
  if (call.request) return { value: call.request.body.json }
  const uploads = uploadsOf(req)
  if (uploads) return { value: { body: req.body, uploads } }
  if (req.body !== undefined) return { value: req.body }
  const { 'content-length': length = '0', 'transfer-encoding': coding } = req.headers
  if (coding === undefined && length === '0') return { value: undefined }
  // A parser of Express leaves the property behind also where the type of the body is not its own.
  return 'body' in req ? 'not parsed' : 'no parser'
}

/**
 * The members by which parsers of uploads (multer, express-fileupload, formidable) describe the content of a file.
 * Their other members, such as its path, differ each time.
 */
const ABOUT_CONTENT = [
  ...['fieldname', 'originalname', 'originalFilename', 'name', 'mimetype', 'size'],
  ...['md5', 'hash', 'buffer', 'data'],
]

/** Files by field, each field with a list of them. */
const DEPTH = 3

/** Returns the identifying members of the files in `req.file` and `req.files`; undefined if there are none. */
function uploadsOf(req: object): readonly unknown[] | undefined {
  const { file, files } = req as { file?: unknown; files?: unknown }
  if (file === undefined && files === undefined) return undefined
  return [aboutUpload(file, DEPTH), aboutUpload(files, DEPTH)]
}

function aboutUpload(given: unknown, depth: number): unknown {
  if (typeof given !== 'object' || given === null || depth === 0) return undefined
  if (Array.isArray(given)) return given.map((each) => aboutUpload(each, depth - 1))
  const members = given as Readonly<Record<string, unknown>>
  if (typeof members.size === 'number') return ABOUT_CONTENT.map((name) => members[name])
  return Object.fromEntries(
    Object.entries(members).map(([field, each]) => [field, aboutUpload(each, depth - 1)]),
  )
}
