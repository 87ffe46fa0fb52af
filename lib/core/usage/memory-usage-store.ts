import type { CallLogEntry } from '../call/index.ts'
import { NO_TAGS } from '../catalog/index.ts'
import { FineRows } from './fine-rows.ts'
import type { UsageGroup, UsageQuery, UsageRow, UsageStore } from './usage-store.ts'
import {
  type Charged,
  HOUR_MS,
  type HourlyUsage,
  isOf,
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

/**
 * The usage of calls in this process's memory. A `MemoryLedger` has one; a `MemoryCallStore` adds the calls without a
 * charge.
 */
export class MemoryUsageStore implements UsageStore {
  readonly #rows = new Map<string, HourlyUsage>()
  /** The last row of each key: most calls are like the one before. */
  readonly #last = new Map<string | null, HourlyUsage>()
  readonly #fine = new FineRows()
  /** How many rows have users and tags, in all and of each account. */
  #fineRows = 0
  readonly #fineRowsOf = new Map<string | null, number>()

  /** @param sign -1 takes away what was added. */
  add(charge: Charged, sign: 1 | -1 = 1): void {
    const { key, amount, cost, at } = charge
    const usage = charge.usage ?? NOT_KNOWN
    let row = this.#last.get(key)
    // Tags that are equal may be another object.
    const isOfRow = row && at >= row.hour && at < row.hour + HOUR_MS && isOf(row.of, charge, usage)
    if (!row || !isOfRow) {
      const share = shareOfCharge(charge)
      row = this.#rows.get(nameOf(share, share.user, share.tags)) ?? this.#open(share)
      this.#last.set(key, row)
    }
    row.sums.add(usage, amount, cost ?? 0n, sign)
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
      if (!isWithin(row, query)) continue
      const groups = query.groupBy.map((group) => groupOf(row, group))
      const name = JSON.stringify(groups)
      const known = rows.get(name) ?? { groups, sums: new UsageSums() }
      rows.set(name, known)
      known.sums.merge(row.sums)
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
    return Array.from(this.#rows.values(), ({ of: { account, key }, sums }) => ({
      account: account ?? '',
      key,
      charged: sums.charged,
    }))
  }

  #open(share: UsageShare): HourlyUsage {
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
    const row = { hour: hourOf(share.at), of, sums: new UsageSums() }
    this.#rows.set(name, row)
    return row
  }
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

function isWithin({ hour, of }: HourlyUsage, query: UsageQuery): boolean {
  const { from, to, account, key, model, line, user, tags = NO_TAGS } = query
  return (
    hour >= from &&
    hour < to &&
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

function groupOf({ hour, of }: HourlyUsage, group: UsageGroup): string | number {
  switch (group) {
    case 'hour':
      return hour
    case 'day':
      return hour - (hour % (24 * HOUR_MS))
    case 'month': {
      const time = new Date(hour)
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
