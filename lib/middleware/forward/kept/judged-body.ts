import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { takingBody } from '../../../core/body-budget/index.ts'
import type { Call } from '../../../core/call/index.ts'
import { GatewayError } from '../../../core/errors/index.ts'
import { isJsonObject, JsonFault, type JsonObject, parseUnambiguous } from '../../../core/json/index.ts'
import { kindOfField, type Reference, referencesIn } from '../../../core/operations/body/references.ts'
import { hasBody } from '../relay-headers.ts'
import { FormNames, notInForms } from './form-names.ts'
import { isModelField, judgeModels, type ModelJudge } from './named-models.ts'
import { type BodyBounds, receiveWhole } from './receive-whole.ts'

/** What the body of a request is judged by. */
export interface BodyRules extends BodyBounds {
  /** Judges the models that it names. */
  readonly judgeModel?: ModelJudge | undefined
}

/** The body of a request, once it is known what it names. */
export interface JudgedBody {
  readonly references: readonly Reference[]
  /** The body to send: the caller's own stream, or what was read of it. */
  readonly source: Readable
  /** Judges each piece before it is sent, and null before the end; throws to refuse it. Undefined if nothing is left to judge. */
  readonly watch: ((piece: Buffer | null) => void) | undefined
  /** The body as JSON, if it was read and is an object. */
  readonly json?: JsonObject | undefined
  /** The size of a body that was read. */
  readonly bytes: number
}

/**
 * The type of a form whose boundary everybody reads alike. By a second boundary, an escape, a comment or a continuation, an
 * upstream could find other parts than are judged here.
 */
const FORM =
  /^multipart\/form-data[ \t]*(?:;[ \t]*charset=[\w-]+[ \t]*)?;[ \t]*boundary=(?:"([\w'()+,./:=?-]{1,200})"|([\w'+./:=?-]{1,200}))[ \t]*(?:;[ \t]*charset=[\w-]+[ \t]*)?;?[ \t]*$/i
/** In a longer one, a run of spaces would take long to judge. */
const MAX_FORM_TYPE = 400
const URL_ENCODED = /^application\/x-www-form-urlencoded/i
const JSON_TYPE = /^[\w.+-]+\/(?:[\w.+-]+\+)?json\b/i
const NO_BOUNDARY =
  'The boundary of the form cannot be read. Send "Content-Type: multipart/form-data; boundary=…", with no other parameter.'
/** Types that no upstream reads as JSON or as a form. */
const BINARY =
  /^(?:audio|font|image|model|video)\/|^application\/(?:gzip|octet-stream|pdf|sdp|x-tar|zip)\b|^multipart\/(?!form-data)/i

/**
 * Judges the body of a request. Binary bodies pass unread, and forms as streams whose names are read. Anything that an
 * upstream could read as JSON is read whole, whatever its type says.
 *
 * @param signal aborted, with the reason, when the call must end.
 * @throws {GatewayError} `invalid_request` for JSON or a form that cannot be read; `request_too_large`,
 * `concurrency_limited` or `upstream_overloaded` for want of room; the reason of the signal.
 */
export async function judgeBody(
  call: Call,
  req: IncomingMessage,
  { bodyLimitBytes, budget, judgeModel }: BodyRules,
  signal: AbortSignal,
): Promise<JudgedBody> {
  const unread = { references: [], source: req, watch: undefined, bytes: 0 }
  const type = req.headers['content-type'] ?? ''
  if (!hasBody(req) || BINARY.test(type)) return unread
  const coding = req.headers['content-encoding'] ?? 'identity'
  if (coding.toLowerCase() !== 'identity') {
    throw new GatewayError('invalid_request', {
      param: 'Content-Encoding',
      message: 'This path takes no compressed bodies. Send the body as it is.',
    })
  }
  if (/^multipart\//i.test(type)) {
    const [, quoted, plain] = (type.length <= MAX_FORM_TYPE && FORM.exec(type)) || []
    const boundary = quoted ?? plain
    if (boundary === undefined) throw invalid(NO_BOUNDARY)
    const names = new FormNames(boundary, judgeModel)
    let left = Number(req.headers['content-length'] ?? Number.POSITIVE_INFINITY)
    const watch = (piece: Buffer | null): void => {
      if (piece) names.read(piece)
      left -= piece?.length ?? 0
      // An upstream that knows the length needs no other end.
      if (!piece || left <= 0) names.end()
    }
    return { ...unread, watch }
  }
  const isForm = URL_ENCODED.test(type)
  if (!isForm && !JSON_TYPE.test(type) && !(await beginsAsJson(req, signal))) return unread
  const raw = await receiveWhole(call, req, { bodyLimitBytes, budget }, signal)
  const source = Readable.from([raw])
  return {
    ...(isForm ? { references: namedInForm(raw, judgeModel) } : readJson(raw, call, judgeModel)),
    source,
    watch: undefined,
    bytes: raw.length,
  }
}

function namedInForm(raw: Buffer, judgeModel: ModelJudge | undefined): readonly Reference[] {
  // Some upstreams divide at semicolons, too.
  for (const [name, value] of new URLSearchParams(raw.toString().replaceAll(';', '&'))) {
    if (kindOfField(name) !== undefined) throw notInForms(name)
    if (isModelField(name)) judgeModel?.(value)
  }
  return []
}

function readJson(
  raw: Buffer,
  call: Call,
  judgeModel: ModelJudge | undefined,
): Pick<JudgedBody, 'references' | 'json'> {
  try {
    const json = parseUnambiguous(withoutMark(raw), takingBody(call, raw))
    const object = isJsonObject(json) ? json : undefined
    if (judgeModel) judgeModels({ json }, judgeModel)
    return { references: referencesIn(object ?? { items: json }), json: object }
  } catch (fault) {
    if (!(fault instanceof JsonFault)) throw fault
    throw new GatewayError('invalid_request', { ...fault.named, message: fault.message })
  }
}

/** Returns a text without its byte order mark. */
function withoutMark(raw: Buffer): Buffer {
  return raw[0] === 0xef && raw[1] === 0xbb && raw[2] === 0xbf ? raw.subarray(3) : raw
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

/** Whether the first byte of a body that is no white space could begin JSON. The body stays unread. */
async function beginsAsJson(req: IncomingMessage, signal: AbortSignal): Promise<boolean> {
  for (;;) {
    const piece = req.read() as Buffer | null
    if (piece !== null) {
      req.unshift(piece)
      const first = /\S/.exec(piece.toString('utf8', 0, 4096))?.[0]
      return first === undefined || first === '{' || first === '['
    }
    if (req.readableEnded || req.destroyed) return false
    await nextOf(req, signal)
  }
}

function invalid(message: string): GatewayError {
  return new GatewayError('invalid_request', { message })
}
