import type { CallLogEntry } from '../call/index.ts'
import { NO_TAGS } from '../catalog/index.ts'
import { FairQueue } from '../fair-queue/index.ts'
import { FineRows } from './fine-rows.ts'
import type { UsageGroup, UsageQuery, UsageRow, UsageStore } from './usage-store.ts'
import {
  type Charged,
  countedAt,
  HOUR_MS,
  isOf,
  MINUTE_MS,
  MINUTES_KEPT_MS,
  NOT_KNOWN,
  shareOfCharge,
  shareOfEntry,
  type UsageDimensions,
  type UsageShare,
  UsageSums,
} from './usage-sums.ts'

/** The most rows with users and tags. An account may have this share of those that are free, so that there is room for others. */
const MAX_FINE = 100_000
const SHARE = 4
/** The most sums of minutes. Of more, the account that has the most loses those that came first. */
const MAX_MINUTES = 200_000

/** The calls of an hour that have the same dimensions: by minutes, as long as these are kept, and together later. */
interface MemoryRow {
  readonly hour: number
  readonly of: UsageDimensions
  readonly minutes: Map<number, MemoryMinute>
  /** The calls of the minutes that are not kept. */
  readonly sums: UsageSums
  /** No minute before this one is kept any more. */
  keptFrom: number
}

/** The calls of a minute of a row. */
interface MemoryMinute {
  readonly row: MemoryRow
  readonly at: number
  readonly sums: UsageSums
}

/** The part of a row that a query reads: all of it, or a minute. */
interface UsagePiece {
  readonly of: UsageDimensions
  readonly at: number
  readonly sums: UsageSums
}

/**
 * The usage of calls in this process's memory. A `MemoryLedger` has one; a `MemoryCallStore` adds the calls without a
 * charge.
 */
export class MemoryUsageStore implements UsageStore {
  readonly #rows = new Map<string, MemoryRow>()
  /** The rows that have minutes, by their hours, in the order in which these came. */
  readonly #recent = new Map<number, MemoryRow[]>()
  /** The minutes that are kept, by account: one that makes up users must not take the minutes of others. */
  readonly #minutes = new FairQueue<MemoryMinute>({ maxItems: MAX_MINUTES })
  /** The last row of each key: most calls are like the one before. */
  readonly #last = new Map<string | null, MemoryRow>()
  readonly #fine = new FineRows()
  /** How many rows have users and tags, in all and of each account. */
  #fineRows = 0
  readonly #fineRowsOf = new Map<string | null, number>()

  /** @param sign -1 takes away what was added. */
  add(charge: Charged, sign: 1 | -1 = 1): void {
    const { key, amount, cost } = charge
    const at = countedAt(charge)
    const usage = charge.usage ?? NOT_KNOWN
    let row = this.#last.get(key)
    // Tags that are equal may be another object.
    const isOfRow = row && at >= row.hour && at < row.hour + HOUR_MS && isOf(row.of, charge, usage)
    if (!row || !isOfRow) {
      const share = shareOfCharge(charge)
      row = this.#rows.get(nameOf(share, share.user, share.tags)) ?? this.#open(share)
      this.#last.set(key, row)
    }
    this.#sumsAt(row, at).add(usage, amount, cost ?? 0n, sign)
  }

  /** Adds a call that has no charge. */
  count(entry: CallLogEntry): void {
    const usage = shareOfEntry(entry)
    if (!usage) return
    const { account, key, cost, at } = usage
    this.add({ account, key, amount: 0n, cost, at, usage })
  }

  async read(query: UsageQuery): Promise<UsageRow[]> {
    const rows = new Map<string, { groups: (string | number)[]; sums: UsageSums }>()
    for (const row of this.#rows.values()) {
      for (const piece of piecesOf(row, query)) {
        const groups = query.groupBy.map((group) => groupOf(piece, group))
        const name = JSON.stringify(groups)
        const known = rows.get(name) ?? { groups, sums: new UsageSums() }
        rows.set(name, known)
        known.sums.merge(piece.sums)
      }
    }
    const { after, limit } = query
    return (
      [...rows.values()]
        .filter(({ groups }) => after === undefined || compare(groups, after) > 0)
        // Charges may have been undone.
        .filter(({ sums }) => !sums.isEmpty)
        .sort((one, other) => compare(one.groups, other.groups))
        .slice(0, limit)
    )
  }

