import type { CallLogEntry } from '../../core/call/index.ts'
import {
  type Bill,
  Charge,
  type ChargeDeps,
  type ChargeOutcome,
  type SettleOutcome,
} from '../settling/charge.ts'
import type { HeldLease } from './held-lease.ts'
import type { HeldDraw, WalletLease } from './wallet-lease.ts'

export type { Bill, ChargeOutcome, SettleOutcome }

/** What a reservation needs of its pool. */
export interface ReservationDeps extends ChargeDeps {
  readonly onLedgerAway: 'hold' | 'deliver'
}

/**
 * The money that is held for one call. It ends with {@link Reservation.settle} or {@link Reservation.release}.
 *
 * @example
 * const held = await pool.reserve({ account: 'acme', key: 'key_acme', amount: 2_000_000n })
 * if (held instanceof Reservation) {
 *   const outcome = await held.settle({ requestId, amount: 1_500_000n, at: Date.now(), basis: () => '[]', claim: null, entry: null })
 * }
 */
export class Reservation {
  /** What is held, in nano-units. */
  readonly amount: bigint
  readonly #account: WalletLease
  readonly #key: WalletLease | undefined
  readonly #deps: ReservationDeps
  readonly #accountLease: HeldLease | undefined
  readonly #keyLease: HeldLease | undefined
  #isHeld = true
  #charge: Charge | undefined
  #outcome: SettleOutcome | Promise<SettleOutcome> | undefined

  /** Holds what both wallets cover. */
  constructor(
    amount: bigint,
    account: WalletLease,
    key: WalletLease | undefined,
    now: number,
    deps: ReservationDeps,
  ) {
    this.amount = amount
    this.#account = account
    this.#key = key
    this.#deps = deps
    this.#accountLease = account.hold(amount, now)
    this.#keyLease = key?.hold(amount, now)
  }

  /** Whether the ledger completes claims and writes log entries with the charge. */
  get settlesRecords(): boolean {
    return this.#deps.settlements.settlesRecords
  }

  /** What to do with an answer whose charge is `unconfirmed`, as the pool was told. */
  get onLedgerAway(): 'hold' | 'deliver' {
    return this.#deps.onLedgerAway
  }

  /**
   * Charges what the call cost, and gives the rest back. What was held pays first, then what is free beside it; what
   * goes beyond is debited all the same. Settled again it answers the same, and charges nothing.
   *
   * @returns what became of it, at once where the ledger answers at once. Never rejects.
   */
  settle(bill: Bill): SettleOutcome | Promise<SettleOutcome> {
    if (this.#outcome !== undefined) return this.#outcome
    const held = this.#isHeld ? this.amount : 0n
    this.#isHeld = false
    const ofAccount = this.#account.draw(this.#accountLease, held, bill.amount)
    const ofKey = this.#key?.draw(this.#keyLease, held, bill.amount)
    // As literals, which are as long as they need be: one that grows has room for sixteen more.
    const draws: HeldDraw[] = ofAccount && ofKey ? [ofAccount, ofKey] : []
    if (draws.length === 0 && ofAccount) draws.push(ofAccount)
    if (draws.length === 0 && ofKey) draws.push(ofKey)
    const charge = new Charge(bill, this.#account, this.#key, draws, this.#deps)
    this.#charge = charge
    const result = this.#deps.settlements.put(charge)
    this.#outcome =
      result instanceof Promise ? result.then((known) => charge.outcomeOf(known)) : charge.outcomeOf(result)
    return this.#outcome
  }

  /**
   * The charge must not stand after all: nothing was sent. What the ledger may have is undone by a void, which is queued
   * behind the charge; nobody waits for it.
   *
   * @param entry the log entry of the call as it ended now.
   * @returns `queued` where something is written, entry and claim with it; `dropped` where nothing is.
   */
  revoke(entry: (() => CallLogEntry) | null): 'queued' | 'dropped' {
    return this.#charge?.revoke(entry) ?? 'dropped'
  }

  /** Nothing was used. Does nothing the second time, or after `settle`. */
  release(): void {
    if (!this.#isHeld) return
    this.#isHeld = false
    this.#account.release(this.#accountLease, this.amount)
    this.#key?.release(this.#keyLease, this.amount)
  }
}
