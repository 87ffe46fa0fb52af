import type { ClaimKeeper } from '../../../lib/middleware/idempotency/claim-keeper.ts'
import type { HeldClaim } from '../../../lib/middleware/idempotency/held-claim.ts'

/** What the store says of a completion: kept, lost, or nothing. */
export type Kept = boolean | Error

/** A keeper that does as a store would that answers like this, and notes what it was asked for. */
export function scriptedKeeper(kept: Kept, maySend = true) {
  const log: string[] = []
  const may = { send: maySend }
  const keeper = {
    maySend: () => may.send,
    async complete(held: HeldClaim) {
      log.push('complete')
      if (kept instanceof Error) throw kept
      held.state = kept ? 'completed' : 'lost'
      return kept
    },
    async release(held: HeldClaim) {
      log.push('release')
      held.state = 'released'
    },
  } as unknown as ClaimKeeper
  return { keeper, log, may }
}
