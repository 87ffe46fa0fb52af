import type { ServerResponse } from 'node:http'
import { type Call, type CallEnding, type CallLogEntry, entryOf } from '../../core/call/index.ts'
import { formatAmount } from '../../core/catalog/index.ts'
import type { Settlement } from '../../ledger/ledger.ts'
import type { Bill, ChargeOutcome, Reservation, SettleOutcome } from '../../ledger/pool/reservation.ts'
import { type Cost, costOf } from './cost.ts'

/** A call whose money is held: from the reservation to the charge, or to nothing. It is itself the bill of the charge. */
export class BilledCall implements Bill {
  readonly requestId: string
  amount = 0n
  at = 0
  claim: Settlement['claim'] = null
  entry: (() => CallLogEntry) | null = null
  readonly #call: Call
  readonly #res: ServerResponse
  readonly #reservation: Reservation
  readonly #handlerMs: number
  #settled = false
  /** Whether a handler has ended its answer. */
  #answered = false
  #patience: NodeJS.Timeout | undefined

  /**
   * Lets the money follow the call from here on.
   *
   * @param handlerMs how long a handler may go on whose caller has left, with its money held, in milliseconds.
   */
  constructor(call: Call, res: ServerResponse, reservation: Reservation, handlerMs: number) {
    this.requestId = call.id
    this.#call = call
    this.#res = res
    this.#reservation = reservation
    this.#handlerMs = handlerMs
    call.billing = {
      reserved: reservation.amount,
      charged: null,
      required: null,
      available: null,
      items: [],
      own: undefined,
    }
    call.onSettle((ending) => this.settle(ending))
    call.onFail(() => this.#fail())
    call.onEnd('reservation', () => this.#end())
  }

  /**
   * What the end of an answer has to wait for; undefined: nothing. Of one that is an error nothing has to be durable.
   *
   * @throws {GatewayError} what has to be answered instead; as a rejection, too.
   */
  beforeEnd(): Promise<void> | undefined {
    this.#answered = true
    const { statusCode: status } = this.#res
    if (status < 400) {
      const settling = this.#call.settle({
        outcome: { status, errorCode: null, finish: 'completed' },
        unsent: null,
      })
      if (settling) return settling
    }
    if (this.#call.ended) this.#giveBack()
    return undefined
  }

  /**
   * Charges what the call used, durably. Undefined when that stands already, or there is nothing to charge.
   *
   * @throws {GatewayError} `billing_unavailable` as a rejection: the answer must not be finished.
   */
  settle(ending: CallEnding): Promise<void> | undefined {
    const cost = this.#costOf(ending)
    if (!cost || this.#settled) return undefined
    if (cost.amount === 0n && this.#isFree()) return undefined
    const outcome = this.#charge(cost, ending)
    if (outcome instanceof Promise) return outcome.then((known) => this.#goOn(known))
    if (outcome !== 'confirmed') this.#goOn(outcome)
    return undefined
  }

  /** What is free and hangs on no claim needs no ledger, and goes on without one. */
  #isFree(): boolean {
    const { billing, idempotency } = this.#call
    if (this.#reservation.amount > 0n || idempotency?.claim) return false
    if (billing) billing.charged = 0n
    return true
  }

  /** @throws {GatewayError} where the answer must not be finished. */
  #goOn(outcome: SettleOutcome): void {
    // The call's key is another's by now: whoever holds it says so.
    if (outcome === 'fenced') this.#call.prove()
    if (outcome !== 'unconfirmed') return
    if (this.#reservation.onLedgerAway === 'hold') this.#holdBack()
    else this.onResolved('confirmed')
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
    if (inLedger) this.entry = () => this.#entryOf(ending)
    this.amount = amount
    this.at = Date.now()
    if (call.idempotency?.claim) this.claim = this.#claimToSettle()
    return this.#reservation.settle(this)
  }

  /** How the amount came about, kept with the charge, which outlives the log. */
  basis(): string {
    const { usage, servedBy, billing } = this.#call
    const items = billing?.items ?? []
    const priced = items.map(({ unit, quantity, price }) => ({ unit, quantity, price: formatAmount(price) }))
    if (billing?.own !== undefined) return JSON.stringify({ items: priced })
    return JSON.stringify({ line: servedBy?.line, source: usage?.source, items: priced })
  }

  /** The log entry as of now: one that is written late knows how the call really ended. */
  #entryOf(ending: CallEnding): CallLogEntry {
    return entryOf(this.#call, this.#call.outcome ? { ...ending, outcome: this.#call.outcome } : ending)
  }

  #claimToSettle(): Settlement['claim'] {
    const { idempotency } = this.#call
    const claim = idempotency?.claim
    if (!claim || !idempotency.completedByLedger || !this.#reservation.settlesRecords) return null
    claim.state = 'settling'
    return { id: claim.id, owner: claim.owner, keepUntil: Date.now() + claim.keepMs }
  }

  /** Notes what the ledger has answered, now or long after the call. */
  onResolved(outcome: ChargeOutcome): void {
    const claim = this.#call.idempotency?.claim
    const settling = claim?.state === 'settling'
    if (outcome === 'confirmed') {
      if (settling) claim.state = 'completed'
      return
    }
    if (this.#call.billing) this.#call.billing.charged = null
    if (settling && outcome === 'fenced') claim.state = 'lost'
    if (outcome === 'fenced' && !this.#res.headersSent) this.#call.idempotency?.discard()
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
      // Else the caller could read in the call log what nobody pays for.
      call.idempotency?.discard()
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
    if (this.#settled) return
    if (!this.#mayStillRun) {
      this.#giveBack()
      return
    }
    this.#patience = setTimeout(() => {
      this.#answered = true
      this.#giveBack()
    }, this.#handlerMs).unref()
  }

  /** A handler that went on without its caller has thrown. While the call runs, its end gives back. */
  #fail(): void {
    this.#answered = true
    if (this.#call.ended) this.#giveBack()
  }

  /**
   * A handler that knows nothing of calls goes on when its caller has left, and may yet charge. What it has charged for
   * by then, with some of the answer sent, is all that the caller gets.
   */
  get #mayStillRun(): boolean {
    const { left, routing, billing } = this.#call
    if (!left || this.#answered || routing !== null) return false
    return !(this.#res.headersSent && billing?.own !== undefined)
  }

  #giveBack(): void {
    clearTimeout(this.#patience)
    const { outcome } = this.#call
    const ending = outcome && { outcome, unsent: null }
    const cost = ending && !this.#settled ? this.#costOf(ending) : undefined
    if (ending && cost && (cost.amount > 0n || !this.#isFree())) void this.#charge(cost, ending)
    else this.#reservation.release()
  }
}
