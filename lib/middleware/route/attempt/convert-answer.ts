import type { CallRequest } from '../../../core/call/index.ts'
import { isJsonObject, type JsonObject, parseJson } from '../../../core/json/index.ts'
import type { StreamingOperation, StreamReader } from '../../../core/operations/index.ts'
import { endOfFrame, readFrame } from '../../../core/protocols/index.ts'
import type { AnswerContext } from '../../../core/translate/index.ts'
import type { AdaptedRequest } from '../../../routing/attempt/adapted-request.ts'
import { isCutEvent } from '../relay/stream-relay.ts'

/** Returns what a translation of an answer needs to know of its request. */
export function contextOf({ body, estimatedInputTokens }: CallRequest): AnswerContext {
  return { request: body.json, created: Math.floor(Date.now() / 1000), estimatedInputTokens }
}

/** Returns a reader of the stream that answers a request in the form that was sent to the line. */
export function newReader({ body, answers }: CallRequest, { operation }: AdaptedRequest): StreamReader {
  return (operation as StreamingOperation).streamReader({ json: body.json, answers })
}

/** Whether an answer of a media type can be turned into the form that was asked for. */
export function isConvertible(type: string): boolean {
  return /^(?:text\/event-stream|application\/(?:[\w.+-]+\+)?json)\b/.test(type)
}

/** Whether a body is an event stream, whatever its type says. */
export function looksLikeStream(text: string): boolean {
  return /^\ufeff?\s*(?:data|event|id|retry)?:/.test(text.slice(0, 1000))
}

const UNFINISHED = 'the stream ended without a finish reason'

/**
 * Reads a whole stream.
 *
 * @returns the data of its events; the upstream's error object if one reports a failure.
 * @throws SyntaxError if an event is malformed, or the stream ended too early.
 */
export function readEvents(
  text: string,
  reader: StreamReader,
): { readonly events: readonly JsonObject[]; readonly error: unknown } {
  const events: JsonObject[] = []
  const hasReturns = text.includes('\r')
  let isFinished = false
  for (let at = 0; at < text.length; ) {
    const found = endOfFrame(text, at, hasReturns)
    const end = found < 0 ? text.length : found
    // The answer is complete without an event behind its finish reason.
    if (found < 0 && isCutEvent(text.slice(at))) {
      if (isFinished) break
      throw new SyntaxError(UNFINISHED)
    }
    const frame = readFrame(text.slice(at, end))
    const { error, last, finished } = reader.read(frame)
    isFinished ||= finished
    if (error !== undefined) return { events, error }
    const json = parseJson(frame.data)
    if (isJsonObject(json)) events.push(json)
    at = end
    if (last) return { events, error: undefined }
  }
  if (!reader.whole) throw new SyntaxError(UNFINISHED)
  return { events, error: undefined }
}
