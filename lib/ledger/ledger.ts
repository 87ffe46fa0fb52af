import type { CallLogEntry, IdempotencyClaim } from '../core/call/index.ts'
import type { CallUsage } from '../core/usage/index.ts'
import type { WalletId } from './wallet.ts'

/*
 * Every amount is a bigint of nano-units. A wallet's figures hold at every moment:
 *   available = funds − spent − leased,  spent = the sum of its charges,
 *   leased = the sum of what its open leases, and the holds for video tasks that are not over, come to.
 */

/** The sums of a wallet as of one moment. */
export interface WalletState {
  /** Whether the wallet limits spending: a prepaid account, or a key with a quota. Any other wallet only counts. */
  readonly limited: boolean
  /** The sum of deposits and adjustments; for a key, its quota. */
  readonly funds: bigint
  readonly spent: bigint
  /** Held by open leases of all processes and by video tasks that have not ended. */
  readonly leased: bigint
}

/**
 * A change of the one lease that a process has on a wallet. `seq` counts the changes of a lease from 1. A change that
 * is repeated because its answer was lost changes nothing and gets the same answer.
 */
export interface LeaseChange {
  /** The id that the process gave the lease; never used twice. */
  readonly lease: string
  readonly wallet: WalletId
  readonly seq: number
  /**
   * `take`: adds to the lease, and opens it if it does not exist and `seq` is 1. It adds `want` if that is at most a
   * tenth of what is available; else a tenth, but at least `need`; nothing if `need` is not available. `give`: returns
   * `amount` of the lease; a lease that becomes empty is closed.
   */
  readonly change:
    | { readonly kind: 'take'; readonly need: bigint; readonly want: bigint }
    | { readonly kind: 'give'; readonly amount: bigint }
}

/** The answer to a {@link LeaseChange}. */
export interface LeaseAnswer {
  /** The amount that `take` added or `give` returned. 0n for an unlimited wallet, on which nothing is held. */
  readonly moved: bigint
  /** Whether the lease has been swept although the process still used it. Nothing is changed then. */
  readonly lost: boolean
  /**
   * Whether the lease is open after the change: a `take` may open none, and a `give` closes a lease that it empties.
   */
  readonly open: boolean
  /**
   * The wallet after the change; undefined if the ledger does not know it. A key that it does not know has no quota; calls of
   * an unknown account are refused.
   */
  readonly state: WalletState | undefined
}

/** The amount that a settlement takes out of a lease. */
export interface Draw {
  readonly lease: string
  readonly wallet: WalletId
  readonly amount: bigint
}

/** The stored members of a charge. */
export interface ChargeRecord {
  readonly requestId: string
  readonly account: string
  /** null if no key is charged. */
  readonly key: string | null
  readonly amount: bigint
  /** The cost of the call for the operator; null or absent if that is not known. */
  readonly cost?: bigint | null
  /** Milliseconds since the epoch. */
  readonly at: number
  /** The usage that the call adds to its hour; null or absent if that is not known. */
  readonly usage?: CallUsage | null
  /** How the amount was computed, as JSON; null for a void. */
  readonly basis: string | null
  /** The wallets of the budgets that it counts against. Absent: none. */
  readonly budgets?: readonly WalletId[] | undefined
}

/**
 * The settlement of one call. Repeating it changes nothing. A wallet that is missing is opened without a limit, so that
 * no usage is lost.
 */
export interface Settlement extends ChargeRecord {
  /**
   * `charge`: spends the cost from the wallets of account and key. `void`: undoes the charge of this request id if
   * there is one, and prevents one that arrives later. `revoked`: a charge and its void in one, for a charge that may have
   * been stored without an answer and is not to stand. Its result is that of the charge, from which the
   * result of the draws follows.
   */
  readonly kind: 'charge' | 'void' | 'revoked'
  /**
   * The parts of the amount that leases held. The rest is debited from the wallets directly, as is a part that its
   * lease no longer holds. Only a charge that is `written` draws.
   */
  readonly draws: readonly Draw[]
  /**
   * The record of the Idempotency-Key. It is completed in the same transaction and kept until the given time; a void
   * frees it, and so does a charge that is revoked. If the claim was lost, nothing is charged.
   */
  readonly claim: SettledClaim | null
  /** The call's log entry, written in the same transaction. It replaces an earlier one. */
  readonly entry: CallLogEntry | null
}

/** The record of an Idempotency-Key that is completed with a charge, and until when it is kept. */
export type SettledClaim = IdempotencyClaim & { readonly keepUntil: number }

/**
 * - `written`: the charge is stored.
 * - `known`: it was stored before, even if its claim is gone since, or it was voided before.
 * - `fenced`: the call has lost its claim, because a later call has it or a void freed it; nothing was charged.
 */
export type SettlementResult = 'written' | 'known' | 'fenced'

/** A lease as all processes see it. */
export interface OpenLease {
  readonly id: string
  readonly wallet: WalletId
  /** The process that holds it. */
  readonly owner: string
  readonly held: bigint
  /** The number of its renewals and changes. While it does not change, no process renews the lease. */
  readonly beats: number
  /** In milliseconds since the epoch, by the clock of the process that renewed it last. */
  readonly renewedAt: number
}

