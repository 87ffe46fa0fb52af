import { pipeline } from 'node:stream'
import { createGzip } from 'node:zlib'
import { formatAmount } from '../../../core/catalog/index.ts'
import { readEntry } from '../calls/written-entry.ts'
import { FIRST_ID, firstIdOf, placeOf } from '../driver/id-times.ts'
import type { Database } from '../driver/tables.ts'
import { markOf, type UpkeepLease, UpkeepLost } from '../driver/upkeep-lease.ts'
import type { Archive } from './archive.ts'

/** Tables that are exported. */
export type ExportedTable = 'calls' | 'charges'

const DAY_MS = 86_400_000
const PAGE_ROWS = 500

/**
 * Exports the rows of each day that has wholly expired, a file for each, oldest first. A day is exported once: the file of a day
 * that a process did not complete is written again.
 *
 * @param until the days that end at this time or before.
 * @param pause is awaited between pages; it rejects to end the export.
 * @returns the id up to which all rows are exported.
 */
export async function exportDays(
  db: Database,
  table: ExportedTable,
  archive: Archive,
  until: number,
  lease: UpkeepLease,
  pause: () => Promise<void>,
): Promise<string> {
  const mark = `exported ${table}`
  let exported = (await markOf(db, mark)) ?? FIRST_ID
  for (;;) {
    const [first] = await idsFrom(db, table, exported)
    const time = first === undefined ? Number.POSITIVE_INFINITY : placeOf(first)
    const start = Math.floor(time / DAY_MS) * DAY_MS
    // The days before that one have no rows, and will not get any.
    if (start + DAY_MS > until) return firstIdOf(Math.min(start, Math.floor(until / DAY_MS) * DAY_MS))
    const [from, to] = [firstIdOf(start), firstIdOf(start + DAY_MS)]
    const bytes = createGzip()
    // The reader of the bytes gets the error. If an archive has given up, there is no reader.
    pipeline(linesOf(db, table, from, to, pause), bytes, () => {})
    try {
      // A process that has the right all the time has read all rows: it alone deletes some of them.
      await lease.during(archive.write(nameOf(table, start), bytes, () => lease.keep(true)))
    } catch (error) {
      // The process that continues deletes the incomplete file.
      await lease.keep(true).catch((lost: unknown) => {
        if (lost instanceof UpkeepLost) throw lost
      })
      throw error
    } finally {
      bytes.destroy()
    }
    await lease.saveMark(mark, to)
    exported = to
  }
}

function nameOf(table: ExportedTable, start: number): string {
  const day = new Date(start).toISOString().slice(0, 10)
  return `${table}/${day.slice(0, 4)}/${day.slice(5, 7)}/${table}-${day}.jsonl.gz`
}

async function idsFrom(db: Database, table: ExportedTable, from: string): Promise<string[]> {
  if (table === 'calls') {
    const rows = await db
      .selectFrom('calls')
      .select('id')
      .where('id', '>=', from)
      .orderBy('id')
      .limit(1)
      .execute()
    return rows.map(({ id }) => id)
  }
  const query = db.selectFrom('charges').select('request_id').where('request_id', '>=', from)
  const rows = await query.orderBy('request_id').limit(1).execute()
  return rows.map(({ request_id: id }) => id)
}

async function* linesOf(
  db: Database,
  table: ExportedTable,
  from: string,
  to: string,
  pause: () => Promise<void>,
): AsyncGenerator<string> {
  const page = table === 'calls' ? callLines : chargeLines
  for (let after = ''; ; ) {
    const rows = await page(db, from, after, to)
    if (rows.length > 0) yield rows.map(({ line }) => `${line}\n`).join('')
    if (rows.length < PAGE_ROWS) return
    after = rows.at(-1)?.id ?? to
    await pause()
  }
}

interface Line {
  readonly id: string
  readonly line: string
}

async function callLines(db: Database, from: string, after: string, to: string): Promise<Line[]> {
  const rows = await db
    .selectFrom('calls')
    .select(['id', 'entry'])
    .where('id', '>=', from)
    .where('id', '>', after)
    .where('id', '<', to)
    .orderBy('id')
    .limit(PAGE_ROWS)
    .execute()
  return rows.map(({ id, entry }) => ({ id, line: JSON.stringify(readEntry(entry)) }))
}

async function chargeLines(db: Database, from: string, after: string, to: string): Promise<Line[]> {
  const rows = await db
    .selectFrom('charges')
    .leftJoin('voids', 'voids.request_id', 'charges.request_id')
    .select(['charges.request_id as id', 'charges.account', 'charges.key', 'charges.amount', 'charges.cost'])
    .select(['charges.at', 'charges.basis', 'charges.usage', 'voids.at as voided'])
    .where('charges.request_id', '>=', from)
    .where('charges.request_id', '>', after)
    .where('charges.request_id', '<', to)
    .orderBy('charges.request_id')
    .limit(PAGE_ROWS)
    .execute()
  return rows.map(({ id, account, key, amount, cost, at, basis, usage, voided }) => {
    const line = {
      request_id: id,
      account,
      key,
      amount: formatAmount(amount),
      cost: cost === null ? null : formatAmount(cost),
      at: new Date(Number(at)).toISOString(),
      voided_at: voided === null ? null : new Date(Number(voided)).toISOString(),
      basis: basis === null ? null : (JSON.parse(basis) as unknown),
      usage: usage === null ? null : (JSON.parse(usage) as unknown),
    }
    return { id, line: JSON.stringify(line) }
  })
}
