import { isDeepStrictEqual } from 'node:util'
import { formatAmount } from '../../core/catalog/index.ts'
import type { ChangeOrigin, RecordedChange } from '../../core/change-log/index.ts'
import type { Account } from './accounts/account-store.ts'

/** Returns the record of a new or changed account; undefined if nothing changed. */
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
  const previous = settingsOf(before)
  if (isDeepStrictEqual(previous, after)) return undefined
  return { ...origin, action: 'account.changed', subject: account.id, before: previous, after }
}

/** Returns the record of a deposit; `funds` is the sum of the earlier deposits. */
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
