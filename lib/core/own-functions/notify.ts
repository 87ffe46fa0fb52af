import type { Logger } from '../call/index.ts'
import { dropFailure } from './own-failures.ts'

/** Calls a listener of the app. If it throws, or rejects, `message` is logged; it has no other effect. */
export function notify(logger: Logger, message: string, listener: () => unknown): void {
  const failed = (error: unknown): void => logger.error({ err: error }, message)
  try {
    dropFailure(listener(), failed)
  } catch (error) {
    failed(error)
  }
}
