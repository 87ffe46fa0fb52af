import { isUtf8 } from 'node:buffer'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import type { OpenCall } from '../../../core/call/index.ts'
import { GatewayError } from '../../../core/errors/index.ts'
import {
  isJsonObject,
  JsonFault,
  type JsonObject,
  parseUnambiguous,
  withoutMark,
} from '../../../core/json/index.ts'
import { type BodyBounds, memoryClaimOf, receiveBody } from '../../../core/memory/index.ts'
import { fieldsOf, type Reference, referencesIn } from '../../../core/operations/body/references.ts'
import { hasBody } from '../relay-headers.ts'
import { type BodyType, readContentType } from './content-type.ts'
import { checkName, checkValue, type FieldRules, isPlainName, StrictForm } from './form.ts'
import { checkModels } from './model-names.ts'

/** The rules for the body of a request. */
export interface BodyRules extends BodyBounds, FieldRules {
  /** Whether the path takes raw bytes. */
  readonly takesRaw: boolean
}

/** The body of a request, once it is known what it names. */
export interface CheckedBody {
  readonly references: readonly Reference[]
  /** The body to send: the caller's own stream, or what was read of it. */
  readonly source: Readable
  /** Checks each piece before it is sent, and null before the end; throws to refuse it. Undefined if nothing is left to check. */
  readonly watch: ((piece: Buffer | null) => void) | undefined
  /** The body as JSON, if it was read and is an object. */
  readonly json?: JsonObject | undefined
  /** The size of a body that was read. */
  readonly bytes: number
}

/** A form of this size is read whole, so that no line is asked before it was checked. */
const SMALL_FORM_BYTES = 64 * 1024

/**
 * Checks the body of a request. JSON and encoded forms are read whole, longer multipart forms while they pass by. A body of any
 * other type passes unread only where the path takes raw bytes, and where it cannot be JSON: an upstream may read JSON
 * of any declared type.
 *
 * @param signal aborted, with the reason, when the call must end.
 * @throws {GatewayError} `invalid_request` for a body that upstreams could read in different ways, or that the path does not
 * take; `request_too_large`, `concurrency_limited` or `upstream_overloaded` for want of room; the reason of the signal.
 */
export async function checkBody(
  call: OpenCall,
  req: IncomingMessage,
  rules: BodyRules,
  signal: AbortSignal,
): Promise<CheckedBody> {
  const unread: CheckedBody = { references: [], source: req, watch: undefined, bytes: 0 }
  if (!hasBody(req)) return unread
  const coding = req.headers['content-encoding'] ?? 'identity'
  if (coding.toLowerCase() !== 'identity') {
    throw new GatewayError('invalid_request', {
      param: 'Content-Encoding',
      message: 'This path takes no compressed bodies. Send the body as it is.',
    })
  }
  const type = readContentType(req.headers['content-type'])
  if (type.kind === 'other' || type.kind === 'none') {
    const begin = await beginOf(req, signal)
    if (begin === undefined) return unread
    if (!beginsAsJson(begin)) {
      if (type.kind === 'none' || !rules.takesRaw || beginsAsForm(begin)) throw notTaken(rules.takesRaw)
      return unread
    }
  }
  const declared = Number(req.headers['content-length'] ?? Number.POSITIVE_INFINITY)
  if (type.kind === 'multipart' && declared > SMALL_FORM_BYTES) {
    const begin = await beginOf(req, signal)
    if (begin === undefined) return unread
    // A fault in the bytes that are there is reported before a request goes to a line.
    new StrictForm(type.boundary, rules).read(begin)
    return { ...unread, watch: watching(new StrictForm(type.boundary, rules), declared) }
  }
  const { bytes, held } = await receiveBody(call, req, rules, signal)
  // A copy, because the memory of the received body may be twice as large.
  const raw = held ? Buffer.from(bytes) : bytes
  held?.release()
  return {
    ...read(call, raw, type, rules),
    source: Readable.from([raw]),
    watch: undefined,
    bytes: raw.length,
  }
}

/** Returns what checks a form while it passes by. */
function watching(form: StrictForm, length: number): (piece: Buffer | null) => void {
  let left = length
  return (piece) => {
    if (piece) form.read(piece)
    left -= piece?.length ?? 0
    // An upstream that knows the length needs no other end.
    if (!piece || left <= 0) form.end()
  }
}

type Named = Pick<CheckedBody, 'references' | 'json'>

function read(call: OpenCall, raw: Buffer, type: BodyType, rules: BodyRules): Named {
  switch (type.kind) {
    case 'multipart': {
      const form = new StrictForm(type.boundary, rules)
      form.read(raw)
      form.end()
      return { references: [] }
    }
    case 'encoded':
    case 'none':
      // Some upstreams read it as a form, and others as JSON.
      if (raw.length > 0 && beginsAsJson(raw)) {
        readFields(raw, rules, false)
        return readJson(call, raw, rules)
      }
      readFields(raw, rules, true)
      return { references: [] }
    default:
      return readJson(call, raw, rules)
  }
}

