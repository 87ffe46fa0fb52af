import type { IncomingHttpHeaders } from 'node:http'
import type { EventStreamCodec, Message } from '@smithy/eventstream-codec'
import { isJsonObject, parseJson } from '../../core/json/index.ts'
import { missingPackages } from './failure.ts'

/** Whether an answer is an event stream of AWS. */
export function isAwsEventStream(headers: IncomingHttpHeaders): boolean {
  return headers['content-type'] === 'application/vnd.amazon.eventstream'
}

/** A body that is no valid event stream. */
export class BrokenEventStream extends Error {
  override readonly name = 'BrokenEventStream'

  constructor() {
    super('the answer is no valid event stream')
  }
}

/** Each message begins with its length. */
const LENGTH_BYTES = 4
/** AWS sends no message that is longer. */
const MAX_MESSAGE_BYTES = 16 * 1024 * 1024

/** A type with the end of a line would be several events. */
const TYPE_NAME = /^[\w.]+$/

/** The members of a model's events that concern AWS's account only. */
const OF_AWS = /^amazon-bedrock-/

/**
 * Reads an event stream of AWS, as Bedrock answers with, as server-sent events. `@smithy/eventstream-codec` decodes the
 * messages; it is loaded for the first such answer.
 *
 * Source: the Bedrock API reference, "ResponseStream".
 *
 * @throws {BrokenEventStream} if a message is broken, or the last one is cut. The events before it have come by then.
 * @throws {UnsentError} if the package is not installed.
 */
export async function* readAwsEventStream(body: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const codec = await loadCodec()
  let parts: Buffer[] = []
  let size = 0
  let needed = LENGTH_BYTES
  for await (const chunk of body) {
    parts.push(chunk)
    size += chunk.length
    if (size < needed) continue
    const bytes = parts.length === 1 ? chunk : Buffer.concat(parts)
    const { events, end, isBroken } = eventsIn(bytes, codec)
    if (events !== '') yield Buffer.from(events)
    if (isBroken) throw new BrokenEventStream()
    const rest = bytes.subarray(end)
    needed = neededAt(rest)
    parts = rest.length > 0 ? [rest] : []
    size = rest.length
  }
  if (size > 0) throw new BrokenEventStream()
}

async function loadCodec(): Promise<EventStreamCodec> {
  const { EventStreamCodec } = await import('@smithy/eventstream-codec').catch(
    missingPackages('@smithy/eventstream-codec'),
  )
  return new EventStreamCodec(
    (bytes) => viewOf(bytes).toString(),
    (text) => Buffer.from(text),
  )
}

/** Returns the bytes that the next message needs, or its length. */
function neededAt(bytes: Buffer): number {
  return bytes.length < LENGTH_BYTES ? LENGTH_BYTES : bytes.readUInt32BE()
}

/** Returns the events of all whole messages, and where the rest begins. */
function eventsIn(
  bytes: Buffer,
  codec: EventStreamCodec,
): { readonly events: string; readonly end: number; readonly isBroken: boolean } {
  let events = ''
  let end = 0
  try {
    for (;;) {
      const length = neededAt(bytes.subarray(end))
      if (length > MAX_MESSAGE_BYTES) return { events, end, isBroken: true }
      if (bytes.length - end < length) return { events, end, isBroken: false }
      events += eventOf(codec.decode(bytes.subarray(end, end + length)))
      end += length
    }
  } catch {
    return { events, end, isBroken: true }
  }
}

/** Returns the event of a message; '' for a message that says nothing. */
function eventOf({ headers, body }: Message): string {
  const payload = parseJson(viewOf(body).toString())
  const text = (name: string): string | undefined => {
    const header = Object.hasOwn(headers, name) ? headers[name] : undefined
    return header?.type === 'string' ? header.value : undefined
  }
  if ((text(':message-type') ?? 'event') !== 'event') {
    const type = text(':exception-type') ?? text(':error-code') ?? ''
    return errorEvent(type, isJsonObject(payload) ? payload.message : text(':error-message'))
  }
  const bytes = isJsonObject(payload) ? payload.bytes : undefined
  if (typeof bytes !== 'string') return ''
  const json = Buffer.from(bytes, 'base64').toString()
  const event = parseJson(json)
  if (!isJsonObject(event)) throw new BrokenEventStream()
  const ofAws = Object.keys(event).filter((name) => OF_AWS.test(name))
  const data =
    ofAws.length === 0
      ? json
      : JSON.stringify(event, (name, value) => (OF_AWS.test(name) ? undefined : value))
  const name = typeof event.type === 'string' && TYPE_NAME.test(event.type) ? `event: ${event.type}\n` : ''
  return `${name}data: ${data.replace(/[\r\n]+/g, ' ')}\n\n`
}

function viewOf({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength)
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
