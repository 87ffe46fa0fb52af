import type { LeasePool } from 'express-model-gateway'
import type { ReadinessCheck } from './readiness.ts'

/**
 * Returns a check that the ledger can write charges. If the only charges that wait are ones which may be invalid themselves
 * (`onTrial`), it checks that the database accepts a write: without requests, the process could never find out whether
 * other charges are written.
 *
 * @param write rejects while the database accepts no writes.
 */
export function ledgerServes(
  pool: Pick<LeasePool, 'away' | 'onTrial'>,
  write: () => Promise<void>,
): ReadinessCheck {
  return async () => {
    if (!pool.away) return
    if (!pool.onTrial) throw new Error('charges wait for the ledger')
    await write()
  }
}
