import type { ServerResponse } from 'node:http'
import {
  bytesOfEntry,
  type CallEnding,
  type CallLogEntry,
  type ChargeItem,
  entryOf,
  type HeldPart,
  itemOf,
  type OpenCall,
} from '../../core/call/index.ts'
import type { GatewayError } from '../../core/errors/index.ts'
import { type CallUsage, usageOfCall } from '../../core/usage/index.ts'
import type { Settlement } from '../../ledger/ledger.ts'
import type { Bill, ChargeOutcome, Reservation, SettleOutcome } from '../../ledger/pool/reservation.ts'
import { type BilledDeps, holdPart, type PartsOf } from './billed-part.ts'
import { boundedCost, type Cost, costOf } from './cost.ts'
import { concludeClaim, detachBill } from './detach-bill.ts'

const NO_ITEMS: readonly ChargeItem[] = []

/** The message to a caller whose answer is held back as a whole. The upstream has run the call. */
const WITHHELD =
  'Billing is temporarily unavailable; the answer is withheld and not charged. Retry with backoff.'
/** The message to a caller who has received a part of the answer. */
const CUT =
  'The answer ends early, because it could not be settled in time. The call is charged: look it up by its request id before you send it again.'

/**
 * A call with a reservation, from the reservation to its charge or release. It is also the bill of its charge, and the
 * call's `billing`.
 */
export class BilledCall implements Bill, PartsOf {
  readonly reserved: bigint
  charged: bigint | null = null
  cost: bigint | null = null
  required: bigint | null = null
  available: bigint | null = null
  parts = 0
  items = NO_ITEMS
  own: bigint | undefined
  readonly requestId: string
  /** Each guard has parts of its own. */
  readonly deps: BilledDeps
  amount = 0n
  at = 0
  claim: Settlement['claim'] = null
  /** The function that the ledger writes the log entry by; null if the ledger does not write it. */
  entry: ((this: Bill) => CallLogEntry) | null = null
  usage: CallUsage | undefined
  bytes = 0
  readonly #call: OpenCall
  readonly #res: ServerResponse
  readonly #reservation: Reservation
  /** How the call was to end, where the ledger writes the log entry. */
  #ending: CallEnding | undefined
  #settled = false
  #resolved = false
  #answered = false
  #handlerTimer: NodeJS.Timeout | undefined

