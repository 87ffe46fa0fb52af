import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { type ErrorCode, GatewayError } from '../../core/errors/index.ts'
import { BodyCollector } from '../../core/memory/index.ts'
import { endOfFrame, MAX_BLANK_LENGTH, readFrame } from '../../core/protocols/index.ts'
import { failureOfStatus } from '../../routing/attempt/classify-failure.ts'
import { decoded, decoderFor } from '../../routing/attempt/content-decoding.ts'
import type { Exchange } from '../../routing/attempt/exchange.ts'
import { type Failure, malformed } from '../../routing/attempt/failure.ts'
import { parseErrorBody } from '../../routing/attempt/upstream-error.ts'

/** The exchange of an answer. It may end before the answer was passed on. */
type Answering = Pick<Exchange, 'noteProgress'> & { readonly ended: Promise<unknown> }

/** An error body is read only up to this size. */
const MAX_ERROR_BYTES = 64 * 1024

/** Reads an error body. Returns undefined if it is not valid JSON or too long. */
export async function readError(exchange: Answering, response: IncomingMessage): Promise<unknown> {
  const { body } = await readBody(exchange, response, MAX_ERROR_BYTES)
  try {
    return parseErrorBody(decoded(body, response.headers?.['content-encoding']).toString())
  } catch {
    return undefined
  }
}

/** The largest answer that is read before it is sent. Those that name what the upstream made are small, lists longer. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024

/** Reads an answer that must be read before it is sent; breaks the exchange off if that is not possible. */
export async function readAnswer(
  exchange: Answering & { breakOff(failure: Failure): void },
  response: IncomingMessage,
): Promise<Buffer | undefined> {
  const { body, isWhole } = await readBody(exchange, response, MAX_ANSWER_BYTES)
  try {
    if (isWhole) return decoded(body, response.headers['content-encoding'])
  } catch {
    // Broken off below.
  }
  exchange.breakOff(malformed('the answer is too long, or compressed in a way that cannot be read'))
  return undefined
}

/** The beginning of a stream of events that was read before it is sent. */
export interface FirstEvent {
  readonly bytes: Buffer
  readonly data: Buffer
}

/** A longer first event is passed on unread. */
const MAX_EVENT_BYTES = 64 * 1024

/** Reads a stream of events up to the end of the first one with data, and pauses it. */
export async function readFirstEvent(exchange: Answering, response: IncomingMessage): Promise<FirstEvent> {
  const chunks: Buffer[] = []
  let size = 0
  let text = ''
  let data = ''
  /** Where the frame begins that has not come whole. */
  let begin = 0
  let closeDecoder = (): void => {}
  const ended = new Promise<void>((resolve) => {
    const read = (piece: Buffer): void => {
      let from = Math.max(begin, text.length - MAX_BLANK_LENGTH)
      text += piece.toString('latin1')
      const hasReturns = text.includes('\r')
      while (data === '') {
        const end = endOfFrame(text, from, hasReturns)
        if (end < 0) break
        data = dataOf(text.slice(begin, end))
        begin = end
        from = end
      }
      if (data !== '' || text.length >= MAX_EVENT_BYTES) stop()
    }
    // Some servers compress although they are asked not to.
    const decoder = decoderFor(response.headers['content-encoding'], {
      decoded: read,
      ended: resolve,
      failed: () => resolve(),
    })
    closeDecoder = () => decoder?.close()
    const onData = (chunk: Buffer): void => {
      exchange.noteProgress()
      chunks.push(chunk)
      size += chunk.length
      if (decoder) decoder.write(chunk)
      else read(chunk)
      if (size >= MAX_EVENT_BYTES) stop()
    }
    const stop = (): void => {
      response.off('data', onData).pause()
      resolve()
    }
    response.on('data', onData).on('end', () => (decoder ? decoder.end() : resolve()))
  })
  await Promise.race([ended, exchange.ended])
  // Also where the caller has left, or the line broke off.
  closeDecoder()
  if (data === '') data = dataOf(text.slice(begin))
  return { bytes: Buffer.concat(chunks), data: Buffer.from(data) }
}

/** Returns the data of a frame that was read as latin1. Its byte order mark is only known in UTF-8. */
function dataOf(frame: string): string {
  return readFrame(Buffer.from(frame, 'latin1').toString()).data
}

/** Reads a body up to a size, or up to the end of the exchange. */
async function readBody(
  exchange: Answering,
  response: IncomingMessage,
  maxBytes: number,
): Promise<{ body: Buffer; isWhole: boolean }> {
  const body = new BodyCollector(maxBytes)
  let isWhole = true
  const ended = new Promise<void>((resolve) => {
    response.on('data', (chunk: Buffer) => {
      exchange.noteProgress()
      if (body.push(chunk)) return
      isWhole = false
      resolve()
    })
    response.on('end', resolve)
  })
  await Promise.race([ended, exchange.ended])
  return { body: body.take(), isWhole }
}

/**
 * How an answer is passed on.
 *
 * - `whole`: with its body.
 * - `bare`: with its status and headers only (304, 412, 416).
 * - `error`: as an error of the gateway.
 */
type RelayMode = 'whole' | 'bare' | 'error'

const BARE: ReadonlySet<number> = new Set([304, 412, 416])

export function relayModeOf(status: number): RelayMode {
  if (status >= 200 && status < 300) return 'whole'
  return BARE.has(status) ? 'bare' : 'error'
}

/** Statuses that are the caller's fault here, because the caller chose the path. */
const CODE_BY_STATUS: Readonly<Record<number, ErrorCode>> = {
  404: 'not_found',
  405: 'not_found',
  409: 'conflict',
  410: 'not_found',
  411: 'invalid_request',
  414: 'invalid_request',
  415: 'invalid_request',
  428: 'invalid_request',
  431: 'invalid_request',
}

/**
 * Classifies an answer that is not a success. A redirect is a failure, too. Redirects, and a 403 that neither names our
 * account nor checks the content, count against no circuit: the caller chose the path.
 */
export function failureOfRelayed(status: number, headers: IncomingHttpHeaders, body: unknown): Failure {
  // The upstream's text may quote the request, which was not read, so quotations cannot be removed.
  const detail = `status ${status}`
  if (status < 400) return { ...malformed(detail), retryable: false, fault: null }
  const code = CODE_BY_STATUS[status]
  const failure = failureOfStatus(status, headers, body)
  const said = failure.error && { error: failure.error }
  if (code !== undefined) return { code, retryable: false, fault: null, detail, ...said }
  if (status === 403 && failure.code === 'invalid_request')
    return { ...malformed(detail), retryable: false, fault: null, ...said }
  return { ...failure, detail }
}

/** The failure of a handshake that gets an ordinary answer. It is the caller's fault and must not open the circuit. */
export const NOT_SWITCHED: Failure = {
  code: 'invalid_request',
  retryable: false,
  fault: null,
  detail: 'did not switch protocols',
}

/** The refusal of such a handshake. */
export function noWebSocket(): GatewayError {
  return new GatewayError('invalid_request', {
    param: 'Upgrade',
    message: 'There is no WebSocket at this path. Send the request without the header Upgrade.',
  })
}
