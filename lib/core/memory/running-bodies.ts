import type { Buffer } from 'node:buffer'
import type { OpenCall } from '../call/index.ts'
import { GatewayError } from '../errors/index.ts'
import { parsedBytes } from '../json/index.ts'
import { PROCESS_MEMORY } from './process-memory.ts'
import { SharedBytes } from './shared-bytes.ts'

/** The rest of the memory is for everything else in the heap. */
const SHARE_OF_MEMORY = 1 / 2
const RETRY_AFTER_MS = 1000

/** The memory of the large bodies of running calls. A call keeps its body until it ends, because another line may be tried. */
export class RunningBodies {
  readonly #most: number
  readonly #bytes: SharedBytes

  constructor(most: number) {
    this.#most = most
    this.#bytes = new SharedBytes(most)
  }

  /**
   * Takes the memory of a body until its call ends. One half is for the calls that come first; of the other, each account may
   * have a share of what is free, so that there is room for another. Whatever its size, a body has room alone.
   *
   * @throws {GatewayError} if there is no room: `concurrency_limited` if the account has some of it, else `upstream_overloaded`.
   */
  take(call: OpenCall, bytes: number): void {
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
 * Returns a function that claims the memory of a body, given the number of its values; undefined for a small body.
 *
 * @param bytes the memory that the body takes if it is no JSON.
 */
export function memoryClaimOf(
  call: OpenCall,
  raw: Buffer,
  bytes?: number,
): ((values: number) => void) | undefined {
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
