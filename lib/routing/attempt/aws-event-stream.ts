import { crc32 } from 'node:zlib'
import { isJsonObject, parseJson } from '../../core/json/index.ts'
import type { BodyDecoder, DecodedBody } from './content-decoding.ts'

/** The media type of the event streams of AWS. */
export const AWS_EVENT_STREAM = 'application/vnd.amazon.eventstream'

/** The lengths and the checksum that a message begins with, and the checksum at its end. */
const PRELUDE_BYTES = 12
const CHECKSUM_BYTES = 4
/** AWS sends none that is longer. */
const MAX_MESSAGE_BYTES = 16 * 1024 * 1024
const BROKEN = 'the answer is no valid event stream'

/** Sizes of the values of headers, by their types; those of -1 begin with their length. */
const VALUE_BYTES = [0, 0, 1, 2, 4, 8, -1, -1, 8, 16]
const STRING = 7

/** A type with the end of a line would be several events. */
const TYPE_NAME = /^[\w.]+$/

/** The members of a model's events that concern AWS's account only. */
const OF_AWS = /^amazon-bedrock-/

/**
 * Decodes an event stream of AWS, as Bedrock answers with, into server-sent events.
 *
 * Source: the Amazon Transcribe developer guide, "Event stream encoding", and the Bedrock API reference, "ResponseStream".
 */
export class AwsEventStream implements BodyDecoder {
  readonly #body: DecodedBody
  #chunks: Buffer[] = []
  #size = 0
  /** The bytes that the next step needs. */
  #needed = PRELUDE_BYTES
  #over = false

  constructor(body: DecodedBody) {
    this.#body = body
  }

  write(chunk: Buffer): void {
    if (this.#over) return
    this.#chunks.push(chunk)
    this.#size += chunk.length
    if (this.#size < this.#needed) return
    const bytes = this.#chunks.length === 1 ? chunk : Buffer.concat(this.#chunks)
    let events = ''
    let at = 0
    try {
      for (;;) {
        const length = messageLength(bytes, at)
        this.#needed = length
        if (bytes.length - at < length) break
        events += eventOf(bytes.subarray(at, at + length))
        at += length
      }
    } catch {
      this.#tell(events)
      this.#conclude(() => this.#body.failed(BROKEN))
      return
    }
    const rest = bytes.subarray(at)
    this.#chunks = rest.length > 0 ? [rest] : []
    this.#size = rest.length
    this.#tell(events)
  }

  end(): void {
    this.#conclude(() => (this.#size > 0 ? this.#body.failed(BROKEN) : this.#body.ended()))
  }

  cut(then: () => void): void {
    this.#conclude(then)
  }

  pause(): void {}

  resume(): void {}

  close(): void {
    this.#over = true
    this.#chunks = []
  }

  #tell(events: string): void {
    if (events !== '') this.#body.decoded(Buffer.from(events))
  }

  #conclude(then: () => void): void {
    if (this.#over) return
    this.#over = true
    then()
  }
}

/** Returns the length of the message that begins at a place, or that of a prelude if that is not whole. */
function messageLength(bytes: Buffer, at: number): number {
  if (bytes.length - at < PRELUDE_BYTES) return PRELUDE_BYTES
  const length = bytes.readUInt32BE(at)
  const headers = bytes.readUInt32BE(at + 4)
  if (
    crc32(bytes.subarray(at, at + 8)) !== bytes.readUInt32BE(at + 8) ||
    length > MAX_MESSAGE_BYTES ||
    headers > length - PRELUDE_BYTES - CHECKSUM_BYTES
  )
    throw new RangeError(BROKEN)
  return length
}

/** Returns the event of a message; '' for a message that says nothing. */
function eventOf(message: Buffer): string {
  const end = message.length - CHECKSUM_BYTES
  if (crc32(message.subarray(0, end)) !== message.readUInt32BE(end)) throw new RangeError(BROKEN)
  const payloadAt = PRELUDE_BYTES + message.readUInt32BE(4)
  const headers = stringHeaders(message.subarray(PRELUDE_BYTES, payloadAt))
  const payload = parseJson(message.toString('utf8', payloadAt, end))
  const kind = headers.get(':message-type') ?? 'event'
  if (kind !== 'event') {
    const type = headers.get(':exception-type') ?? headers.get(':error-code') ?? ''
    return errorEvent(type, isJsonObject(payload) ? payload.message : headers.get(':error-message'))
  }
  const bytes = isJsonObject(payload) ? payload.bytes : undefined
  if (typeof bytes !== 'string') return ''
  const json = Buffer.from(bytes, 'base64').toString()
  const event = parseJson(json)
  if (!isJsonObject(event)) throw new RangeError(BROKEN)
  const ofAws = Object.keys(event).filter((name) => OF_AWS.test(name))
  const data =
    ofAws.length === 0
      ? json
      : JSON.stringify(event, (name, value) => (OF_AWS.test(name) ? undefined : value))
  const name = typeof event.type === 'string' && TYPE_NAME.test(event.type) ? `event: ${event.type}\n` : ''
  return `${name}data: ${data.replace(/[\r\n]+/g, ' ')}\n\n`
}

/** The types of errors that the protocols have for AWS's exceptions. */
const ERROR_TYPES: ReadonlyMap<string, string> = new Map([
  ['throttlingException', 'rate_limit_error'],
  ['serviceUnavailableException', 'overloaded_error'],
  ['modelTimeoutException', 'timeout_error'],
  ['validationException', 'invalid_request_error'],
  ['accessDeniedException', 'permission_error'],
])

function errorEvent(exception: string, message: unknown): string {
  const error = {
    type: ERROR_TYPES.get(exception) ?? 'api_error',
    message: typeof message === 'string' ? message : exception,
  }
  return `event: error\ndata: ${JSON.stringify({ type: 'error', error })}\n\n`
}

function stringHeaders(bytes: Buffer): ReadonlyMap<string, string> {
  const headers = new Map<string, string>()
  let at = 0
  while (at < bytes.length) {
    const name = bytes.toString('utf8', at + 1, at + 1 + bytes.readUInt8(at))
    at += 1 + bytes.readUInt8(at)
    const type = bytes.readUInt8(at++)
    let size = VALUE_BYTES[type]
    if (size === undefined) throw new RangeError(BROKEN)
    if (size < 0) {
      size = bytes.readUInt16BE(at)
      at += 2
    }
    if (at + size > bytes.length) throw new RangeError(BROKEN)
    if (type === STRING) headers.set(name, bytes.toString('utf8', at, at + size))
    at += size
  }
  return headers
}
