import type { Logger } from '../call/index.ts'
import { dropFailure } from './own-failures.ts'

/** Tells a listener of the app. If it throws, or rejects, `message` is logged; it has no other effect. */
export function tellListener(logger: Logger, message: string, tell: () => unknown): void {
  const failed = (error: unknown): void => logger.error({ err: error }, message)
  try {
    dropFailure(tell(), failed)
  } catch (error) {
    failed(error)
  }
}