/**
 * Checks the fields of an encoded form.
 *
 * @param isForm whether all of it must be fields. Otherwise it is JSON, and only what could be a field of it is checked.
 */
function readFields(raw: Buffer, rules: BodyRules, isForm: boolean): void {
  const text = raw.toString()
  const fields = new URLSearchParams(text)
  if (isForm) {
    if (!isUtf8(raw) || !isEncodedWell(text)) throw invalid(BAD_ENCODING)
    for (const name of fields.keys()) checkName(name, rules)
  }
  // Some upstreams drop spaces between fields.
  for (const [name, value] of fieldsOf(fields)) {
    const read = name.trim()
    if (!isPlainName(read)) continue
    checkName(read, rules)
    checkValue(read, Buffer.from(value), rules)
  }
}

function isEncodedWell(text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}

function readJson(call: OpenCall, raw: Buffer, { checkModel, ownedOnly }: BodyRules): Named {
  try {
    const json = parseUnambiguous(withoutMark(raw), memoryClaimOf(call, raw))
    // Some upstreams parse a string again.
    if (typeof json === 'string') throw new JsonFault('The request body is a string. Send an object.')
    const object = isJsonObject(json) ? json : undefined
    if (checkModel) checkModels({ json }, checkModel)
    return { references: ownedOnly ? referencesIn(object ?? { items: json }) : [], json: object }
  } catch (fault) {
    if (!(fault instanceof JsonFault)) throw fault
    throw new GatewayError('invalid_request', { ...fault.named, message: fault.message })
  }
}

/** Waits for bytes, or for the end. A request that has ended does not close before it is answered. */
async function nextOf(req: IncomingMessage, signal: AbortSignal): Promise<void> {
  const over = new AbortController()
  const either = { signal: AbortSignal.any([signal, over.signal]) }
  try {
    await Promise.race(['readable', 'end', 'close'].map((event) => once(req, event, either)))
  } catch (error) {
    signal.throwIfAborted()
    throw new GatewayError('client_closed_request', { cause: error })
  } finally {
    over.abort()
  }
}

/** Waits for the first bytes of a body, which stays unread. Returns undefined if nothing of it will come. */
async function beginOf(req: IncomingMessage, signal: AbortSignal): Promise<Buffer | undefined> {
  for (;;) {
    const piece = req.read() as Buffer | null
    if (piece !== null) {
      req.unshift(piece)
      return piece
    }
    if (req.readableEnded || req.destroyed) return undefined
    await nextOf(req, signal)
  }
}

/** White space, byte order marks and the empty bytes of longer encodings, before the first character of a text. */
const BEFORE_TEXT: ReadonlySet<number | undefined> = new Set([
  ...[0x00, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x20, 0x85, 0xa0],
  ...[0xef, 0xbb, 0xbf, 0xfe, 0xff],
])
/** An object, a list, or a comment before one. */
const JSON_BEGINS: ReadonlySet<number | undefined> = new Set([...Buffer.from('{[/')])
/** No encoding of a text has so many empty bytes in a row. */
const NO_TEXT = Buffer.alloc(4)

/** The beginnings that some parsers accept: other spaces before JSON, and the mark against its use as a script. */
const BEGINS_AS_LENIENT_JSON = /^\s*(?:[{[/]|\)\]\})/

/** Whether a body that begins so could be an object or a list of JSON, in any encoding. */
function beginsAsJson(begin: Buffer): boolean {
  if (BEGINS_AS_LENIENT_JSON.test(begin.toString())) return true
  let at = 0
  while (at < begin.length && BEFORE_TEXT.has(begin[at])) at++
  if (begin.subarray(0, at).includes(NO_TEXT)) return false
  return at === begin.length || JSON_BEGINS.has(begin[at])
}

/** A boundary, or the name of the first field and its value. */
const BEGINS_AS_FORM = /^[\s&;?]*(?:--|(?:[\w.$:@[\]+-]|%[\da-f]{2}){1,200}\s*=)/i
/** The first line of a session description. */
const SESSION_DESCRIPTION = /^v=0\r?\n/

/** Whether a body that begins so could be a form, of parts or encoded. */
function beginsAsForm(begin: Buffer): boolean {
  const text = begin.toString('utf8', 0, 1000)
  return BEGINS_AS_FORM.test(text) && !SESSION_DESCRIPTION.test(text)
}

const BAD_ENCODING = 'The form is not encoded as application/x-www-form-urlencoded.'
const TO_SEND = 'Send application/json, multipart/form-data or application/x-www-form-urlencoded'

function notTaken(takesRaw: boolean): GatewayError {
  const message = takesRaw
    ? `${TO_SEND}, or raw bytes with their own type, such as audio/wav.`
    : `This path takes no body of this type. ${TO_SEND}.`
  return new GatewayError('invalid_request', { param: 'Content-Type', message })
}

function invalid(message: string): GatewayError {
  return new GatewayError('invalid_request', { message })
}
