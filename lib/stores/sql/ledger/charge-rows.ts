import type { CallLogEntry } from '../../../core/call/index.ts'
import { NO_TAGS } from '../../../core/catalog/index.ts'
import { type CallUsage, NOT_KNOWN, shareOfCharge, type UsageShare } from '../../../core/usage/index.ts'
import type { WalletId } from '../../../ledger/index.ts'
import type { ChargeRecord } from '../../../ledger/ledger.ts'
import { writeEntry } from '../calls/written-entry.ts'
import { bigintColumn, integerColumn, textColumn } from '../driver/columns.ts'

/** Returns wallets of budgets as JSON; null for none. */
function writeWallets(wallets: readonly WalletId[] | undefined): string | null {
  return wallets === undefined || wallets.length === 0 ? null : JSON.stringify(wallets)
}

/** Reads what {@link writeWallets} wrote. */
export function readWallets(cell: string | null): readonly WalletId[] | undefined {
  return cell === null ? undefined : (JSON.parse(cell) as WalletId[])
}

/*
 * The rows that a settlement writes. A new column also needs a migration and other places: see CONTRIBUTING.md.
 */

/** A charge. It is written once and never changed. */
export const CHARGE_COLUMNS = {
  request_id: textColumn(({ requestId }: ChargeRecord) => requestId),
  account: textColumn(({ account }: ChargeRecord) => account),
  key: textColumn(({ key }: ChargeRecord) => key),
  /** In nano-units. */
  amount: bigintColumn(({ amount }: ChargeRecord) => amount),
  at: bigintColumn(({ at }: ChargeRecord) => at),
  /** The cost of the call for the operator, in nano-units. */
  cost: bigintColumn(({ cost }: ChargeRecord) => cost ?? null),
  /** How the amount was computed, as JSON. */
  basis: textColumn(({ basis }: ChargeRecord) => basis),
  /** The wallets of its budgets, as JSON; null for none. */
  budgets: textColumn(({ budgets }: ChargeRecord) => writeWallets(budgets)),
  /** The usage that it added to its hour, as JSON. */
  usage: textColumn(({ usage }: ChargeRecord): string => writeUsage(usage ?? NOT_KNOWN)),
}

export const CALL_COLUMNS = {
  id: textColumn(({ id }: CallLogEntry) => id),
  account: textColumn(({ account }: CallLogEntry) => account),
  key: textColumn(({ key }: CallLogEntry) => key),
  model: textColumn(({ model }: CallLogEntry) => model),
  status: integerColumn(({ status }: CallLogEntry) => status),
  error_code: textColumn(({ error_code }: CallLogEntry): string | null => error_code),
  created_at: bigintColumn(({ created_at }: CallLogEntry) => Date.parse(created_at)),
  /** As JSON, without the answer that it keeps, and without what is usual. */
  entry: textColumn(writeEntry),
  /** In a column of its own, at the end: lists never read it, and it may have megabytes. */
  response_body: textColumn(({ response_body }: CallLogEntry) => response_body),
}

/** Returns the usage of a charge as its row keeps it, so that it can be taken away again. */
function writeUsage(usage: CallUsage): string {
  const written: Record<string, unknown> = { ...usage }
  for (const name in written) {
    const value = written[name]
    // A duration of 0 is counted; without a duration nothing is.
    const isNothing = value === null || value === NO_TAGS || (value === 0 && name !== 'durationMs')
    if (isNothing) written[name] = undefined
  }
  return JSON.stringify(written)
}

/** The columns of a charge that usage needs. All are null where a join has found no charge. */
export interface CountedRow {
  readonly account: string | null
  readonly key: string | null
  readonly amount: bigint | null
  readonly at: bigint | null
  readonly cost: bigint | null
  /** The JSON of {@link writeUsage}. */
  readonly usage: string | null
}

/** Returns what a charge has added to usage; null if there is none. */
export function shareOfRow({ account, key, amount, at, cost, usage }: CountedRow): UsageShare | null {
  if (account === null || usage === null) return null
  const written = JSON.parse(usage) as Partial<CallUsage>
  const known = { ...NOT_KNOWN, requests: 0, ...written }
  return shareOfCharge({ account, key, amount: amount ?? 0n, at: Number(at), cost, usage: known })
}
