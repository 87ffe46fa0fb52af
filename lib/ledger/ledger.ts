import type { CallLogEntry, IdempotencyClaim } from '../core/call/index.ts'
import type { WalletId } from './wallet.ts'

/*
 * Every amount is a bigint of nano-units. A wallet's figures hold at every moment:
 *   available = funds − spent − leased,  spent = the sum of its charges,
 *   leased = the sum of what its open leases, and the holds for video tasks that are not over, come to.
 */

/** What a wallet comes to, as the ledger had it at one moment. */
export interface WalletState {
  /** Whether it bounds what is spent: a prepaid account, a key with a quota. What does not is only counted. */
  readonly limited: boolean
  /** Deposited, or the key's quota. */
  readonly funds: bigint
  readonly spent: bigint
  /** Held by open leases of all processes, and for video tasks that are not over. */
  readonly leased: bigint
}

/**
 * A change to the one lease that a process has on a wallet. `seq` counts the changes of a lease from 1: the same one
 * asked for again changes nothing and answers as it did, so that a lost answer can be asked for again.
 */
export interface LeaseChange {
  /** Made by the process, never used twice. */
  readonly lease: string
  readonly wallet: WalletId
  readonly seq: number
  /**
   * `take`: adds to the lease, which is opened where it is not there and `seq` is 1. All of `want` where that is at most
   * a tenth of what is available; else a tenth, but not less than `need`; nothing where `need` is not available.
   * `give`: returns `amount` of it; what is left empty is closed.
   */
  readonly change:
    | { readonly kind: 'take'; readonly need: bigint; readonly want: bigint }
    | { readonly kind: 'give'; readonly amount: bigint }
}

/** What came of a {@link LeaseChange}. */
export interface LeaseAnswer {
  /** Added by `take`; returned by `give`. 0n for a wallet that is not limited: nothing need be held there. */
  readonly moved: bigint
  /** Whether the lease is gone although the process thought it had it: it was swept. Nothing is changed then. */
  readonly lost: boolean
  /** Whether the lease is open behind the change: a `take` may have opened none, a `give` closes one that it empties. */
  readonly open: boolean
  /** The wallet behind the change; undefined where the ledger knows no such wallet, which then is not served. */
  readonly state: WalletState | undefined
}

/** What a settlement takes out of a lease. */
export interface Draw {
  readonly lease: string
  readonly wallet: WalletId
  readonly amount: bigint
}

/** What is kept of a charge. */
export interface ChargeRecord {
  readonly requestId: string
  readonly account: string
  /** null where nobody's key is charged. */
  readonly key: string | null
  readonly amount: bigint
  /** Milliseconds since the epoch. */
  readonly at: number
  /** How the amount came about, as JSON; null for a void. */
  readonly basis: string | null
}

/**
 * One call's money, settled. Settling the same again changes nothing. Wallets that a charge needs and that are not there
 * are opened, not limited: what was used is never dropped.
 */
export interface Settlement extends ChargeRecord {
  /**
   * `charge`: the cost is spent, from the wallets of account and key. `void`: undoes the charge of this request id if
   * there is one, and keeps one that is still to come from being written.
   */
  readonly kind: 'charge' | 'void'
  /**
   * What part of the amount was held by which lease. The rest is debited from the wallets directly, and so is what a lease
   * does not hold any more. Only a charge that is `written` draws.
   */
  readonly draws: readonly Draw[]
  /**
   * The Idempotency-Key's record, completed in the same transaction and kept until then; a void frees it. Where the
   * claim was lost, nothing is charged.
   */
  readonly claim: SettledClaim | null
  /** The call's log entry, written in the same transaction; it takes the place of an earlier one. */
  readonly entry: CallLogEntry | null
}

/** An Idempotency-Key's record that is completed with a charge, and until when it is kept then. */
export type SettledClaim = IdempotencyClaim & { readonly keepUntil: number }

