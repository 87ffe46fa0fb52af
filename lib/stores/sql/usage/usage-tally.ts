import { hash } from 'node:crypto'
import {
  countedAt,
  FineRows,
  HOUR_MS,
  isOf,
  MINUTE_MS,
  NOT_KNOWN,
  type UsageDimensions,
  type UsageShare,
  UsageSums,
} from '../../../core/usage/index.ts'
import type { ChargeRecord } from '../../../ledger/ledger.ts'
import type { Cell } from '../driver/columns.ts'
import { joinedSum } from '../driver/halved-sum.ts'
import { RowStatement, type RowWrite } from '../driver/row-statement.ts'
import type { Database } from '../driver/tables.ts'

/** The grains of the rows of `usage`: by hours, days or months, with or without users and tags, and by minutes, with them. */
export const GRAIN = { hour: 0, fineHour: 1, day: 2, fineDay: 3, fineMonth: 4, fineMinute: 5 } as const

const HOUR_MINUTES = HOUR_MS / MINUTE_MS

/** The member of {@link UsageSums} that each column has, beside the ranges of durations. */
const MEMBERS = {
  requests: 'requests',
  refused: 'refused',
  failed: 'failed',
  input_tokens: 'inputTokens',
  cached_input_tokens: 'cachedInputTokens',
  output_tokens: 'outputTokens',
  images: 'images',
  milliseconds: 'milliseconds',
  charged: 'charged',
  cost: 'cost',
} as const satisfies Readonly<Record<string, keyof UsageSums>>

const COLUMNS = Object.entries(MEMBERS)
const SUMS = Object.values(MEMBERS)

/** The columns of figures, in the order of {@link cellsOf}. */
export const FIGURES = [...Object.keys(MEMBERS), ...new UsageSums().durations.map((_, i) => `d${i}`)]

/** The sums that are amounts. */
export const AMOUNTS: readonly string[] = ['charged', 'cost']

const ADD_USAGE = RowStatement.insert(
  'usage',
  {
    account: 'text',
    grain: 'bigint',
    hour: 'bigint',
    digest: 'text',
    key: 'text',
    model: 'text',
    line: 'text',
    user_id: 'text',
    tags: 'text',
    ...Object.fromEntries(FIGURES.map((name) => [name, 'bigint' as const])),
  },
  `on conflict (account, grain, hour, digest) do update set
    ${FIGURES.map((name) => `${name} = usage.${name} + excluded.${name}`)}`,
  { order: ['account', 'grain', 'hour', 'digest'] },
)

/** Of all that this process writes, into any database. */
const fine = new FineRows()

/** The primary key of a row. */
export type UsageRowId = readonly [account: string, grain: number, hour: number, digest: string]

/** The sums of the calls of a minute that have the same dimensions. */
interface MinuteUsage {
  /** Since the epoch. */
  readonly minute: number
  readonly of: UsageDimensions
  readonly sums: UsageSums
}

interface TalliedRow {
  readonly account: string
  readonly grain: number
  /** In minutes for the grain of minutes. */
  readonly hour: number
  readonly digest: string
  readonly of: readonly string[]
  readonly sums: UsageSums
}

/** Returns a charge with the usage that it is counted with, which its row must have: it may be taken away again. */
export function asCounted<Charge extends ChargeRecord>(charge: Charge): Charge {
  const { account, key, usage } = charge
  if (!usage) return charge
  const { line } = usage
  const of = { account, key, model: usage.model, line, user: usage.user, tags: usage.tags }
  const { model, user, tags } = fine.bounded({ ...of, at: countedAt(charge) })
  if (model === usage.model && user === usage.user && tags === usage.tags) return charge
  // The basis of a charge of a pool is an accessor, which is not copied with the others.
  return { ...charge, basis: charge.basis, usage: { ...usage, model, user, tags } }
}

/** Adds up the usage of calls, and returns the rows to add it to. All who write usage lock its rows last, in their order. */
export class UsageTally {
  readonly #counted = new Map<string, MinuteUsage>()
  /** Most calls of a batch are like the one before. */
  #last: MinuteUsage | undefined

  constructor(shares: Iterable<UsageShare> = []) {
    for (const share of shares) this.add(share)
  }

  /** Adds usage: without its model, or its user and tags, if its account has too many of them. */
  add(share: UsageShare): void {
    const of = fine.bounded(share)
    this.#sumsOf(of, of, share.at).add(share, share.charged, share.cost)
  }

