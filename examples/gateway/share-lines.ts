import { LineSharing, type Logger } from 'express-model-gateway'
import type { LineSharingOptions, LineStateStore } from 'express-model-gateway/route'

/** Shares circuits and rests through a store of line states; does nothing without one. */
export function shareLines(
  store: LineStateStore | undefined,
  options: Pick<LineSharingOptions, 'lines' | 'onStoreChange'> & { readonly logger: Logger },
): LineSharing | undefined {
  // The limits are in the same Redis, and tell of its outages.
  const logger: Logger = { ...options.logger, error: () => {}, warn: () => {} }
  return store && new LineSharing({ ...options, store, logger })
}
