import type { OpenCall } from '../../core/call/index.ts'

/**
 * The outcome of a call with an Idempotency-Key.
 *
 * - `ran`: it ran, and its key is used up.
 * - `freed`: it ran, produced nothing, and its key was released.
 * - `lost`: another call took its key over while it ran.
 * - `in_use`, `replayed`, `reused`: it was refused because of its key, with the code of that name.
 * - `unclaimed`: its key was invalid or could not be claimed.
 */
export type IdempotencyOutcome = 'ran' | 'freed' | 'lost' | 'in_use' | 'replayed' | 'reused' | 'unclaimed'

export function idempotencyOutcome({ idempotency, outcome }: OpenCall): IdempotencyOutcome {
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