/**
 * Stores money. Each operation is one transaction and may be repeated if its answer was lost: the second time it
 * changes nothing and returns the same.
 *
 * An operation that fails rejects. Each settles within a few seconds, even if the database does not respond.
 */
export interface Ledger {
  /** Whether `settle` completes claims and writes log entries; any other ledger ignores them. */
  readonly settlesRecords: boolean

  /**
   * Whether a call of `settle` is so expensive, as with a database, that it should wait for what the current turn of
   * the event loop adds. Defaults to false: settlements are handed over at once.
   */
  readonly gathers?: boolean

  /**
   * Most calls of `settle` that the ledger gets at a time while it is far away, each with other charges. Defaults to 1.
   * At most half of them contain the same account, so a lock on its rows does not block the others.
   */
  readonly settlesAtOnce?: number

  /**
   * Makes the changes of one process, each on its own. The answers are in their order.
   *
   * @throws {WalletsLocked} if another transaction has locked some of the wallets. Nothing is changed then.
   */
  change(owner: string, changes: readonly LeaseChange[]): Promise<readonly LeaseAnswer[]>

  /**
   * Renews leases.
   *
   * @returns those that are renewed. One that is missing is gone if {@link leases} does not have it either; else
   *   another transaction has locked it, and it is renewed later.
   */
  renew(leases: readonly string[], at: number): Promise<ReadonlySet<string>>

  /**
   * Writes all settlements or, if it fails, none. May return at once. The results are in their order.
   *
   * @throws {WalletsLocked} if another transaction has locked rows of some of the accounts. The others' can be written.
   */
  settle(
    settlements: readonly Settlement[],
  ): readonly SettlementResult[] | Promise<readonly SettlementResult[]>

  /** Writes what it has put off since it settled, such as log entries. Optional: everything is written by then. */
  flush?(): Promise<void>

  /** Returns all open leases. */
  leases(): Promise<readonly OpenLease[]>

  /**
   * Returns all open leases to a process that looks for those that no process renews; undefined if enough others do. A few
   * are enough, and the leases of many processes are many rows. Optional: without it, every process looks.
   *
   * @param watcher the name of the process, the same each time.
   */
  watch?(watcher: string): Promise<readonly OpenLease[] | undefined>

  /**
   * Returns what a lease holds to its wallet and closes it, unless it was renewed meanwhile.
   *
   * @param beats the value of {@link OpenLease.beats} when the lease was last seen.
   * @returns whether the lease was closed.
   * @throws {WalletsLocked} if another transaction has locked its rows. It is swept later.
   */
  sweep(lease: string, beats: number): Promise<boolean>
}

/** A wallet as operators see it. */
export interface WalletStatement extends WalletState {
  readonly wallet: WalletId
  /**
   * Spending beyond what was held for it: its lease had been swept, or a video cost more than its hold. It is part of
   * `spent`.
   */
  readonly overrun: bigint
}

/** The result of {@link LedgerAdmin.check}: sums over all accounts, and a description of each violated rule. */
export interface LedgerCheck {
  readonly violations: readonly string[]
  readonly accounts: number
  readonly charges: number
  readonly deposited: bigint
  readonly spent: bigint
  readonly leased: bigint
  /** The last time that the database was restored from a backup. Absent: it is not known to have been. */
  readonly restored?: RestoredLedger
}

/**
 * A ledger that was restored from a backup. Calls between the newest one that it knew then and the restore may be unknown to it,
 * unless they were written again: the providers bill these.
 */
export interface RestoredLedger {
  /** When it was restored, or that was found. In milliseconds since the epoch. */
  readonly at: number
  /** When the newest call of the backup began; null if it has none. */
  readonly newestCallAt: number | null
  /** The charges that running processes have written again, and their sum in nano-units. */
  readonly chargesWrittenAgain: number
  readonly amountWrittenAgain: bigint
  /** Keys of these charges that the database does not know any more: they were made after the backup. */
  readonly unknownKeys: readonly string[]
}

/** The result of a deposit or adjustment. `conflict`: the reference was used before with another amount. */
export type DepositResult = 'deposited' | 'known' | 'conflict'

/** The operations of a ledger for operators. */
export interface LedgerAdmin {
  /**
   * Adds to an account's balance, or takes from it if the amount is negative, once per reference. Opens a prepaid wallet
   * if there is none.
   *
   * @throws RangeError as a rejection, if the amount or the balance does not fit 64 bits.
   */
  deposit(account: string, amount: bigint, reference: string, at: number): Promise<DepositResult>

  /** Returns the state of wallets. Unknown ones are left out. */
  wallets(ids: readonly WalletId[]): Promise<readonly WalletStatement[]>

  /**
   * Opens a wallet, or changes whether it is limited and, for a key, its quota. An account's funds change by deposits
   * only.
   */
  setLimit(wallet: WalletId, limit: { readonly limited: boolean; readonly quota?: bigint }): Promise<void>

  /** Recomputes the rules of the ledger from its rows, all as of one moment. */
  check(): Promise<LedgerCheck>
}