/**
 * - `written`: it stands.
 * - `known`: it stood already, also where its claim is gone since, or was voided before.
 * - `fenced`: the call's claim is not its own any more, because a later call has it or a void freed it; nothing was
 *   charged.
 */
export type SettlementResult = 'written' | 'known' | 'fenced'

/** A lease as everybody sees it. */
export interface OpenLease {
  readonly id: string
  readonly wallet: WalletId
  /** The process that has it. */
  readonly owner: string
  readonly held: bigint
  /** Counts its renewals and changes: as long as this stands still, nobody renews it. */
  readonly beats: number
  /** Milliseconds since the epoch, by the clock of the process that renewed it last. */
  readonly renewedAt: number
}

/**
 * Where money is kept. Each operation is one transaction, and may be repeated when its answer was lost: the second time
 * changes nothing and answers the same.
 *
 * An operation that fails rejects; it settles in a few seconds at most, also when the database hangs.
 */
export interface Ledger {
  /** Whether `settle` completes claims and writes log entries; one that does not ignores them. */
  readonly settlesRecords: boolean

  /**
   * Whether a call of `settle` costs so much more than what it settles that it is to wait for what else the current turn
   * of the event loop brings, as with a database. Defaults to false: what can be settled is handed over at once.
   */
  readonly gathers?: boolean

  /** Makes the changes, each for itself, for one process. Answers in their order. */
  change(owner: string, changes: readonly LeaseChange[]): Promise<readonly LeaseAnswer[]>

  /**
   * Keeps leases alive.
   *
   * @returns those of them that are still there.
   */
  renew(leases: readonly string[], at: number): Promise<ReadonlySet<string>>

  /** Writes settlements, all of them or, when it fails, none. May answer at once. Answers in their order. */
  settle(
    settlements: readonly Settlement[],
  ): readonly SettlementResult[] | Promise<readonly SettlementResult[]>

  /** All open leases. */
  leases(): Promise<readonly OpenLease[]>

  /**
   * Returns what a lease holds to its wallet and closes it, if nobody renewed it meanwhile.
   *
   * @param beats what {@link OpenLease.beats} was when it was last seen.
   * @returns whether it did.
   */
  sweep(lease: string, beats: number): Promise<boolean>
}

/** A wallet as those see it who run the service. */
export interface WalletStatement extends WalletState {
  readonly wallet: WalletId
  /**
   * Spent beyond what was held for it, because the lease that held it had been swept, or a video cost more than was held
   * for it. Part of `spent`.
   */
  readonly overrun: bigint
}

/** What {@link LedgerBooks.check} found: sums over all accounts, and each rule that does not hold, in words. */
export interface LedgerCheck {
  readonly violations: readonly string[]
  readonly accounts: number
  readonly charges: number
  readonly deposited: bigint
  readonly spent: bigint
  readonly leased: bigint
}

/** What came of a deposit: `conflict` where the same reference was used for another amount. */
export type DepositResult = 'deposited' | 'known' | 'conflict'

/** The ledger as those see it who run the service. */
export interface LedgerBooks {
  /**
   * Adds to an account's balance, once per reference. Opens a prepaid wallet where there is none.
   *
   * @throws RangeError as a rejection, when the amount or the balance is beyond what 64 bits hold.
   */
  deposit(account: string, amount: bigint, reference: string, at: number): Promise<DepositResult>

  /** The state of wallets; those that the ledger does not know are left out. */
  wallets(ids: readonly WalletId[]): Promise<readonly WalletStatement[]>

  /**
   * Opens a wallet, or changes whether it is limited and, for a key, its quota. An account's funds change by deposits
   * only.
   */
  setLimit(wallet: WalletId, limit: { readonly limited: boolean; readonly quota?: bigint }): Promise<void>

  /** Recomputes the rules of the ledger from its rows, all as of one moment. */
  check(): Promise<LedgerCheck>
}
