import type { Call } from '../../../core/call/index.ts'
import { GatewayError } from '../../../core/errors/index.ts'
import { StoreAway } from '../../../core/store-guard/index.ts'

/** Longest that a call waits for the store of the tasks. */
const LONGEST_WAIT_MS = 1000

/**
 * What the store answers, unless it takes longer than a call waits for it.
 *
 * @throws {StoreAway} then; what was asked for may happen all the same.
 */
export async function inTime<T>(asked: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new StoreAway('the store of the video tasks is away')), LONGEST_WAIT_MS)
  })
  try {
    return await Promise.race([asked, late])
  } finally {
    clearTimeout(timer)
  }
}

/**
 * What the store answers to a call that asks about tasks.
 *
 * @throws {GatewayError} `internal_error` where it does not, or not in time.
 */
export async function storedFor<T>(call: Call, asked: Promise<T>): Promise<T> {
  try {
    return await inTime(asked)
  } catch (error) {
    if (error instanceof GatewayError) throw error
    const message = 'Videos cannot be looked up at the moment. Retry with the same id in a few seconds.'
    throw call.refuse('internal_error', { message, cause: error, foreseen: error instanceof StoreAway })
  }
}
