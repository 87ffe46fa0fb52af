import type { IncomingMessage, ServerResponse } from 'node:http'
import { BodyCollector } from '../../core/bytes/index.ts'
import { freeSpent } from '../../core/call/index.ts'
import { endOfFrame, MAX_BLANK_LENGTH, readFrame } from '../../core/protocols/index.ts'
import { decoded, decoderFor } from '../../routing/attempt/content-decoding.ts'
import { type Failure, malformed } from '../../routing/attempt/failure.ts'
import { parseErrorBody } from '../../routing/attempt/upstream-error.ts'

interface Answering {
  /** Resolves when the exchange has ended, which may be before its answer was passed on. */
  readonly ended: Promise<unknown>
  noteProgress(): void
}

interface Relaying extends Answering {
  received(piece: Buffer): void
  complete(): void
  pauseClocks(): void
  resumeClocks(): void
}

/**
 * Passes an answer's body on as fast as the caller reads. Completes the exchange only if the whole body came; the
 * caller of this function handles any other end.
 */
export async function relayAnswer(
  exchange: Relaying,
  response: IncomingMessage,
  res: ServerResponse,
): Promise<void> {
  const onDrain = (): void => {
    exchange.resumeClocks()
    response.resume()
  }
  response.on('data', (chunk: Buffer) => {
    exchange.received(chunk)
    if (res.write(chunk, () => freeSpent(chunk))) return
    response.pause()
    // The caller is waited for, not the line.
    exchange.pauseClocks()
  })
  response.on('end', () => {
    if (response.complete) exchange.complete()
  })
  res.on('drain', onDrain)
  exchange.resumeClocks()
  await exchange.ended
  res.off('drain', onDrain)
}

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

/** The begin of a stream of events that was read before it is sent. */
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