  /** Adds the usage of a charge that {@link asCounted} has returned. */
  addCharge(charge: ChargeRecord): void {
    const usage = charge.usage ?? NOT_KNOWN
    this.#sumsOf(charge, usage, countedAt(charge)).add(usage, charge.amount, charge.cost ?? 0n)
  }

  /** Takes away what {@link addCharge} has added. */
  takeAway(share: UsageShare): void {
    this.#sumsOf(share, share, share.at).add(share, share.charged, share.cost, -1)
  }

  write(): RowWrite {
    const changes = this.#rows().filter(({ sums }) => !sums.isEmpty)
    return { statement: ADD_USAGE, rows: changes.map(cellsOf) }
  }

  /** Returns which rows {@link write} locks. */
  ids(): UsageRowId[] {
    return this.#rows().map(({ account, grain, hour, digest }) => [account, grain, hour, digest])
  }

  /** Returns the sums that a call belongs to. */
  #sumsOf(
    { account, key }: Pick<UsageDimensions, 'account' | 'key'>,
    usage: Omit<UsageDimensions, 'account' | 'key'>,
    at: number,
  ): UsageSums {
    const minute = Math.floor(at / MINUTE_MS)
    if (this.#last?.minute === minute && isOf(this.#last.of, { account, key }, usage)) return this.#last.sums
    const { model, line, user, tags } = usage
    const name = JSON.stringify([account, minute, key, model, line, user, tags])
    let counted = this.#counted.get(name)
    if (!counted) {
      counted = { minute, of: { account, key, model, line, user, tags }, sums: new UsageSums() }
      this.#counted.set(name, counted)
    }
    this.#last = counted
    return counted.sums
  }

  #rows(): TalliedRow[] {
    const rows = new Map<string, TalliedRow>()
    for (const { minute, of, sums } of this.#counted.values()) {
      const add = (grain: number, begin: number, { names, digest }: Named): void => {
        const account = of.account ?? ''
        const name = `${grain} ${begin} ${digest} ${account}`
        const row = rows.get(name) ?? {
          account,
          grain,
          hour: begin,
          digest,
          of: names,
          sums: new UsageSums(),
        }
        rows.set(name, row)
        row.sums.merge(sums)
      }
      const hour = Math.floor(minute / HOUR_MINUTES)
      const day = hour - (hour % 24)
      const { key, model, line, user, tags } = of
      const all = [key ?? '', model ?? '', line ?? '']
      const coarse = named([...all, '', '{}'])
      const fine = named([...all, user ?? '', JSON.stringify(tags)])
      add(GRAIN.hour, hour, coarse)
      add(GRAIN.fineHour, hour, fine)
      add(GRAIN.day, day, coarse)
      add(GRAIN.fineDay, day, fine)
      add(GRAIN.fineMonth, monthOf(hour), fine)
      add(GRAIN.fineMinute, minute, fine)
    }
    return [...rows.values()]
  }
}

interface Named {
  readonly names: readonly string[]
  readonly digest: string
}

function named(names: readonly string[]): Named {
  return { names, digest: hash('sha256', JSON.stringify(names), 'base64url').slice(0, 22) }
}

/** Returns the beginning of the month of an hour, both in hours since the epoch. */
export function monthOf(hour: number): number {
  const date = new Date(hour * HOUR_MS)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth()) / HOUR_MS
}

/** Adds usage, as the last writes of a transaction. */
export async function addUsage(trx: Database, usage: UsageTally): Promise<void> {
  const { statement, rows } = usage.write()
  await statement.run(trx, rows)
}

function cellsOf({ account, grain, hour, digest, of, sums }: TalliedRow): Cell[] {
  const cells: Cell[] = [account, grain, hour, digest, ...of]
  for (const member of SUMS) cells.push(sums[member])
  for (const count of sums.durations) cells.push(count)
  return cells
}

/** Returns the sums of a row that has the columns of {@link FIGURES}, and {@link AMOUNTS} in halves. */
export function sumsOf(row: Readonly<Record<string, bigint | number>>): UsageSums {
  const sums = new UsageSums()
  for (const [column, member] of COLUMNS) {
    if (member === 'charged' || member === 'cost') sums[member] = joinedSum(row, column)
    else sums[member] = Number(row[column] ?? 0)
  }
  for (const i of sums.durations.keys()) sums.durations[i] = Number(row[`d${i}`] ?? 0)
  return sums
}
