/**
 * What the parsers of uploads (multer, express-fileupload, formidable) say about the content of a file. Where they have put it
 * differs each time.
 */
const ABOUT_CONTENT = [
  ...['fieldname', 'originalname', 'originalFilename', 'name', 'mimetype', 'size'],
  ...['md5', 'hash', 'buffer', 'data'],
]

/** Files by field, each field with a list of them. */
const DEPTH = 3

/** Returns what tells the files that a parser has left in `req.file` or `req.files` from others; undefined if there are none. */
export function uploadsOf(req: object): readonly unknown[] | undefined {
  const { file, files } = req as { file?: unknown; files?: unknown }
  if (file === undefined && files === undefined) return undefined
  return [contentOf(file, DEPTH), contentOf(files, DEPTH)]
}

function contentOf(given: unknown, depth: number): unknown {
  if (typeof given !== 'object' || given === null || depth === 0) return undefined
  if (Array.isArray(given)) return given.map((each) => contentOf(each, depth - 1))
  const members = given as Readonly<Record<string, unknown>>
  if (typeof members.size === 'number') return ABOUT_CONTENT.map((name) => members[name])
  return Object.fromEntries(
    Object.entries(members).map(([field, each]) => [field, contentOf(each, depth - 1)]),
  )
}
