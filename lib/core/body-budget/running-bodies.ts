import type { Buffer } from 'node:buffer'
import { PROCESS_MEMORY, SharedBytes } from '../bytes/index.ts'
import type { Call } from '../call/index.ts'
import { GatewayError } from '../errors/index.ts'
import { parsedBytes } from '../json/index.ts'

/** What else is in the heap has the rest of it. */
const SHARE_OF_MEMORY = 1 / 2
const RETRY_AFTER_MS = 1000

/** The memory of the large bodies of running calls, which have them until they end: other lines may be tried. */
export class RunningBodies {
  readonly #most: number
  readonly #bytes: SharedBytes

  constructor(most: number) {
    this.#most = most
    this.#bytes = new SharedBytes(most)
  }

  /**
   * Takes the memory of a body until its call ends. One half is for whoever comes first; of the other, each account may
   * have a share of what is free, so that there is room for another. Whatever its size, a body has room alone.
   *
   * @throws {GatewayError} if there is no room: `concurrency_limited` if the account has some of it, else `upstream_overloaded`.
   */
  take(call: Call, bytes: number): void {
    const account = call.principal?.accountId ?? ''
    const all = this.#bytes
    const isFree = all.size === 0 || all.size + bytes <= this.#most / 2
    if (!isFree && !all.hasRoom(account, bytes)) throw noRoom(all.has(account))
    all.add(account, bytes)
    call.onEnd('running body', () => all.remove(account, bytes))
  }
}

const bodies = new RunningBodies(PROCESS_MEMORY * SHARE_OF_MEMORY)

/** Smaller bodies are not counted: a call takes more itself. */
const SMALL_BYTES = 16 * 1024

/**
 * Returns what takes the memory of a body once the number of its values is known; undefined for a small one.
 *
 * @param bytes the memory of what is no JSON.
 */
export function takingBody(call: Call, raw: Buffer, bytes?: number): ((values: number) => void) | undefined {
  if (raw.length <= SMALL_BYTES) return undefined
  return (values) => bodies.take(call, bytes ?? parsedBytes(raw, values))
}

function noRoom(isOwn: boolean): GatewayError {
  return isOwn
    ? new GatewayError('concurrency_limited', {
        message:
          'This account has too many calls with large bodies running. Let some of them end, then retry.',
        retryAfterMs: RETRY_AFTER_MS,
      })
    : new GatewayError('upstream_overloaded', {
        message: 'The gateway runs too many calls with large bodies at the moment. Retry with backoff.',
        retryAfterMs: RETRY_AFTER_MS,
      })
}
