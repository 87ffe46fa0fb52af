import type { Logger } from 'express-model-gateway'
import type { ConfigAuthority } from 'express-model-gateway/admin'
import { errorText } from './error-text.ts'

/**
 * Makes the config rule where it says so, and logs each difference between config and database that is left. Never rejects.
 *
 * @param isTold whether this process logs them, of those that share a database and a log.
 * @returns whether that has been done.
 */
export async function reconcile(
  authority: ConfigAuthority,
  logger: Logger,
  isTold: boolean,
): Promise<boolean> {
  try {
    const left = await authority.enforce()
    for (const { kind, id, difference, members } of isTold ? left : [])
      logger.warn({ kind, id, difference, members }, 'config and database differ')
    return true
  } catch (error) {
    logger.error({ reason: errorText(error) }, 'config and database could not be compared: it is tried again')
    return false
  }
}
