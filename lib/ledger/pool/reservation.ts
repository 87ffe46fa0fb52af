import type { CallLogEntry } from '../../core/call/index.ts'
import type { BudgetPeriod } from '../budgets/budget.ts'
import type { Bill, ChargeOutcome, SettleOutcome } from '../settling/bill.ts'
import { Charge, type ChargeDeps } from '../settling/charge.ts'
import type { HeldLease } from './held-lease.ts'
import type { HeldDraw, WalletLease } from './wallet-lease.ts'

export type { Bill, ChargeOutcome, SettleOutcome }

/** A call for which money is to be held. */
export interface ReserveClaim {
  readonly account: string
  /** The key whose quota is charged too; null if there is none. */
  readonly key: string | null
  /** The highest cost of the call, in nano-units. */
  readonly amount: bigint
  /** The budgets that the call counts against. Defaults to none. */
  readonly budgets?: readonly BudgetPeriod[]
  /** Whether the call will be settled. One that will not is admitted while charges wait. Defaults to true. */
  readonly settles?: boolean
}

/** Why the money for a call could not be held. */
export interface ReserveRefusal {
  readonly refused:
    | 'key_quota_exhausted'
    | 'insufficient_balance'
    | 'quota_lease_exhausted'
    | 'billing_unavailable'
  /** The highest cost of the call, in nano-units. */
  readonly required: bigint
  /** The amount that was available, in nano-units; null if it is unknown. For the call log only. */
  readonly available: bigint | null
  /** The budget that refuses; absent if none does. */
  readonly budget?: BudgetPeriod
}

/** The parts of a pool that a reservation needs. */
export interface ReservationDeps extends ChargeDeps {
  readonly onStoreError: 'hold' | 'deliver'
  /** Holds money for a call. */
  reserve(claim: ReserveClaim): ReserveAnswer | Promise<ReserveAnswer>
}

type ReserveAnswer = Reservation | ReserveRefusal

/** A budget that a call counts against, with the wallet of its period. */
export interface BudgetLease {
  readonly period: BudgetPeriod
  readonly lease: WalletLease
}

const NO_LEASES: readonly undefined[] = []
const NO_WALLETS: readonly WalletLease[] = []

/**
 * Money that is held for one call. It ends with {@link Reservation.settle} or {@link Reservation.release}.
 *
 * @example
 * const held = await pool.reserve({ account: 'acme', key: 'key_acme', amount: 2_000_000n })
 * if (held instanceof Reservation) {
 *   const outcome = await held.settle({ requestId, amount: 1_500_000n, at: Date.now(), basis: () => '[]', claim: null, entry: null })
 * }
 */
export class Reservation {
  /** The held amount, in nano-units. */
  readonly amount: bigint
  readonly #account: WalletLease
  readonly #key: WalletLease | undefined
  readonly #budgets: readonly BudgetLease[]
  readonly #deps: ReservationDeps
  readonly #accountLease: HeldLease | undefined
  readonly #keyLease: HeldLease | undefined
  readonly #budgetLeases: readonly (HeldLease | undefined)[]
  #isHeld = true
  #charge: Charge | undefined
  #outcome: SettleOutcome | Promise<SettleOutcome> | undefined

  /** Holds the amount on wallets that cover it. */
  constructor(
    amount: bigint,
    account: WalletLease,
    key: WalletLease | undefined,
    budgets: readonly BudgetLease[],
    now: number,
    deps: ReservationDeps,
  ) {
    this.amount = amount
    this.#account = account
    this.#key = key
    this.#deps = deps
    this.#accountLease = account.hold(amount, now)
    this.#keyLease = key?.hold(amount, now)
    this.#budgets = budgets
    this.#budgetLeases =
      budgets.length === 0 ? NO_LEASES : budgets.map(({ lease }) => lease.hold(amount, now))
  }

  /** Whether the ledger completes claims and writes log entries with the charge. */
  get settlesRecords(): boolean {
    return this.#deps.settlements.settlesRecords
  }

  /**
   * The most that can be charged before the account is below zero by more than this reservation, or has spent more than the
   * ledger can report; undefined if neither is known.
   */
  get most(): bigint | undefined {
    const { reach, snapshot } = this.#account
    return reach === undefined || !snapshot.limited ? reach : reach + 2n * this.amount
  }

  /** The treatment of an answer whose charge is `unconfirmed`: the option of the pool. */
  get onStoreError(): 'hold' | 'deliver' {
    return this.#deps.onStoreError
  }

  /**
   * Charges the cost of the call and returns the rest. The held amount pays first, then free money of the leases; any
   * further cost is debited all the same. A repeated call returns the same and charges nothing.
   *
   * @returns the outcome, at once if the ledger answers at once. Never rejects.
   */
  settle(bill: Bill): SettleOutcome | Promise<SettleOutcome> {
    if (this.#outcome !== undefined) return this.#outcome
    const held = this.#isHeld ? this.amount : 0n
    this.#isHeld = false
    const ofAccount = this.#account.draw(this.#accountLease, held, bill.amount)
    const ofKey = this.#key?.draw(this.#keyLease, held, bill.amount)
    // Literals have exactly the needed size; an array that grows reserves room for sixteen more elements.
    const draws: HeldDraw[] = ofAccount && ofKey ? [ofAccount, ofKey] : []
    if (draws.length === 0 && ofAccount) draws.push(ofAccount)
    if (draws.length === 0 && ofKey) draws.push(ofKey)
    const budgets = this.#budgets.length === 0 ? NO_WALLETS : this.#drawBudgets(held, bill.amount, draws)
    const charge = new Charge(bill, this.#account, this.#key, budgets, draws, this.#deps)
    this.#charge = charge
    this.#outcome = this.#deps.settlements.put(charge)
    return this.#outcome
  }

  /**
   * Undoes the charge, because nothing was sent. If the ledger may have the charge, a void is queued behind it; nobody
   * waits for the void.
   *
   * @param entry returns the log entry of the call as it has ended.
   * @returns `queued` if something is written, with entry and claim; `dropped` if nothing is.
   */
  revoke(entry: (() => CallLogEntry) | null): 'queued' | 'dropped' {
    return this.#charge?.revoke(entry) ?? 'dropped'
  }

  /** Has the charge read another bill of the same from now on, such as one that keeps less in memory. */
  replaceBill(bill: Bill): void {
    this.#charge?.replaceBill(bill)
  }

  /** Holds money for more of the same call, for the same account, key and periods of budgets. */
  more(amount: bigint): ReserveAnswer | Promise<ReserveAnswer> {
    const budgets = this.#budgets.map(({ period }) => period)
    return this.#deps.reserve({ account: this.#account.id, key: this.#key?.id ?? null, amount, budgets })
  }

  /** Releases the money unused. Does nothing after `release` or `settle`. */
  release(): void {
    if (!this.#isHeld) return
    this.#isHeld = false
    this.#account.release(this.#accountLease, this.amount)
    this.#key?.release(this.#keyLease, this.amount)
    for (const [i, { lease }] of this.#budgets.entries()) lease.release(this.#budgetLeases[i], this.amount)
  }

  #drawBudgets(held: bigint, cost: bigint, draws: HeldDraw[]): readonly WalletLease[] {
    return this.#budgets.map(({ lease }, i) => {
      const drawn = lease.draw(this.#budgetLeases[i], held, cost)
      if (drawn) draws.push(drawn)
      return lease
    })
  }
}
