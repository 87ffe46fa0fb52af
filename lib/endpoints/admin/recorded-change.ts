import { formatAmount } from '../../core/catalog/index.ts'
import { type ChangeOrigin, changedSettings, type RecordedChange } from '../../core/change-log/index.ts'
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
