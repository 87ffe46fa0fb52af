import { clock, day } from './format.ts'

/** The size of the bins of a chart. Days and months are those of UTC, as in the books. */
export type Grain = 'minute' | 'hour' | 'day' | 'month'

/** A period of time, from a beginning to before an end. */
export interface Period {
  readonly from: Date
  readonly to: Date
  readonly grain: Grain
}

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const SIZES = { minute: MINUTE, hour: HOUR, day: DAY } as const
/** Up to how long a chosen period is shown by hours, and by days. */
const LONGEST = { hour: 8 * DAY, day: 100 * DAY }

/** The periods to choose from; `custom` has its own beginning and end. */
export const PERIODS = [
  ['15m', '15 minutes'],
  ['1h', '1 hour'],
  ['24h', '24 hours'],
  ['7d', '7 days'],
  ['30d', '30 days'],
  ['month', 'this month'],
  ['custom', 'custom'],
] as const

export type PeriodName = (typeof PERIODS)[number][0]

export function isPeriod(name: string): name is PeriodName {
  return PERIODS.some(([known]) => known === name)
}

/**
 * Returns a period that ends now.
 *
 * @param first the first day of a custom period, such as 2026-01-31.
 * @param last its last day.
 */
export function periodOf(name: PeriodName, now: number, first = '', last = ''): Period | undefined {
  const minute = Math.ceil(now / MINUTE) * MINUTE
  const hour = Math.ceil(now / HOUR) * HOUR
  const tomorrow = Math.floor(now / DAY) * DAY + DAY
  const between = (from: number, to: number, grain: Grain): Period => ({
    from: new Date(from),
    to: new Date(to),
    grain,
  })
  if (name === '15m') return between(minute - 15 * MINUTE, minute, 'minute')
  if (name === '1h') return between(minute - HOUR, minute, 'minute')
  if (name === '24h') return between(hour - DAY, hour, 'hour')
  if (name === '7d') return between(hour - 7 * DAY, hour, 'hour')
  if (name === '30d') return between(tomorrow - 30 * DAY, tomorrow, 'day')
  if (name === 'month') return between(beginOf(new Date(now), 'month').getTime(), tomorrow, 'day')
  const [from, to] = [Date.parse(first), Date.parse(last) + DAY]
  if (!(from < to)) return undefined
  const grain = to - from <= LONGEST.hour ? 'hour' : to - from <= LONGEST.day ? 'day' : 'month'
  return between(from, to, grain)
}

/** Returns the beginning of each bin of a period. */
export function binsOf({ from, to, grain }: Period): readonly Date[] {
  const bins: Date[] = []
  for (let bin = beginOf(from, grain); bin < to; bin = endOf(bin, grain)) bins.push(bin)
  return bins
}

function beginOf(time: Date, grain: Grain): Date {
  if (grain === 'month') return new Date(Date.UTC(time.getUTCFullYear(), time.getUTCMonth()))
  return new Date(Math.floor(time.getTime() / SIZES[grain]) * SIZES[grain])
}

/** Returns the end of the bin that begins at a time. */
export function endOf(bin: Date, grain: Grain): Date {
  if (grain === 'month') return new Date(Date.UTC(bin.getUTCFullYear(), bin.getUTCMonth() + 1))
  return new Date(bin.getTime() + SIZES[grain])
}

/** Formats the beginning of a bin: minutes and hours in the user's time zone, days and months of UTC. */
export function binText(bin: Date, { grain, from, to }: Period, short: boolean): string {
  if (grain === 'month') return bin.toISOString().slice(0, 7)
  if (grain === 'day') return bin.toISOString().slice(short ? 5 : 0, 10)
  if (!short) return `${day(bin)} ${clock(bin)}`
  if (to.getTime() - from.getTime() <= DAY) return clock(bin)
  return bin.getHours() === 0 ? day(bin).slice(5) : ''
}
