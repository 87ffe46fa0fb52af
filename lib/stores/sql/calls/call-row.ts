import type { CallLogEntry } from '../../../core/call/index.ts'
import type { CallsTable } from '../driver/tables.ts'

/** A log entry as its table has it. */
export function callRowOf(entry: CallLogEntry): CallsTable {
  const { response_body, ...rest } = entry
  return {
    id: entry.id,
    account: entry.account,
    key: entry.key,
    model: entry.model,
    status: entry.status,
    error_code: entry.error_code,
    created_at: BigInt(Date.parse(entry.created_at)),
    entry: JSON.stringify(rest),
    response_body,
  }
}
