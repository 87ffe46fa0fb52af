import type { CallLogEntry } from '../../../core/call/index.ts'
import { NOT_KNOWN, shareOfCharge, shareOfEntry, usageOfEntry } from '../../../core/usage/index.ts'
import { DELETE_LABELS, labelRows, UNCOUNTED, WRITE_LABELS } from '../calls/call-labels.ts'
import type { Database } from '../driver/tables.ts'
import { shareOfRow, writeUsage } from './charge-usage.ts'
import { addUsage, asCounted, UsageTally } from './usage-tally.ts'

/*
 * Counts what was charged and logged before usage was counted, or by a process of an older version: some rows at a time, from
 * an id on. A row is marked in the transaction that counts it, so that it is counted once whoever else counts, and stops.
 */

/** Counts some rows behind an id; returns the last one's, or undefined if there are no more. */
export type CountPage = (trx: Database, after: string) => Promise<string | undefined>

const PAGE_ROWS = 1000
/** The most rows that are counted at once: others may wait for the sums. */
const COUNTED_ROWS = 200
/** Each has about six labels. */
const LABELLED_ROWS = 500

/** Counts charges, each with what the log has of its call. */
export async function countCharges(trx: Database, after: string): Promise<string | undefined> {
  const page = await trx
    .selectFrom('charges')
    .select(['request_id', 'account', 'key', 'amount', 'at', 'cost', 'usage'])
    .where('request_id', '>', after)
    .orderBy('request_id')
    .limit(PAGE_ROWS)
    .execute()
  const { rows, last } = uncounted(page, ({ usage }) => usage === null)
  const entries = await entriesOf(
    trx,
    rows.map(({ request_id: id }) => id),
  )
  const tally = new UsageTally()
  for (const { request_id: requestId, at, ...row } of rows) {
    const entry = entries.get(requestId)
    // A further part of a call has an id of its own, behind that of the call.
    const usage = entry ? usageOfEntry(entry) : { ...NOT_KNOWN, requests: requestId.includes('.') ? 0 : 1 }
    const charge = asCounted({ ...row, requestId, basis: null, at: Number(at), usage })
    const { numUpdatedRows } = await trx
      .updateTable('charges')
      .set({ usage: writeUsage(charge.usage) })
      .where('request_id', '=', requestId)
      .where('usage', 'is', null)
      .executeTakeFirst()
    if (numUpdatedRows > 0n) tally.add(shareOfCharge(charge))
  }
  await addUsage(trx, tally)
  return last?.request_id
}

/** Takes away charges that were undone. All charges have been counted before. */
export async function countVoids(trx: Database, after: string): Promise<string | undefined> {
  const page = await trx
    .selectFrom('voids')
    .leftJoin('charges', 'charges.request_id', 'voids.request_id')
    .select(['voids.request_id', 'voids.counted'])
    .select(['charges.account', 'charges.key', 'charges.amount'])
    .select(['charges.at', 'charges.cost', 'charges.usage'])
    .where('voids.request_id', '>', after)
    .orderBy('voids.request_id')
    .limit(PAGE_ROWS)
    .execute()
  const { rows, last } = uncounted(page, ({ counted }) => counted === null)
  const tally = new UsageTally()
  for (const row of rows) {
    if (row.account !== null && row.usage === null) continue
    const { numUpdatedRows } = await trx
      .updateTable('voids')
      .set({ counted: 1 })
      .where('request_id', '=', row.request_id)
      .where('counted', 'is', null)
      .executeTakeFirst()
    const share = shareOfRow(row)
    if (share && numUpdatedRows > 0n) tally.takeAway(share)
  }
  await addUsage(trx, tally)
  return last?.request_id
}

/** Counts calls without a charge, and writes what calls are searched by. */
export async function countCalls(trx: Database, after: string): Promise<string | undefined> {
  const page = await trx
    .selectFrom('calls')
    .select(['id', 'counted'])
    .where('id', '>', after)
    .orderBy('id')
    .limit(PAGE_ROWS)
    .execute()
  const { rows, last } = uncounted(page, ({ counted }) => counted === null)
  await countEntries(
    trx,
    rows.map(({ id }) => id),
  )
  return last?.id
}

/** Writes what calls are searched by: older versions wrote less. */
export async function labelCalls(trx: Database, after: string): Promise<string | undefined> {
  const rows = await trx
    .selectFrom('calls')
    .select(['id', 'entry'])
    .where('id', '>', after)
    .orderBy('id')
    .limit(LABELLED_ROWS)
    .execute()
  await WRITE_LABELS.run(trx, labelRows(rows.map(({ entry }) => JSON.parse(entry) as CallLogEntry)))
  return rows.at(-1)?.id
}

/** Counts calls without a charge that were logged while their usage was locked: a call may have begun a day before. */
export async function countSetAside(trx: Database, after: string): Promise<string | undefined> {
  const rows = await trx
    .selectFrom('call_labels')
    .select('id')
    .where('label', '=', UNCOUNTED)
    .where('id', '>', after)
    .orderBy('id')
    .limit(COUNTED_ROWS)
    .execute()
  const ids = rows.map(({ id }) => id)
  await countEntries(trx, ids, () =>
    DELETE_LABELS.run(
      trx,
      ids.map((id) => [id, UNCOUNTED]),
    ),
  )
  return ids.at(-1)
}

/** Usage is written last, behind what else is to be written. */
async function countEntries(
  trx: Database,
  ids: readonly string[],
  write?: () => Promise<unknown>,
): Promise<void> {
  const entries = await entriesOf(trx, ids)
  const tally = new UsageTally()
  for (const [id, entry] of entries) {
    const { numUpdatedRows } = await trx
      .updateTable('calls')
      .set({ counted: 1 })
      .where('id', '=', id)
      .where('counted', 'is', null)
      .executeTakeFirst()
    const share = shareOfEntry(entry)
    if (share && numUpdatedRows > 0n) tally.add(share)
  }
  await WRITE_LABELS.run(trx, labelRows(entries.values()))
  await write?.()
  await addUsage(trx, tally)
}

/** Returns the first rows of a page that are not counted, and the last row up to which none is left then. */
function uncounted<Row>(
  page: readonly Row[],
  isUncounted: (row: Row) => boolean,
): { rows: Row[]; last: Row | undefined } {
  const rows: Row[] = []
  for (const row of page) {
    if (isUncounted(row)) rows.push(row)
    if (rows.length === COUNTED_ROWS) return { rows, last: row }
  }
  return { rows, last: page.at(-1) }
}

async function entriesOf(trx: Database, ids: readonly string[]): Promise<Map<string, CallLogEntry>> {
  if (ids.length === 0) return new Map()
  const rows = await trx
    .selectFrom('calls')
    .select(['id', 'entry'])
    .where('id', 'in', ids)
    .orderBy('id')
    .execute()
  return new Map(rows.map(({ id, entry }) => [id, JSON.parse(entry) as CallLogEntry]))
}
