import { isUtf8 } from 'node:buffer'
import type { OutgoingHttpHeader, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { watchHead } from '../call/index.ts'
import { isJsonObject } from '../json/index.ts'

/** An answer as a store keeps it, as JSON. */
export interface AnswerRecord {
  readonly status: number
  /** null: it stood there before, and the handler has removed it. */
  readonly headers: Readonly<Record<string, string | number | readonly string[] | null>>
  readonly body: string
  readonly encoding: 'utf8' | 'base64'
}

/** Headers of one exchange, and cookies, which are for the caller of one request. */
const NOT_KEPT: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'date',
  'keep-alive',
  'set-cookie',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** Statuses whose answers have no body. */
const BODILESS: ReadonlySet<number> = new Set([204, 205, 304])

/**
 * Records an answer as the handler gives it: what middlewares have set before, or change on the way
 * out, such as the encoding of `compression`, is theirs again at a repetition.
 */
export class RecordedAnswer {
  readonly #res: ServerResponse
  readonly #limit: number
  readonly #leftOut: RegExp | undefined
  readonly #before: OutgoingHttpHeaders
  /** All headers of the answer. */
  #sent: OutgoingHttpHeaders = {}
  #head: Pick<AnswerRecord, 'status' | 'headers'> | undefined
  /** The length of the body that the answer has declared. */
  #declared: number | undefined
  #chunks: Buffer[] = []
  #bytes = 0

  /**
   * @param limit the largest body to keep, in bytes.
   * @param leftOut the names of further headers that are not kept.
   */
  constructor(res: ServerResponse, limit: number, leftOut?: RegExp) {
    this.#res = res
    this.#limit = limit
    this.#leftOut = leftOut
    this.#before = res.getHeaders()
    watchHead(
      res,
      (given) => this.#noteHead(given),
      () => this.#restart(),
    )
  }

  /** Adds what was passed to `write` or `end`. Copies it, because a handler may use its buffers again. */
  add(chunk: unknown, encoding: unknown): void {
    this.#noteHead([])
    const isText = typeof chunk === 'string'
    if (!isText && !(chunk instanceof Uint8Array)) return
    const isNamed = typeof encoding === 'string' && Buffer.isEncoding(encoding)
    const bytes = isText ? Buffer.from(chunk, isNamed ? encoding : 'utf8') : Buffer.from(chunk)
    this.#bytes += bytes.byteLength
    if (this.#bytes <= this.#limit) this.#chunks.push(bytes)
    else this.#chunks = []
  }

  /** Returns a header of the answer, also one that stood there before, in small letters; empty if it has none. */
  header(name: string): string {
    this.#noteHead([])
    return String(this.#sent[name] ?? '').toLowerCase()
  }

  /** Returns the answer; undefined if it is too large, or has not the length that it declared: its caller saw it break off. */
  encode(): string | undefined {
    this.#noteHead([])
    if (this.#bytes > this.#limit || !this.#head) return undefined
    const isBroken = this.#declared !== undefined && this.#declared !== this.#bytes
    if (isBroken && !BODILESS.has(this.#head.status)) return undefined
    const body = Buffer.concat(this.#chunks)
    const encoding = isUtf8(body) ? 'utf8' : 'base64'
    return JSON.stringify({ ...this.#head, body: body.toString(encoding), encoding } satisfies AnswerRecord)
  }

  #restart(): void {
    this.#head = undefined
    this.#declared = undefined
    this.#chunks = []
    this.#bytes = 0
  }

  /** @param given the arguments of `writeHead`. */
  #noteHead(given: readonly unknown[]): void {
    if (this.#head) return
    const status = typeof given[0] === 'number' ? given[0] : this.#res.statusCode
    const all = { ...this.#res.getHeaders(), ...headersIn(given.at(-1)) }
    const headers: Record<string, string | number | readonly string[] | null> = {}
    for (const name of Object.keys(this.#before))
      if (all[name] === undefined && !NOT_KEPT.has(name)) headers[name] = null
    for (const [name, value] of Object.entries(all)) {
      if (value === undefined || NOT_KEPT.has(name) || this.#leftOut?.test(name)) continue
      if (String(value) === String(this.#before[name])) continue
      headers[name] = value
    }
    this.#head = { status, headers }
    this.#sent = all
    const length = all['content-length']
    if (length !== undefined) this.#declared = Number(length)
  }
}

function headersIn(given: unknown): OutgoingHttpHeaders {
  if (typeof given !== 'object' || given === null) return {}
  const headers: Record<string, OutgoingHttpHeader> = {}
  if (!Array.isArray(given)) {
    for (const [name, value] of Object.entries(given)) headers[name.toLowerCase()] = value
    return headers
  }
  // A list may have a name more than once.
  for (const [text, value] of pairsOf(given)) {
    const name = String(text).toLowerCase()
    const before = headers[name]
    headers[name] = before === undefined ? (value as string) : [before, value].flat().map(String)
  }
  return headers
}

/** Returns the headers of a list: of pairs, or of names and values in turn. */
function pairsOf(list: readonly unknown[]): [unknown, unknown][] {
  if (Array.isArray(list[0])) return list as [unknown, unknown][]
  return Array.from({ length: list.length / 2 }, (_, i) => [list[2 * i], list[2 * i + 1]])
}

/** Reads an answer that {@link RecordedAnswer.encode} wrote. Returns undefined if the text is something else. */
export function answerRecordIn(text: string): AnswerRecord | undefined {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  return isAnswerRecord(value) ? value : undefined
}

function isAnswerRecord(value: unknown): value is AnswerRecord {
  if (!isJsonObject(value)) return false
  const { status, headers, body, encoding } = value
  const isBody = typeof body === 'string' && (encoding === 'utf8' || encoding === 'base64')
  return isBody && typeof status === 'number' && isJsonObject(headers)
}

/**
 * Answers a request with a recorded answer.
 *
 * @param further headers that are set last.
 */
export function sendRecorded(
  { status, headers, body, encoding }: AnswerRecord,
  res: ServerResponse,
  further: Readonly<Record<string, string>> = {},
): void {
  res.statusCode = status
  for (const [name, value] of Object.entries({ ...headers, ...further })) {
    if (value === null) res.removeHeader(name)
    else res.setHeader(name, value)
  }
  const bytes = Buffer.from(body, encoding)
  // A check of the stream on its way may change its length.
  const isStream = String(headers['content-type']).startsWith('text/event-stream')
  if (!BODILESS.has(status) && !isStream) res.setHeader('content-length', bytes.byteLength)
  res.end(bytes)
}
