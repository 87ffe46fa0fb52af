import { type Call, type CallsSource, listCalls } from './calls.ts'
import { nanosOf } from './format.ts'

const PAGE = 100
/** Limits how many calls the page of an account reads. */
export const MAX_CALLS = 1000

/** A period of time, divided into bins of one size. */
export interface Period {
  readonly name: string
  readonly text: string
  readonly binMs: number
  readonly bins: number
}

const MINUTE = 60_000
const HOUR = 60 * MINUTE

export const PERIODS: readonly Period[] = [
  { name: '1h', text: 'last hour', binMs: 2 * MINUTE, bins: 30 },
  { name: '24h', text: 'last 24 hours', binMs: HOUR, bins: 24 },
  { name: '7d', text: 'last 7 days', binMs: 6 * HOUR, bins: 28 },
  { name: '30d', text: 'last 30 days', binMs: 24 * HOUR, bins: 30 },
]

/** The calls of one bin. */
export interface Bin {
  readonly from: Date
  completed: number
  failed: number
  /** Nano-units. */
  spent: bigint
}

/** The activity of an account in a period, as far as its calls were read. */
export interface Activity {
  readonly bins: readonly Bin[]
  readonly calls: number
  readonly spent: bigint
  /** The most frequent first. */
  readonly errors: readonly (readonly [code: string, calls: number])[]
  /** Whether there are older calls in the period that were not read. */
  readonly truncated: boolean
}

/** Reads an account's calls of a period, newest first and at most {@link MAX_CALLS}, and adds them up. */
export async function readActivity(
  source: CallsSource,
  account: string | undefined,
  period: Period,
  now: number,
): Promise<Activity> {
  const end = Math.ceil(now / period.binMs) * period.binMs
  const begin = end - period.bins * period.binMs
  const calls: Call[] = []
  let cursor: string | undefined
  let truncated = false
  for (;;) {
    const query = { account, from: new Date(begin).toISOString(), limit: PAGE, cursor }
    const { data, next_cursor: next } = await listCalls(source, query)
    calls.push(...data)
    truncated = next !== null
    if (next === null || calls.length >= MAX_CALLS) break
    cursor = next
  }
  return { ...sumsOf(calls, period, begin), truncated }
}

function sumsOf(
  calls: readonly Call[],
  { binMs, bins: size }: Period,
  begin: number,
): Omit<Activity, 'truncated'> {
  const bins: Bin[] = Array.from({ length: size }, (_, i) => ({
    from: new Date(begin + i * binMs),
    completed: 0,
    failed: 0,
    spent: 0n,
  }))
  const errors = new Map<string, number>()
  let spent = 0n
  for (const call of calls) {
    const charged = nanosOf(call.billing?.charged ?? '0')
    spent += charged
    const code = call.error_code
    if (code !== null) errors.set(code, (errors.get(code) ?? 0) + 1)
    const bin = bins[Math.floor((Date.parse(call.created_at) - begin) / binMs)]
    if (!bin) continue
    if (code === null) bin.completed++
    else bin.failed++
    bin.spent += charged
  }
  return { bins, calls: calls.length, spent, errors: [...errors].sort(([, one], [, other]) => other - one) }
}
