import { hash } from 'node:crypto'
import { type RawBuilder, sql } from 'kysely'
import { FineRows, HOUR_MS, shareOfCharge, type UsageShare, UsageSums } from '../../../core/usage/index.ts'
import type { ChargeRecord } from '../../../ledger/ledger.ts'
import type { Cell } from '../driver/columns.ts'
import { RowStatement, type RowWrite } from '../driver/row-statement.ts'
import type { Database } from '../driver/tables.ts'

/** What the rows of `usage` tell apart: by hours, days or months, and with or without users and tags. */
export const GRAIN = { hour: 0, fineHour: 1, day: 2, fineDay: 3, fineMonth: 4 } as const

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

/** The columns of figures, in the order of {@link figuresOf}. */
export const FIGURES = [...Object.keys(MEMBERS), ...new UsageSums().durations.map((_, i) => `d${i}`)]

/** Those that are amounts. */
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

interface Dimensions {
  readonly digest: string
  readonly of: readonly string[]
}

interface TalliedRow extends Dimensions {
  readonly account: string
  readonly grain: number
  readonly hour: number
  readonly sums: UsageSums
}

/** Returns a charge with the usage that it is counted with, which its row must have: it may be taken away again. */
export function asCounted<Charge extends ChargeRecord>(charge: Charge): Charge {
  const { usage } = charge
  if (!usage) return charge
  const { user, tags } = fine.bounded(shareOfCharge(charge))
  return user === usage.user && tags === usage.tags ? charge : { ...charge, usage: { ...usage, user, tags } }
}

/** Adds up the usage of calls, and returns the rows to add it to. All who write usage lock its rows last, in their order. */
export class UsageTally {
  readonly #rows = new Map<string, TalliedRow>()
  readonly #known = new Map<string, Dimensions>()

  constructor(shares: Iterable<UsageShare> = []) {
    for (const share of shares) this.add(share)
  }

  /** Adds usage: without its user and tags if its account has too many of them. */
  add(share: UsageShare): void {
    this.#addTo(fine.bounded(share), 1)
  }

  /** Takes away the usage of a charge that {@link asCounted} has returned. */
  takeAway(share: UsageShare): void {
    this.#addTo(share, -1)
  }

  #addTo(share: UsageShare, sign: 1 | -1): void {
    const hour = Math.floor(share.at / HOUR_MS)
    const day = hour - (hour % 24)
    const { key, model, line, user, tags } = share
    const of = [key ?? '', model ?? '', line ?? '']
    const fine = this.#dimensions([...of, user ?? '', JSON.stringify(tags)])
    const coarse = this.#dimensions([...of, '', '{}'])
    this.#add(share, sign, GRAIN.hour, hour, coarse)
    this.#add(share, sign, GRAIN.fineHour, hour, fine)
    this.#add(share, sign, GRAIN.day, day, coarse)
    this.#add(share, sign, GRAIN.fineDay, day, fine)
    this.#add(share, sign, GRAIN.fineMonth, monthOf(hour), fine)
  }

  /** Returns the write of all that was added. */
  write(): RowWrite {
    return { statement: ADD_USAGE, rows: Array.from(this.#rows.values(), cellsOf).filter(isChange) }
  }

  /** Returns which rows {@link write} locks. */
  ids(): UsageRowId[] {
    return Array.from(this.#rows.values(), ({ account, grain, hour, digest }) => [
      account,
      grain,
      hour,
      digest,
    ])
  }

  #dimensions(of: readonly string[]): Dimensions {
    const name = JSON.stringify(of)
    let known = this.#known.get(name)
    if (!known) {
      known = { of, digest: hash('sha256', name, 'base64url').slice(0, 22) }
      this.#known.set(name, known)
    }
    return known
  }

  #add(share: UsageShare, sign: 1 | -1, grain: number, hour: number, { of, digest }: Dimensions): void {
    const account = share.account ?? ''
    const name = `${grain} ${hour} ${digest} ${account}`
    let row = this.#rows.get(name)
    if (!row) {
      row = { account, grain, hour, digest, of, sums: new UsageSums() }
      this.#rows.set(name, row)
    }
    row.sums.add(share, sign)
  }
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
  return [account, grain, hour, digest, ...of, ...figuresOf(sums)]
}

function isChange(cells: readonly Cell[]): boolean {
  return cells.slice(-FIGURES.length).some((figure) => figure !== 0 && figure !== 0n)
}

function figuresOf(sums: UsageSums): Cell[] {
  return [...COLUMNS.map(([, member]) => sums[member]), ...sums.durations]
}

/** Returns the columns that {@link joinedSum} joins to a sum of amounts: in SQLite, a sum above 63 bits fails. */
export function halvedSum(name: string): RawBuilder<unknown> {
  const [high, low] = [sql.ref(`${name}_high`), sql.ref(`${name}_low`)]
  return sql`sum(${sql.ref(name)} >> 32) as ${high}, sum(${sql.ref(name)} & 4294967295) as ${low}`
}

/** Returns the sum of a row that has the columns of {@link halvedSum}. */
export function joinedSum(row: Readonly<Record<string, unknown>>, name: string): bigint {
  return (BigInt(row[`${name}_high`] as bigint) << 32n) + BigInt(row[`${name}_low`] as bigint)
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
