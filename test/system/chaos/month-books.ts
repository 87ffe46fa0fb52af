import assert from 'node:assert/strict'
import { lineOf } from '../../../lib/core/call/index.ts'
import { formatAmount } from '../../../lib/core/catalog/index.ts'
import { readEntry } from '../../../lib/stores/sql/calls/written-entry.ts'
import { openDatabase, SqlLedger } from '../../../lib/stores/sql/index.ts'
import { type Made, type MonthCall, type monthWorld, priceOf } from './month-world.ts'

/* What must stand in the books of a month, by what its callers and its upstream saw. */

export type World = Awaited<ReturnType<typeof monthWorld>>

/** The entries of the books for one call. */
export interface Booked {
  readonly call: Pick<MonthCall, 'account' | 'key' | 'model' | 'user' | 'team'>
  readonly day: string
  readonly line: string
  readonly charged: bigint
  readonly cost: bigint
}

export const GROUPINGS: Readonly<Record<string, (booked: Booked) => string | null>> = {
  account: ({ call }) => call.account,
  key: ({ call }) => call.key,
  model: ({ call }) => call.model,
  day: ({ day }) => day,
  month: ({ day }) => day.slice(0, '2026-03'.length),
  user: ({ call }) => call.user,
  'tag:team': ({ call }) => call.team,
  line: ({ line }) => line,
}

/** Undoes charges, as a refund does: the call is as if it had not been. */
export async function refund(databaseUrl: string, made: readonly Made[], at: number): Promise<void> {
  const db = await openDatabase(databaseUrl)
  try {
    const voids = made.map(({ call, answer }) => ({
      ...{
        kind: 'void' as const,
        requestId: answer?.requestId ?? '',
        account: call.account,
        key: call.key,
        at,
      },
      ...{ amount: 0n, basis: null, draws: [], claim: null, entry: null },
    }))
    await new SqlLedger(db).settle(voids)
    // Once only.
    await new SqlLedger(db).settle(voids)
  } finally {
    await db.destroy()
  }
}

/** Reads the charges whose callers did not see an end, because their gateway was killed. */
export async function unseenCharges(databaseUrl: string, known: ReadonlySet<string>): Promise<Booked[]> {
  const db = await openDatabase(databaseUrl)
  try {
    const rows = await db
      .selectFrom('charges')
      .innerJoin('calls', 'calls.id', 'charges.request_id')
      .select(['charges.request_id', 'charges.amount', 'charges.cost', 'charges.at', 'calls.entry'])
      .execute()
    return rows
      .filter(({ request_id: id }) => !known.has(id))
      .map(({ amount, cost, at, entry: json }) => {
        const entry = readEntry(json)
        const { account, key, model, user = null, tags } = entry
        const call = { account: `${account}`, key: `${key}`, model: `${model}`, user, team: `${tags?.team}` }
        const day = new Date(Number(at)).toISOString().slice(0, '2026-03-01'.length)
        return { call, day, line: `${lineOf(entry)}`, charged: amount, cost: cost ?? 0n }
      })
  } finally {
    await db.destroy()
  }
}

export function bookedOf(world: World, { call, at }: Made): Booked {
  const bills = world.billed.get(call.number) ?? []
  assert.equal(bills.length, 1, `the upstream has answered call ${call.number} once`)
  const { line, cost } = bills[0] as (typeof bills)[0]
  return {
    call,
    day: new Date(at).toISOString().slice(0, '2026-03-01'.length),
    line,
    charged: priceOf(call),
    cost,
  }
}

/** Returns the sums of some calls by a grouping, as reports have them. */
export function sumsBy(
  booked: readonly Booked[],
  group: (booked: Booked) => string | null,
): Map<string | null, string> {
  const sums = new Map<string | null, [number, bigint, bigint]>()
  for (const each of booked) {
    const [requests, charged, cost] = sums.get(group(each)) ?? [0, 0n, 0n]
    sums.set(group(each), [requests + 1, charged + each.charged, cost + each.cost])
  }
  return new Map(
    [...sums].map(([name, [requests, ...money]]) => [name, [requests, ...money.map(formatAmount)].join()]),
  )
}
