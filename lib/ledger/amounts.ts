import type { LeaseChange, Settlement } from './ledger.ts'
import type { WalletId } from './wallet.ts'

/** The largest amount, positive or negative: every ledger stores amounts in 64 bits. */
export const MAX_AMOUNT = 2n ** 63n - 1n

/** @throws RangeError if a figure, which may be negative, does not fit 64 bits. */
export function assertFigure(figure: bigint, what: string): bigint {
  if (figure <= MAX_AMOUNT && figure >= -MAX_AMOUNT) return figure
  throw new RangeError(`${what} would be ${figure} nano-units, more than 64 bits hold`)
}

/** @throws RangeError if an amount of the change or its `seq` is not valid. */
export function assertChange({ lease, seq, change }: LeaseChange): void {
  if (!(Number.isSafeInteger(seq) && seq >= 1))
    throw new RangeError(`lease "${lease}": seq must be at least 1`)
  const amounts = change.kind === 'take' ? [change.need, change.want] : [change.amount]
  for (const amount of amounts) assertAmount(amount, `lease "${lease}"`)
}

/** @throws RangeError if an amount of the settlement is not valid. */
export function assertSettlement({ requestId, amount, draws }: Settlement): void {
  assertAmount(amount, requestId)
  for (const draw of draws) assertAmount(draw.amount, requestId)
}

/**
 * @throws TypeError if an account is given a quota.
 * @throws RangeError if the quota is not a valid amount.
 */
export function assertLimit(wallet: WalletId, { quota }: { readonly quota?: bigint }): void {
  if (quota === undefined) return
  if (wallet.startsWith('account:'))
    throw new TypeError(`wallet "${wallet}": an account's funds change by deposits`)
  assertAmount(quota, `wallet "${wallet}"`)
}

function assertAmount(amount: bigint, what: string): void {
  if (amount >= 0n && amount <= MAX_AMOUNT) return
  throw new RangeError(`${what}: an amount must be from 0 to ${MAX_AMOUNT} nano-units, and is ${amount}`)
}
