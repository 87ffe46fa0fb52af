import type { OpenCall, RunningClaim } from '../../core/call/index.ts'
import type { Bill, ChargeOutcome } from '../../ledger/pool/reservation.ts'

/**
 * Returns the bill of a call that has ended, without the call: a charge may wait for hours, and must not keep the
 * request and the answer, which take megabytes.
 *
 * @param sent whether a part of the answer was sent.
 */
export function detachBill(bill: Bill, { idempotency }: OpenCall, sent: boolean): Required<Bill> {
  const { requestId, amount, cost, at, claim, bytes, usage } = bill
  const basis = bill.basis()
  const entry = bill.entry?.() ?? null
  const running = idempotency?.claim
  const discard = sent ? undefined : idempotency?.discard.bind(idempotency)
  return {
    requestId,
    amount,
    cost: cost ?? null,
    at,
    claim,
    bytes: bytes ?? 0,
    basis: () => basis,
    usage,
    entry: entry && (() => entry),
    onResolved: (outcome) => {
      if (running) concludeClaim(running, outcome)
      if (outcome === 'fenced') discard?.()
    },
  }
}

/** Sets the state of a claim that the ledger completes, by the way its charge ended. */
export function concludeClaim(claim: RunningClaim, outcome: ChargeOutcome): void {
  if (claim.state === 'settling') claim.state = STATES[outcome]
}

const STATES = { confirmed: 'completed', fenced: 'lost', voided: 'released' } as const
