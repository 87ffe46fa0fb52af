import type { IncomingMessage, ServerResponse } from 'node:http'
import { freeSpent } from '../../core/call/index.ts'
import type { Relay, RelayEnd } from './relay.ts'

/**
 * Passes an answer's body on, as fast as the caller reads. The response is ended only where the whole body came;
 * anything else is for the caller of this to make visible.
 */
export function relayAnswer(relay: Relay, response: IncomingMessage, res: ServerResponse): Promise<RelayEnd> {
  const onDrain = (): void => {
    relay.clocks.resume()
    response.resume()
  }
  response.on('data', (chunk: Buffer) => {
    relay.progress(chunk)
    if (res.write(chunk, () => freeSpent(chunk))) return
    response.pause()
    // Silence is the caller's now.
    relay.clocks.pause()
  })
  response.on('end', () => {
    if (response.complete) relay.conclude({ kind: 'completed' })
  })
  res.on('drain', onDrain)
  relay.clocks.resume()
  return relay.ended.then((end) => {
    res.off('drain', onDrain)
    return end
  })
}

/** More of an error than this says nothing about it any more. */
const MOST_ERROR_BYTES = 64 * 1024

/** Reads what an upstream says of its error, or as much as comes; undefined where that is no JSON. */
export async function readError(relay: Relay, response: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = []
  let bytes = 0
  const whole = new Promise<void>((resolve) => {
    response.on('data', (chunk: Buffer) => {
      relay.progress()
      bytes += chunk.length
      if (bytes > MOST_ERROR_BYTES) resolve()
      else chunks.push(chunk)
    })
    response.on('end', resolve)
  })
  await Promise.race([whole, relay.ended])
  try {
    return JSON.parse(Buffer.concat(chunks).toString())
  } catch {
    return undefined
  }
}
