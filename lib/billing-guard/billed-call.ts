import type { ServerResponse } from 'node:http'
import { type Call, type CallEnding, type CallLogEntry, entryOf } from '../call/index.ts'
import { formatAmount } from '../catalog/index.ts'
import { type Cost, costOf } from './cost.ts'
import type { Settlement } from './ledger.ts'
import type { ChargeOutcome, Reservation, SettleOutcome } from './reservation.ts'

/** A call whose money is held: from the reservation to the charge, or to nothing. */
export class BilledCall {
  readonly #call: Call
  readonly #res: ServerResponse
  readonly #reservation: Reservation
  #settled = false

  constructor(call: Call, res: ServerResponse, reservation: Reservation) {
    this.#call = call
    this.#res = res
    this.#reservation = reservation
    call.billing = {
      reserved: reservation.amount,
      charged: null,
      required: null,
      available: null,
      items: [],
      own: undefined,
    }
  }

  /** From here on the money follows the call. */
  begin(): void {
    this.#call.onSettle((ending) => this.settle(ending))
    this.#call.onEnd('reservation', () => this.#end())
  }

  /**
   * Charges what the call used, durably. Undefined when that stands already, or there is nothing to charge.
   *
   * @throws {GatewayError} `billing_unavailable` as a rejection: the answer must not be finished.
   */
  settle(ending: CallEnding): Promise<void> | undefined {
    const cost = this.#costOf(ending)
    if (!cost || this.#settled) return undefined
    if (this.#isFree(cost)) return undefined
    const outcome = this.#charge(cost, ending)
    if (outcome instanceof Promise) return outcome.then((known) => this.#goOn(known))
    this.#goOn(outcome)
    return undefined
  }

  /** What is free and hangs on no claim needs no ledger, and goes on without one. */
  #isFree({ amount }: Cost): boolean {
    const { billing, idempotency } = this.#call
    if (amount > 0n || this.#reservation.amount > 0n || idempotency?.claim) return false
    if (billing) billing.charged = 0n
    return true
  }

  /** @throws {GatewayError} where the answer must not be finished. */
  #goOn(outcome: SettleOutcome): void {
    if (outcome !== 'unconfirmed') this.#conclude(outcome)
    else if (this.#reservation.onLedgerAway === 'hold') this.#holdBack()
    // The call's key is another's by now: whoever holds it says so.
    if (outcome === 'fenced') this.#call.prove()
  }

  /** What is to be charged; undefined where nothing was used. Errors are not charged, even where a handler asks to. */
  #costOf({ outcome }: CallEnding): Cost | undefined {
    const { usage, servedBy, billing } = this.#call
    const own = billing?.own
    if (own !== undefined) {
      const { finish } = outcome
      const produced = finish === 'completed' || (finish === 'interrupted' && this.#res.headersSent)
      return produced ? { amount: own, items: [{ unit: 'own', quantity: 1, price: own }] } : undefined
    }
    return usage && servedBy ? costOf(usage, servedBy.price) : undefined
  }

  #charge({ amount, items }: Cost, ending: CallEnding): SettleOutcome | Promise<SettleOutcome> {
    const call = this.#call
    this.#settled = true
    if (call.billing) {
      call.billing.charged = amount
      call.billing.items = items
    }
    const inLedger = call.entryBy === 'ledger' && this.#reservation.settlesRecords
    if (inLedger) call.entryBy = 'written'
    return this.#reservation.settle({
      requestId: call.id,
      amount,
      at: Date.now(),
      basis: () => this.#basis(items),
      claim: this.#claimToSettle(),
      entry: inLedger ? () => this.#entry(ending) : null,
      onResolved: (outcome) => this.#conclude(outcome),
    })
  }

  /** How the amount came about, kept with the charge, which outlives the log. */
  #basis(items: Cost['items']): string {
    const { usage, servedBy, billing } = this.#call
    const reported = billing?.own === undefined ? { line: servedBy?.line, source: usage?.source } : {}
    return JSON.stringify({
      ...reported,
      items: items.map((item) => ({ ...item, price: formatAmount(item.price) })),
    })
  }

  /** The log entry as of now: one that is written late knows how the call really ended. */
  #entry(ending: CallEnding): CallLogEntry {
    return entryOf(this.#call, this.#call.outcome ? { ...ending, outcome: this.#call.outcome } : ending)
  }

  #claimToSettle(): Settlement['claim'] {
    const { idempotency } = this.#call
    const claim = idempotency?.claim
    if (!claim || !idempotency.completedByLedger || !this.#reservation.settlesRecords) return null
    claim.state = 'settling'
    return { id: claim.id, owner: claim.owner, keepUntil: Date.now() + claim.keepMs }
  }

  /** The ledger has answered, now or long after the call. */
  #conclude(outcome: ChargeOutcome): void {
    const claim = this.#call.idempotency?.claim
    const settling = claim?.state === 'settling'
    if (outcome === 'confirmed') {
      if (settling) claim.state = 'completed'
      return
    }
    if (this.#call.billing) this.#call.billing.charged = null
    if (settling && outcome === 'fenced') claim.state = 'lost'
    if (settling && outcome === 'voided') claim.state = 'released'
    // What the ledger has not written with the charge, the log writes itself.
    if (outcome === 'fenced' && this.#call.entryBy === 'written') this.#call.entryBy = 'ledger'
  }

  /**
   * Nobody knows whether the charge stands. What was not sent is not sent, and must then not be charged; what was sent
   * is charged, and the stream says that its end is not.
   */
  #holdBack(): void {
    const call = this.#call
    if (call.left) return
    const error = call.refuse('billing_unavailable')
    if (!this.#res.headersSent) {
      if (call.billing) call.billing.charged = null
      const { status, code } = error
      const ending: CallEnding = {
        outcome: { status, errorCode: code, finish: 'failed' },
        unsent: null,
      }
      const inLedger = call.entryBy === 'written'
      const revoked = this.#reservation.revoke(inLedger ? () => entryOf(call, ending) : null)
      if (inLedger && revoked === 'dropped') call.entryBy = 'ledger'
    }
    throw error
  }

  /** However the call ended: what it used is charged, though nobody waits for it; else all is given back. */
  #end(): void {
    const { outcome } = this.#call
    if (!this.#settled && outcome) {
      const cost = this.#costOf({ outcome, unsent: null })
      if (cost && !this.#isFree(cost)) {
        void this.#charge(cost, { outcome, unsent: null })
        return
      }
    }
    this.#reservation.release()
  }
}
