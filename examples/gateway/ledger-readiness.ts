import type { LeasePool } from 'express-model-gateway'
import type { Need } from './readiness.ts'

/**
 * Calls that cost something can be admitted. While nothing waits but charges that may be at fault themselves, only a call
 * shows whether others are written, so that then it is enough that the database takes anything: a process that is sent
 * nothing would never find out.
 *
 * @param write rejects while nothing can be written.
 */
export function ledgerServes(pool: Pick<LeasePool, 'away' | 'onTrial'>, write: () => Promise<void>): Need {
  return async () => {
    if (!pool.away) return
    if (!pool.onTrial) throw new Error('charges wait for the ledger')
    await write()
  }
}
