import type { CallLogEntry } from '../../../core/call/index.ts'
import { NOT_KNOWN } from '../../../core/usage/index.ts'
import type { ChargeRecord } from '../../../ledger/ledger.ts'
import { bigintColumn, integerColumn, textColumn } from '../driver/columns.ts'
import { writeUsage } from '../usage/charge-usage.ts'
import { writeWallets } from './budget-cells.ts'

/*
 * The rows that a settlement writes. A column more is a line here, and a migration that adds it.
 */

/** A charge. It is written once and never changed. */
export const CHARGE_COLUMNS = {
  request_id: textColumn(({ requestId }: ChargeRecord) => requestId),
  account: textColumn(({ account }: ChargeRecord) => account),
  key: textColumn(({ key }: ChargeRecord) => key),
  /** In nano-units. */
  amount: bigintColumn(({ amount }: ChargeRecord) => amount),
  at: bigintColumn(({ at }: ChargeRecord) => at),
  /** What the call cost the operator, in nano-units. */
  cost: bigintColumn(({ cost }: ChargeRecord) => cost ?? null),
  /** How the amount was computed, as JSON. */
  basis: textColumn(({ basis }: ChargeRecord) => basis),
  /** The wallets of its budgets, as JSON; null for none. */
  budgets: textColumn(({ budgets }: ChargeRecord) => writeWallets(budgets)),
  /** What it added to the usage of its hour, as JSON; null: nothing yet. */
  usage: textColumn(({ usage }: ChargeRecord): string | null => writeUsage(usage ?? NOT_KNOWN)),
}

export const CALL_COLUMNS = {
  id: textColumn(({ id }: CallLogEntry) => id),
  account: textColumn(({ account }: CallLogEntry) => account),
  key: textColumn(({ key }: CallLogEntry) => key),
  model: textColumn(({ model }: CallLogEntry) => model),
  status: integerColumn(({ status }: CallLogEntry) => status),
  error_code: textColumn(({ error_code }: CallLogEntry): string | null => error_code),
  created_at: bigintColumn(({ created_at }: CallLogEntry) => Date.parse(created_at)),
  /** The entry as JSON with `response_body: null`. */
  entry: textColumn((entry: CallLogEntry): string =>
    JSON.stringify(entry.response_body === null ? entry : { ...entry, response_body: null }),
  ),
  /** Whether usage has it; null: not yet. A call with a charge is counted with that. */
  counted: integerColumn((_: CallLogEntry) => 1),
  /** In a column of its own, at the end: lists never read it, and it may have megabytes. */
  response_body: textColumn(({ response_body }: CallLogEntry) => response_body),
}
