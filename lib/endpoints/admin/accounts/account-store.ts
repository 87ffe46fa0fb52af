import type { AccountLimits } from '../../../core/call/index.ts'
import type { ChangeOrigin } from '../../../core/change-log/index.ts'

/** The settings of an account that operators can change. */
export interface AccountSettings {
  readonly name: string | null
  /** Whether the account can spend no more than was deposited. Any other account's spending is counted, never refused. */
  readonly prepaid: boolean
  readonly limits: AccountLimits
  /** Gateway regions that may process its calls; null = all. */
  readonly regions: readonly string[] | null
  /** Regions of the lines that may serve it; null = all. */
  readonly lineRegions: readonly string[] | null
  /** `suspended`: its keys are refused as disabled, and what they run ends. */
  readonly status: AccountStatus
}

export const ACCOUNT_STATUSES = ['active', 'suspended'] as const
export type AccountStatus = (typeof ACCOUNT_STATUSES)[number]

/** An account as operators see it; its money is in the ledger. */
export interface Account extends AccountSettings {
  readonly id: string
  /** Milliseconds since the epoch. */
  readonly createdAt: number
}

/**
 * The result of a deposit or adjustment; `at` is when it was made, in milliseconds since the epoch.
 *
 * - `known`: this reference was used before for the same amount; nothing was added. `reason` is what was given then.
 * - `conflict`: this reference was used before for another amount, or for the other kind.
 * - `too_much`: the account's deposits would exceed 64 bits of nano-units.
 * - `no_account`: there is no such account.
 */
export type DepositOutcome =
  | { readonly kind: 'deposited' | 'known'; readonly at: number; readonly reason: string | null }
  | { readonly kind: 'conflict' | 'too_much' | 'no_account' }

/**
 * A store for accounts. Each operation is one transaction, which includes the record of the change. Operations reject if
 * the store cannot be reached.
 */
export interface AccountStore {
  /** Returns at most `limit` accounts ordered by id, those behind the id `after` if it is given. */
  list(limit: number, after?: string): Promise<readonly Account[]>

  find(id: string): Promise<Account | undefined>

  /** Adds an account and opens its wallet; returns undefined if the id is taken. */
  create(id: string, settings: AccountSettings, origin: ChangeOrigin): Promise<Account | undefined>

  /**
   * Replaces the settings of an account. If nothing changes, nothing is recorded.
   *
   * @param revise returns the new settings for the current ones, while nobody else changes them. May be called again.
   * @returns the account as it is now; undefined if there is none.
   */
  change(
    id: string,
    revise: (settings: AccountSettings) => AccountSettings,
    origin: ChangeOrigin,
  ): Promise<Account | undefined>

  /**
   * Adds to an account's balance, once per reference.
   *
   * @param amount in nano-units: positive, or for an adjustment also negative, which may take the balance below zero.
   * @param reason why the balance is adjusted; null or absent for a deposit.
   */
  deposit(
    id: string,
    amount: bigint,
    reference: string,
    origin: ChangeOrigin,
    reason?: string | null,
  ): Promise<DepositOutcome>
}
