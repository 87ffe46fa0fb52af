import type { Call } from '../../core/call/index.ts'

/**
 * What became of a call with an Idempotency-Key.
 *
 * - `ran`: it ran for its key, which is used up.
 * - `freed`: it ran, produced nothing, and gave its key back.
 * - `lost`: another call took its key over while it ran.
 * - `in_use`, `replayed`, `reused`: it was refused for its key, with the code of that name.
 * - `unclaimed`: its key could not be claimed, or was unusable.
 */
export type IdempotencyOutcome = 'ran' | 'freed' | 'lost' | 'in_use' | 'replayed' | 'reused' | 'unclaimed'

/** Reads it off a call that has ended. */
export function idempotencyOutcome({ idempotency, outcome }: Call): IdempotencyOutcome {
  switch (idempotency?.claim?.state) {
    case 'completed':
    case 'settling':
      return 'ran'
    case 'running':
    case 'releasing':
    case 'released':
      return 'freed'
    case 'lost':
      return 'lost'
  }
  switch (outcome?.errorCode) {
    case 'idempotency_key_in_use':
      return 'in_use'
    case 'idempotency_key_replayed':
      return 'replayed'
    case 'idempotency_key_reused':
      return 'reused'
  }
  return 'unclaimed'
}
