import type { IncomingMessage, ServerResponse } from 'node:http'
import { freeSpent } from '../../core/call/index.ts'

/** The exchange that an answer belongs to. */
interface Answering {
  /** Resolves when it is over, which may be before its answer is passed on. */
  ended(): Promise<unknown>
  noteProgress(): void
}

/** The exchange of an answer that is passed on. */
interface Relaying extends Answering {
  received(piece: Buffer): void
  complete(): void
  pauseClocks(): void
  resumeClocks(): void
}

/**
 * Passes an answer's body on, as fast as the caller reads. The response is ended only where the whole body came;
 * anything else is for the caller of this to make visible.
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
    // Silence is the caller's now.
    exchange.pauseClocks()
  })
  response.on('end', () => {
    if (response.complete) exchange.complete()
  })
  res.on('drain', onDrain)
  exchange.resumeClocks()
  await exchange.ended()
  res.off('drain', onDrain)
}

/** More of an error than this says nothing about it any more. */
const MOST_ERROR_BYTES = 64 * 1024

/** Reads what an upstream says of its error, or as much as comes; undefined where that is no JSON. */
export async function readError(exchange: Answering, response: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = []
  let bytes = 0
  const whole = new Promise<void>((resolve) => {
    response.on('data', (chunk: Buffer) => {
      exchange.noteProgress()
      bytes += chunk.length
      if (bytes > MOST_ERROR_BYTES) resolve()
      else chunks.push(chunk)
    })
    response.on('end', resolve)
  })
  await Promise.race([whole, exchange.ended()])
  try {
    return JSON.parse(Buffer.concat(chunks).toString())
  } catch {
    return undefined
  }
}