  /** Returns what the charges of accounts and keys come to. */
  charged(): { account: string; key: string | null; charged: bigint }[] {
    return Array.from(this.#rows.values(), (row) => ({
      account: row.of.account ?? '',
      key: row.of.key,
      charged: sumsOf(row).charged,
    }))
  }

  #open(share: UsageShare): MemoryRow {
    const own = this.#fineRowsOf.get(share.account) ?? 0
    const isFull = own >= (MAX_FINE - this.#fineRows) / SHARE
    const counted = this.#fine.bounded(isFull ? { ...share, user: null, tags: NO_TAGS } : share)
    const { account, key, model, line, user, tags } = counted
    const of = { account, key, model, line, user, tags }
    const name = nameOf(counted, of.user, of.tags)
    const known = this.#rows.get(name)
    if (known) return known
    if (user !== null || tags !== NO_TAGS) {
      this.#fineRows++
      this.#fineRowsOf.set(account, own + 1)
    }
    const hour = hourOf(share.at)
    const row: MemoryRow = { hour, of, sums: new UsageSums(), minutes: new Map(), keptFrom: hour }
    this.#rows.set(name, row)
    const recent = this.#recent.get(row.hour)
    if (recent) recent.push(row)
    else this.#recent.set(row.hour, [row])
    return row
  }

  /** Returns the sums that a time of a row counts in. */
  #sumsAt(row: MemoryRow, time: number): UsageSums {
    const at = time - (time % MINUTE_MS)
    const known = row.minutes.get(at)
    if (known) return known.sums
    if (at < row.keptFrom) return row.sums
    const minute = { row, at, sums: new UsageSums() }
    row.minutes.set(at, minute)
    for (const surplus of this.#minutes.add(queueOf(row), minute)) forget(surplus)
    this.#forgetOld()
    // It may be one of those that are forgotten.
    return row.minutes.has(at) ? minute.sums : row.sums
  }

  #forgetOld(): void {
    const before = hourOf(Date.now() - MINUTES_KEPT_MS)
    for (const [hour, rows] of this.#recent) {
      if (hour >= before) return
      this.#recent.delete(hour)
      for (const row of rows) {
        row.keptFrom = hour + HOUR_MS
        for (const minute of row.minutes.values()) {
          this.#minutes.delete(queueOf(row), minute)
          forget(minute)
        }
      }
    }
  }
}

/** Counts a minute together with the others of its row that are not kept. */
function forget({ row, at, sums }: MemoryMinute): void {
  row.minutes.delete(at)
  row.sums.merge(sums)
  row.keptFrom = Math.max(row.keptFrom, at + MINUTE_MS)
}

function queueOf({ of }: MemoryRow): string {
  return of.account ?? ''
}

/** Returns the sums of the whole hour of a row. */
function sumsOf({ minutes, sums }: MemoryRow): UsageSums {
  const whole = new UsageSums()
  whole.merge(sums)
  for (const minute of minutes.values()) whole.merge(minute.sums)
  return whole
}

function hourOf(at: number): number {
  return at - (at % HOUR_MS)
}

function nameOf(
  { at, account, key, model, line }: UsageShare,
  user: string | null,
  tags: UsageShare['tags'],
): string {
  const tagged = tags === NO_TAGS ? '' : JSON.stringify(tags)
  return `${hourOf(at)}\n${account}\n${key}\n${model}\n${line}\n${user}\n${tagged}`
}

/** Yields the parts of a row that a query asks for: the minutes where it does not want the whole hour. */
function* piecesOf(row: MemoryRow, query: UsageQuery): Iterable<UsagePiece> {
  const { hour, of, minutes } = row
  const { from, to, groupBy } = query
  if (hour + HOUR_MS <= from || hour >= to || !isAsked(row, query)) return
  // The future is empty: the present hour is read as if it were over.
  const isWhole = hour >= from && (hour + HOUR_MS <= to || to > Date.now())
  if (isWhole && !groupBy.includes('minute')) yield { of, at: hour, sums: sumsOf(row) }
  else for (const { at, sums } of minutes.values()) if (at >= from && at < to) yield { of, at, sums }
}

function isAsked({ of }: MemoryRow, query: UsageQuery): boolean {
  const { account, key, model, line, user, tags = NO_TAGS } = query
  return (
    (account === undefined || (of.account ?? '') === account) &&
    (key === undefined || (of.key ?? '') === key) &&
    (model === undefined || (of.model ?? '') === model) &&
    (line === undefined || (of.line ?? '') === line) &&
    (user === undefined || (of.user ?? '') === user) &&
    Object.entries(tags).every(([name, value]) => tagOf(of, name) === value)
  )
}

function tagOf({ tags }: UsageDimensions, name: string): string {
  return Object.hasOwn(tags, name) ? (tags[name] as string) : ''
}

function groupOf({ at, of }: UsagePiece, group: UsageGroup): string | number {
  switch (group) {
    case 'minute':
      return at
    case 'hour':
      return hourOf(at)
    case 'day':
      return at - (at % (24 * HOUR_MS))
    case 'month': {
      const time = new Date(at)
      return Date.UTC(time.getUTCFullYear(), time.getUTCMonth())
    }
    case 'account':
    case 'key':
    case 'model':
    case 'line':
    case 'user':
      return of[group] ?? ''
    default:
      return tagOf(of, group.slice('tag:'.length))
  }
}

/** Compares as databases do: texts by their bytes. */
function compare(one: UsageRow['groups'], other: UsageRow['groups']): number {
  for (const [i, value] of one.entries()) {
    const against = other[i] as string | number
    const order =
      typeof value === 'string'
        ? Buffer.compare(Buffer.from(value), Buffer.from(String(against)))
        : value - Number(against)
    if (order !== 0) return order
  }
  return 0
}
