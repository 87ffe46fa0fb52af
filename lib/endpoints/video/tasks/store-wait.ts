import type { OpenCall } from '../../../core/call/index.ts'
import { GatewayError } from '../../../core/errors/index.ts'
import { StoreAway } from '../../../core/store-guard/index.ts'
import { within } from '../../../core/timing/index.ts'

/** How long a call waits for the task store. */
const MAX_WAIT_MS = 1000

/**
 * Returns the store's answer.
 *
 * @throws {StoreAway} if it does not come in time; the operation may take effect nevertheless.
 */
export function storeAnswer<T>(asked: Promise<T>): Promise<T> {
  return within(MAX_WAIT_MS, asked, () => {
    throw new StoreAway('the store of the video tasks is away')
  })
}

/**
 * Returns the store's answer to a call.
 *
 * @throws {GatewayError} `internal_error` if the operation fails or the answer does not come in time.
 */
export async function storeAnswerFor<T>(call: OpenCall, asked: Promise<T>): Promise<T> {
  try {
    return await storeAnswer(asked)
  } catch (error) {
    if (error instanceof GatewayError) throw error
    const message = 'Videos cannot be looked up at the moment. Retry with the same id in a few seconds.'
    throw call.refuse('internal_error', { message, cause: error, foreseen: error instanceof StoreAway })
  }
}
