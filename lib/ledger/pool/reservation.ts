import type { CallLogEntry } from '../../core/call/index.ts'
import type { HeldLease } from '../leases/held-lease.ts'
import type { HeldDraw, WalletLease } from '../leases/wallet-lease.ts'
import { type Bill, Charge, type ChargeSurroundings, type SettleOutcome } from '../settling/charge.ts'

export type { Bill, ChargeOutcome, SettleOutcome } from '../settling/charge.ts'

/** What a reservation needs of its pool. */
export interface ReservationSurroundings extends ChargeSurroundings {
  readonly onLedgerAway: 'hold' | 'deliver'
}

/** For whom money is held, and where. */
export interface ReservationParts {
  readonly accountId: string
  readonly keyId: string | null
  readonly amount: bigint
  readonly account: WalletLease
  readonly key: WalletLease | undefined
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
  readonly #parts: ReservationParts
  readonly #around: ReservationSurroundings
  readonly #accountLease: HeldLease | undefined
  readonly #keyLease: HeldLease | undefined
  #isHeld = true
  #charge: Charge | undefined
  #outcome: SettleOutcome | Promise<SettleOutcome> | undefined

  /** Holds what the wallets cover. */
  constructor(parts: ReservationParts, around: ReservationSurroundings) {
    this.#parts = parts
    this.#around = around
    this.#accountLease = parts.account.hold(parts.amount)
    this.#keyLease = parts.key?.hold(parts.amount)
  }

  /** What is held, in nano-units. */
  get amount(): bigint {
    return this.#parts.amount
  }

  /** Whether the ledger completes claims and writes log entries with the charge. */
  get settlesRecords(): boolean {
    return this.#around.queue.settlesRecords
  }

  /** What to do with an answer whose charge is `unconfirmed`, as the pool was told. */
  get onLedgerAway(): 'hold' | 'deliver' {
    return this.#around.onLedgerAway
  }

  /**
   * Charges what the call cost, and gives the rest back. What was held pays first, then what is free beside it; what
   * goes beyond is debited all the same. Settled again it answers the same, and charges nothing.
   *
   * @returns what became of it, at once where the ledger answers at once. Never rejects.
   */
  settle(bill: Bill): SettleOutcome | Promise<SettleOutcome> {
    if (this.#outcome !== undefined) return this.#outcome
    const { accountId, keyId, account, key } = this.#parts
    const held = this.#isHeld ? this.#parts.amount : 0n
    this.#isHeld = false
    const draws: HeldDraw[] = []
    const ofAccount = account.draw(this.#accountLease, held, bill.amount)
    if (ofAccount) draws.push(ofAccount)
    const ofKey = key?.draw(this.#keyLease, held, bill.amount)
    if (ofKey) draws.push(ofKey)
    const wallets = key ? [account, key] : [account]
    this.#charge = new Charge(bill, { accountId, keyId, wallets, draws }, this.#around)
    this.#outcome = this.#charge.settle()
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
    const { account, key, amount } = this.#parts
    account.release(this.#accountLease, amount)
    key?.release(this.#keyLease, amount)
  }
}
