import type { AccountLimits } from '../../core/call/index.ts'
import { formatAmount } from '../../core/catalog/index.ts'
import { MAX_AMOUNT } from '../../core/catalog/money.ts'
import {
  type ChangeOrigin,
  changedObject,
  changedSettings,
  type RecordedChange,
} from '../../core/change-log/index.ts'

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

  /** Returns those of some accounts that exist, by id. */
  findAll(ids: readonly string[]): Promise<ReadonlyMap<string, Account>>

  /** Adds an account and opens its wallet; returns undefined if the id is taken. */
  create(id: string, settings: AccountSettings, origin: ChangeOrigin): Promise<Account | undefined>

  /**
   * Replaces the settings of an account. If nothing changes, nothing is recorded.
   *
   * @param revise returns the new settings for the current ones, while no other change runs. May be called again.
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

/** A deposit, or an adjustment, which has a reason. */
export interface KnownDeposit {
  readonly amount: bigint
  readonly at: number
  readonly reason: string | null
}

/** Returns the outcome of a deposit or adjustment whose reference was used before. */
export function repeatedDeposit(earlier: KnownDeposit, asked: Omit<KnownDeposit, 'at'>): DepositOutcome {
  const isSame = earlier.amount === asked.amount && (earlier.reason === null) === (asked.reason === null)
  return isSame ? { kind: 'known', at: earlier.at, reason: earlier.reason } : { kind: 'conflict' }
}

/** Whether 64 bits hold the sum of an account's deposits and adjustments. */
export function holdsDeposits(sum: bigint): boolean {
  return sum <= MAX_AMOUNT && sum >= -MAX_AMOUNT
}

/** Returns the record of a new or changed account; undefined if nothing changed. */
export function accountChange(account: Account, before: undefined, origin: ChangeOrigin): RecordedChange
export function accountChange(
  account: Account,
  before: Account | undefined,
  origin: ChangeOrigin,
): RecordedChange | undefined
export function accountChange(
  account: Account,
  before: Account | undefined,
  origin: ChangeOrigin,
): RecordedChange | undefined {
  const after = settingsOf(account)
  if (!before) return changedObject('account.created', account.id, after, origin)
  return changedSettings('account.changed', account.id, { before: settingsOf(before), after }, origin)
}

/** Returns the record of a deposit or adjustment; `funds` is the sum of the earlier ones. */
export function depositChange(
  account: string,
  {
    funds,
    amount,
    reference,
    reason,
  }: { funds: bigint; amount: bigint; reference: string; reason: string | null },
  origin: ChangeOrigin,
): RecordedChange {
  const after = { deposited: formatAmount(funds + amount), amount: formatAmount(amount), reference }
  return {
    ...origin,
    action: reason === null ? 'account.deposited' : 'account.adjusted',
    subject: account,
    before: { deposited: formatAmount(funds) },
    after: reason === null ? after : { ...after, reason },
  }
}

function settingsOf({ name, status, prepaid, limits, regions, lineRegions }: Account) {
  return { name, status, prepaid, limits, regions, line_regions: lineRegions }
}
