import { isDeepStrictEqual } from 'node:util'
import { formatAmount } from '../../core/catalog/index.ts'
import type { ChangeOrigin, RecordedChange } from '../../core/change-log/index.ts'
import type { Account } from './accounts/account-store.ts'

/** Most that may have been deposited to an account: 64 bits of nano-units. */
export const LARGEST_BALANCE = 2n ** 63n - 1n

/** What a store records of a new account, or of a changed one; undefined where nothing is changed. */
export function settingsChange(account: Account, before: undefined, origin: ChangeOrigin): RecordedChange
export function settingsChange(
  account: Account,
  before: Account | undefined,
  origin: ChangeOrigin,
): RecordedChange | undefined
export function settingsChange(
  account: Account,
  before: Account | undefined,
  origin: ChangeOrigin,
): RecordedChange | undefined {
  const after = settingsOf(account)
  if (!before) return { ...origin, action: 'account.created', subject: account.id, before: null, after }
  const stood = settingsOf(before)
  if (isDeepStrictEqual(stood, after)) return undefined
  return { ...origin, action: 'account.changed', subject: account.id, before: stood, after }
}

/** What a store records of a deposit; `funds` is what had been deposited until then. */
export function depositChange(
  account: string,
  { funds, amount, reference }: { funds: bigint; amount: bigint; reference: string },
  origin: ChangeOrigin,
): RecordedChange {
  return {
    ...origin,
    action: 'account.deposited',
    subject: account,
    before: { deposited: formatAmount(funds) },
    after: { deposited: formatAmount(funds + amount), amount: formatAmount(amount), reference },
  }
}

function settingsOf({ name, prepaid, limits, regions, lineRegions }: Account) {
  return { name, prepaid, limits, regions, line_regions: lineRegions }
}
