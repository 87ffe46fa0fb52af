import type { Logger } from 'express-model-gateway'
import type { ConfigAuthority } from 'express-model-gateway/admin'
import { errorText } from './error-text.ts'

/**
 * Makes the config rule where it says so, and logs each difference between config and database that is left. Never rejects.
 *
 * @param options `isTold`: whether this process logs them, of those that share a database and a log; `isOver`: whether the
 *   gateway is closed, so that nothing is tried again.
 * @returns whether that has been done.
 */
export async function reconcile(
  authority: ConfigAuthority,
  logger: Logger,
  { isTold, isOver }: { readonly isTold: boolean; readonly isOver: () => boolean },
): Promise<boolean> {
  try {
    const left = await authority.enforce()
    for (const { kind, id, difference, members } of isTold ? left : [])
      logger.warn({ kind, id, difference, members }, 'config and database differ')
    return true
  } catch (error) {
    if (!isOver())
      logger.error(
        { reason: errorText(error) },
        'config and database could not be compared: it is tried again',
      )
    return false
  }
}
