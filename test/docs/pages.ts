import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ERROR_CODES } from '../../lib/core/errors/index.ts'

export const ROOT = fileURLToPath(new URL('../../', import.meta.url))

const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  exports: Readonly<Record<string, Readonly<Record<string, unknown>>>>
}

/** The folder of `lib` behind each public subpath, such as `lib/middleware/route` behind `route`. */
export const SLICES: ReadonlyMap<string, string> = new Map(
  Object.entries(manifest.exports).flatMap(([subpath, entry]) => {
    const source = String(entry['@express-model-gateway/source'])
    const folder = /^\.\/(lib\/.+)\/(?:index|public)\.ts$/.exec(source)?.[1]
    return folder === undefined ? [] : [[subpath.slice(2), folder] as const]
  }),
)

/** A block of code in a page, as the page has it. */
export interface Block {
  /** The page, from the root of the repository. */
  readonly page: string
  readonly language: string
  /** Line of the page on which the code begins, from 1. */
  readonly line: number
  readonly code: string
}

/** All blocks of the pages that match, page by page, in their order. */
export function blocksOf(patterns: readonly string[]): Block[] {
  const pages = globSync([...patterns], { cwd: ROOT }).sort()
  return pages.flatMap((page) => {
    const text = readFileSync(join(ROOT, page), 'utf8')
    return [...text.matchAll(/^```(\w+)\n(.*?)^```$/gms)].map((block) => ({
      page,
      language: block[1] as string,
      line: text.slice(0, block.index).split('\n').length + 1,
      code: block[2] as string,
    }))
  })
}

/** A request that a page asks the reader to paste. */
export interface CurlLine {
  readonly page: string
  /** The words of the command behind `curl`, as a shell splits them. */
  readonly words: readonly string[]
  /** The status that the page names in the line above, such as `# 401 missing_credential`; else 200. */
  readonly status: number
  /** The error code that it says. */
  readonly code: string | undefined
}

/** The requests of a block to an address. One that needs something filled in has an ellipsis where that belongs. */
export function curlLinesOf({ page, code }: Block, origin: string): CurlLine[] {
  const lines = code.replaceAll('\\\n', ' ').split('\n')
  return lines.flatMap((line, i) => {
    if (!line.startsWith('curl ') || !line.includes(origin) || line.includes('…')) return []
    const [, status = '200', word = ''] = /^# (\d{3})(?: (\w+))?/.exec(lines[i - 1] ?? '') ?? []
    const error = Object.hasOwn(ERROR_CODES, word) ? word : undefined
    return [{ page, words: wordsOf(line).slice(1), status: Number(status), code: error }]
  })
}

function wordsOf(command: string): string[] {
  const words = command.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)
  return [...words].map(([, single, double, plain]) => single ?? double ?? plain ?? '')
}

/** Of curl's options those that change nothing about the request; the second have a value. */
const SILENT: ReadonlySet<string> = new Set(['-s', '-i', '-N'])
const SILENT_WITH_VALUE: ReadonlySet<string> = new Set(['-o', '-D'])

/** The request that curl makes of these words: of its options those that the pages use. */
export function requestOf(words: readonly string[]): { url: string; init: RequestInit } {
  const headers: [string, string][] = []
  let url = ''
  let method: string | undefined
  let body: string | FormData | undefined
  for (let i = 0; i < words.length; i++) {
    const word = words[i] ?? ''
    if (word === '-H') {
      const [name = '', ...value] = (words[++i] ?? '').split(': ')
      headers.push([name, value.join(': ')])
    } else if (word === '-d') {
      body = words[++i]
      headers.push(['content-type', 'application/x-www-form-urlencoded'])
    } else if (word === '-F') {
      const [name = '', ...value] = (words[++i] ?? '').split('=')
      body = body instanceof FormData ? body : new FormData()
      const [file] = value.join('=').match(/(?<=^@).+/) ?? []
      if (file === undefined) body.append(name, value.join('='))
      else body.append(name, new File(['what is in it'], file))
    } else if (word === '-X') method = words[++i]
    else if (SILENT_WITH_VALUE.has(word)) i++
    else if (word.startsWith('http')) url = word
    else assert.ok(SILENT.has(word), `a page uses the option "${word}" of curl, which is not known here`)
  }
  const given = headers.findIndex(([name]) => name.toLowerCase() === 'content-type')
  // A content type that the page names replaces the one that curl sends by default.
  const sent = headers.filter(([name], i) => name.toLowerCase() !== 'content-type' || i === given)
  return { url, init: { method: method ?? (body ? 'POST' : 'GET'), headers: sent, body: body ?? null } }
}

/** Sends the request of a page to where the server is in this test, and compares the answer with what the page says. */
export async function send(
  { words, status, code }: CurlLine,
  origin: string,
  url: string,
  variables: Readonly<Record<string, string>> = {},
): Promise<void> {
  const filled = words.map((word) => word.replace(/\$(\w+)/g, (name, key: string) => variables[key] ?? name))
  const { url: documented, init } = requestOf(filled)
  const response = await fetch(documented.replace(origin, url), init)
  const text = await response.text()
  assert.equal(response.status, status, text)
  assert.ok(text.length > 0)
  if (code !== undefined) assert.equal((JSON.parse(text) as { error: { code: string } }).error.code, code)
}