  /** Registers with the call. */
  constructor(call: OpenCall, res: ServerResponse, reservation: Reservation, deps: BilledDeps) {
    this.reserved = reservation.amount
    this.requestId = call.id
    this.#call = call
    this.#res = res
    this.#reservation = reservation
    this.deps = deps
    call.billing = this
    call.onSettle((ending) => this.settle(ending))
    call.onEnd('reservation', () => this.#end())
  }

  /**
   * Returns a promise that the end of an answer must wait for; undefined if nothing has to wait, as for an error.
   *
   * @throws {GatewayError} (as a rejection) the error to answer instead.
   */
  beforeEnd(): Promise<void> | undefined {
    this.#answered = true
    const { statusCode: status } = this.#res
    const settling =
      status < 400 && !this.#call.settling
        ? this.#call.settle({ outcome: { status, errorCode: null, finish: 'completed' }, unsent: null })
        : undefined
    if (settling) return settling.then(() => this.#giveBackIfEnded())
    this.#giveBackIfEnded()
    return undefined
  }

  #giveBackIfEnded(): void {
    if (this.#call.ended) this.#giveBack()
  }

  /**
   * Charges the call durably. Returns undefined if the charge is already durable, or there is nothing to charge.
   *
   * @throws {GatewayError} (as a rejection) `billing_unavailable`: the answer must not be finished.
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

  holdPart(item: ChargeItem): Promise<HeldPart | GatewayError> {
    return holdPart(this.#call, this, this.#reservation, item, this.deps)
  }

  /** Whether the call is free and holds no claim. It then needs no ledger. */
  #isFree(): boolean {
    if (this.reserved > 0n || this.#call.idempotency?.claim) return false
    this.charged = 0n
    return true
  }

  /** @throws {GatewayError} if the answer must not be finished. */
  #goOn(outcome: SettleOutcome): void {
    // Another call has the key by now; `assertOwnsClaim` throws its refusal.
    if (outcome === 'fenced') this.#call.assertOwnsClaim()
    if (outcome !== 'unconfirmed') return
    if (this.#reservation.onStoreError === 'hold') this.#holdBack()
    else this.onResolved('confirmed')
  }

  /**
   * Returns the cost of the call; undefined if nothing was used. Errors are never charged, whatever a handler
   * reports.
   */
  #costOf({ outcome }: CallEnding): Cost | undefined {
    const { usage, servedBy } = this.#call
    const { own } = this
    if (own !== undefined) {
      const { finish } = outcome
      const produced = finish === 'completed' || (finish === 'interrupted' && this.#res.headersSent)
      return produced ? { amount: own, items: [{ unit: 'own', quantity: 1, price: own }] } : undefined
    }
    if (!usage || !servedBy) return undefined
    if (servedBy.cost) this.cost = costOf(usage, servedBy.cost).amount
    return costOf(usage, servedBy.price)
  }

  /** Keeps a large answer apart first, so that its size shows in no other charge. */
  #charge(due: Cost, ending: CallEnding): SettleOutcome | Promise<SettleOutcome> {
    const call = this.#call
    const { unsent } = ending
    const { amount, items } = due.amount > this.reserved ? boundedCost(call, due, this.#reservation) : due
    this.#settled = true
    if (call.entryBy === 'ledger' && this.#reservation.settlesRecords) {
      call.entryBy = 'written'
      this.#ending = ending
      // A method, not a literal: V8 would allocate that as an old object, which keeps the call alive until a full collection.
      this.entry = this.#entryNow as (this: Bill) => CallLogEntry
    }
    this.usage = usageOfCall(call, ending.outcome)
    this.charged = amount
    this.items = items
    this.amount = amount
    this.at = Date.now()
    if (call.idempotency?.claim) this.claim = this.#claimToSettle()
    const keeping = call.idempotency?.keepApart(unsent)
    this.bytes = bytesOfEntry(call, call.idempotency?.bytesWith(unsent) ?? 0)
    return keeping ? this.#chargeKept(keeping) : this.#reservation.settle(this)
  }

  /** An answer that could not be kept is not confirmed. Its charge is, where a part of it was sent. */
  async #chargeKept(keeping: Promise<boolean>): Promise<SettleOutcome> {
    const isKept = await keeping
    const outcome = await this.#reservation.settle(this)
    return isKept || outcome === 'fenced' ? outcome : 'unconfirmed'
  }

  /** Returns the terms of the amount, which are stored with the charge and outlive the call log. */
  basis(): string {
    const { usage, servedBy } = this.#call
    const items = this.items.map(itemOf)
    if (this.own !== undefined) return JSON.stringify({ items })
    return JSON.stringify({ line: servedBy?.line, source: usage?.source, items })
  }

  /** An entry that is written late holds the call's actual end. */
  #entryNow(this: BilledCall): CallLogEntry {
    const { outcome } = this.#call
    const ending = this.#ending as CallEnding
    return entryOf(this.#call, outcome ? { ...ending, outcome } : ending)
  }

  #claimToSettle(): Settlement['claim'] {
    const { idempotency } = this.#call
    const claim = idempotency?.claim
    if (!claim || !idempotency.completedByLedger || !this.#reservation.settlesRecords) return null
    claim.state = 'settling'
    return { id: claim.id, owner: claim.owner, keepUntil: Date.now() + claim.keepMs }
  }

  /** Handles the ledger's answer, which may come long after the call. */
  onResolved(outcome: ChargeOutcome): void {
    this.#resolved = true
    const claim = this.#call.idempotency?.claim
    if (claim) concludeClaim(claim, outcome)
    if (outcome === 'confirmed') return
    this.charged = null
    if (outcome === 'fenced' && !this.#res.headersSent) this.#call.idempotency?.discard()
    // The call log writes the entry that the ledger did not write with the charge.
    if (outcome === 'fenced' && this.#call.entryBy === 'written') this.#call.entryBy = 'ledger'
  }

  /**
   * Refuses the end of an answer whose charge is not confirmed. If nothing was sent, the charge is revoked; otherwise
   * it stands, and the stream ends with an error.
   */
  #holdBack(): void {
    const call = this.#call
    if (call.left) return
    const { headersSent } = this.#res
    const error = call.refuse('billing_unavailable', { message: headersSent ? CUT : WITHHELD })
    if (!headersSent) {
      this.charged = null
      // Otherwise the caller could read the unpaid answer in the call log.
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

  /** Charges what the call used, however it ended, or releases the reservation. */
  #end(): void {
    if (this.#settled) {
      if (!this.#resolved) void this.#detachCall()
      return
    }
    if (!this.#mayStillRun) {
      this.#giveBack()
      return
    }
    this.#handlerTimer = setTimeout(() => this.#giveBack(), this.deps.handlerMs).unref()
    // A handler that has thrown does not go on.
    this.#call.onFail(() => this.#giveBack())
  }

  /** Takes the call away from a charge that still waits. */
  async #detachCall(): Promise<void> {
    const call = this.#call
    try {
      // All that the end of the call does has been done then, and the answer is kept that the entry points at.
      await call.idempotency?.keepApart(null)
      if (!this.#resolved) this.#reservation.replaceBill(detachBill(this, call, this.#res.headersSent))
    } catch (error) {
      call.logger.error(
        { err: error, requestId: call.id },
        'the memory of a call whose charge waits could not be freed',
      )
    }
  }

  /**
   * Whether the handler may still run, and charge, although its caller left. Once it has reported a charge and sent
   * part of the answer, the caller gets no more.
   */
  get #mayStillRun(): boolean {
    const { left, routing } = this.#call
    if (!left || this.#answered || routing !== null) return false
    return !(this.#res.headersSent && this.own !== undefined)
  }

  #giveBack(): void {
    clearTimeout(this.#handlerTimer)
    const { outcome } = this.#call
    const ending = outcome && { outcome, unsent: null }
    const cost = ending && !this.#settled ? this.#costOf(ending) : undefined
    if (ending && cost && (cost.amount > 0n || !this.#isFree())) {
      void this.#charge(cost, ending)
      void this.#detachCall()
    } else this.#reservation.release()
  }
}
