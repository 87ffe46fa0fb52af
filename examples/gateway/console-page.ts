import { hash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { NextFunction, Request, RequestHandler, Response } from 'express'

const FOLDER = fileURLToPath(new URL('./console/', import.meta.url))

/** Everything comes from here, no text ever becomes markup or code, and no other page holds this one in a frame. */
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
  // Asked for each time, answered with 304 while it is the same.
  'cache-control': 'no-cache',
}

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.ts': 'text/javascript; charset=utf-8',
}

interface PageFile {
  readonly type: string
  readonly text: string
  readonly etag: string
}

/**
 * The console: a page for operators and holders of keys, to be mounted under `/console`. It asks the gateway's own
 * endpoints and nothing else, with the key or the token that its user types in; serving it needs neither.
 *
 * Browsers get the TypeScript of `console/` without its types, as Node itself runs the rest of this example. The files
 * are read once, when the page is first asked for; no path of a request ever becomes a path of the disk.
 */
export function consolePage(): RequestHandler {
  let reading: Promise<ReadonlyMap<string, PageFile>> | undefined

  return async function consolePage(req: Request, res: Response, next: NextFunction): Promise<void> {
    if (req.method !== 'GET' && req.method !== 'HEAD') return next()
    // The page names its files relative to /console, so that it also works below a proxy's prefix.
    if (/^[^?]*\/(?:\?|$)/.test(req.originalUrl)) return res.set(HEADERS).redirect(308, '../console')
    reading ??= readPageFiles()
    const file = (await reading).get(req.path === '/' ? 'index.html' : req.path.slice(1))
    if (!file) return next()
    res.set(HEADERS).set('etag', file.etag).type(file.type).send(file.text)
  }
}

async function readPageFiles(): Promise<ReadonlyMap<string, PageFile>> {
  const { transformSync } = await import('amaro')
  const names = await readdir(FOLDER, { recursive: true })
  const files = names.map(async (name): Promise<[string, PageFile][]> => {
    const type = TYPES[extname(name)]
    if (type === undefined) return []
    const source = await readFile(`${FOLDER}${name}`, 'utf8')
    const text = name.endsWith('.ts') ? transformSync(source, { mode: 'strip-only' }).code : source
    return [[name.replaceAll('\\', '/'), { type, text, etag: `"${hash('sha256', text)}"` }]]
  })
  return new Map((await Promise.all(files)).flat())
}
