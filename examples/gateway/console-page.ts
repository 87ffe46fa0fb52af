import { hash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { isRead } from './http-method.ts'
import { singleFlight } from './single-flight.ts'

const FOLDER = fileURLToPath(new URL('./console/', import.meta.url))

/** Allows resources of this origin only, no inline code, and no embedding in other pages. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ')

const HEADERS = {
  'content-security-policy': CONTENT_SECURITY_POLICY,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  // Browsers revalidate each time and get a 304 if the file is unchanged.
  'cache-control': 'no-cache',
}

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.js': 'text/javascript; charset=utf-8',
  '.ts': 'text/javascript; charset=utf-8',
  '.txt': 'text/plain; charset=utf-8',
}

interface PageFile {
  readonly type: string
  readonly text: string
  readonly etag: string
}

/**
 * Serves the console, a page for operators and holders of keys. Mount it under `/console`. The page calls the gateway's
 * endpoints with the key or token that its user enters; the files themselves need no credential.
 *
 * Browsers get the TypeScript of `console/` without its types; the package has it compiled. All files are read once, at the first request, so that no
 * path of a request becomes a path of the disk.
 */
export function consolePage(): RequestHandler {
  const readOnce = singleFlight(readPageFiles, () => Number.POSITIVE_INFINITY)

  return async function consolePage(req: Request, res: Response, next: NextFunction): Promise<void> {
    if (!isRead(req)) return next()
    // The page refers to its files relative to /console, so that it works below a proxy's prefix too.
    if (/^[^?]*\/(?:\?|$)/.test(req.originalUrl)) return res.set(HEADERS).redirect(308, '../console')
    const file = (await readOnce()).get(req.path === '/' ? 'index.html' : req.path.slice(1))
    if (!file) return next()
    res.set(HEADERS).set('etag', file.etag).type(file.type).send(file.text)
  }
}

async function readPageFiles(): Promise<ReadonlyMap<string, PageFile>> {
  const own = (await readdir(FOLDER, { recursive: true })).map((name) => name.replaceAll('\\', '/'))
  const paths = new Map(own.map((name) => [name, `${FOLDER}${name}`]))
  for (const [name, source] of VENDORED)
    if (!paths.has(name)) paths.set(name, fileURLToPath(import.meta.resolve(source)))
  const files = [...paths].map(async ([name, path]): Promise<[string, PageFile][]> => {
    const type = TYPES[extname(name)]
    if (type === undefined) return []
    const source = await readFile(path, 'utf8')
    const text = name.endsWith('.ts') ? await withoutTypes(source) : source
    return [[name, { type, text, etag: `"${hash('sha256', text)}"` }]]
  })
  return new Map((await Promise.all(files)).flat())
}

async function withoutTypes(source: string): Promise<string> {
  const { transformSync } = await import('amaro')
  return transformSync(source, { mode: 'strip-only' }).code
}

/**
 * The files of others that the console is served with, by their names below `/console`. A clone has them in
 * `node_modules`; the build copies them, so that the package needs no installation of theirs.
 */
export const VENDORED: readonly (readonly [name: string, source: string])[] = [
  ['vendor/uplot.js', 'uplot/dist/uPlot.esm.js'],
  ['vendor/uplot.css', 'uplot/dist/uPlot.min.css'],
  ['vendor/uplot.LICENSE.txt', 'uplot/LICENSE'],
]
