import type { AccountLimits } from '../../../core/call/index.ts'
import type { ChangeOrigin } from '../../../core/change-log/index.ts'

/** What an operator decides about an account. */
export interface AccountSettings {
  readonly name: string | null
  /** Whether no more may be spent than was deposited. What any other account spends is counted, and never refused. */
  readonly prepaid: boolean
  readonly limits: AccountLimits
  /** Gateway regions that may process its calls; null = all. */
  readonly regions: readonly string[] | null
  /** Regions of the lines that may serve it; null = all. */
  readonly lineRegions: readonly string[] | null
}

/** An account as those see it who run the service; its money is in the ledger. */
export interface Account extends AccountSettings {
  readonly id: string
  /** Milliseconds since the epoch. */
  readonly createdAt: number
}

/**
 * What came of a deposit; `at` is when the money came, in milliseconds since the epoch.
 *
 * - `known`: the same reference brought the same amount before; nothing was added.
 * - `conflict`: the same reference brought another amount before.
 * - `too_much`: the account would hold more than 64 bits of nano-units can.
 * - `no_account`: there is no such account.
 */
export type DepositOutcome =
  | { readonly kind: 'deposited' | 'known'; readonly at: number }
  | { readonly kind: 'conflict' | 'too_much' | 'no_account' }

/**
 * Where accounts are kept, for those who run the service. Each operation is one transaction: a change is recorded with
 * what it changes, or neither is there. Rejects when the store cannot be reached.
 */
export interface AccountStore {
  /** At most `limit` accounts in the order of their ids, those behind the id `after` where one is given. */
  list(limit: number, after?: string): Promise<readonly Account[]>

  find(id: string): Promise<Account | undefined>

  /** Adds an account and opens its wallet; undefined where there is one with this id. */
  create(id: string, settings: AccountSettings, origin: ChangeOrigin): Promise<Account | undefined>

  /**
   * Replaces the settings of an account. What comes out as it was is no change, and not recorded.
   *
   * @param revise makes the new settings of those that stand, while nobody else changes them. May be run again.
   * @returns the account as it is now; undefined where there is none.
   */
  change(
    id: string,
    revise: (settings: AccountSettings) => AccountSettings,
    origin: ChangeOrigin,
  ): Promise<Account | undefined>

  /** Adds to an account's balance, once per reference. The amount is in nano-units and positive. */
  deposit(id: string, amount: bigint, reference: string, origin: ChangeOrigin): Promise<DepositOutcome>
}
