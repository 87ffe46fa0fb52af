import type { Period } from './budget.ts'

/** A period of a budget, in milliseconds since the epoch: `start` belongs to it, `end` to the next. */
export interface PeriodBounds {
  readonly start: number
  /** Infinity if it never ends. */
  readonly end: number
}

/** A day of the calendar, as midnight UTC. */
type Day = number

const DAY_MS = 86_400_000
/** No zone is further than this from UTC. */
const FARTHEST_MS = 16 * 3_600_000
const MONDAY = 1

/**
 * Returns the period that a moment is in. A day begins at the first moment whose local date has been reached: at midnight,
 * or where the clocks skip midnight, when they go on.
 *
 * @throws RangeError if there is no such time zone.
 */
export function periodAt(period: Period, timezone: string, at: number): PeriodBounds {
  if (period === 'total') return { start: 0, end: Number.POSITIVE_INFINITY }
  const zone = zoneOf(timezone)
  let day = firstDay(period, localDay(zone, at))
  let next = nextDay(period, day)
  // Where clocks are set back over midnight, the date of yesterday comes again.
  for (let end = startOf(zone, next); end <= at; end = startOf(zone, next)) {
    day = next
    next = nextDay(period, day)
  }
  return { start: startOf(zone, day), end: startOf(zone, next) }
}

export function isTimezone(name: string): boolean {
  try {
    zoneOf(name)
    return true
  } catch {
    return false
  }
}

function firstDay(period: Period, day: Day): Day {
  const date = new Date(day)
  if (period === 'week') return day - ((date.getUTCDay() - MONDAY + 7) % 7) * DAY_MS
  return period === 'month' ? Date.UTC(date.getUTCFullYear(), date.getUTCMonth()) : day
}

function nextDay(period: Period, day: Day): Day {
  if (period !== 'month') return day + (period === 'week' ? 7 : 1) * DAY_MS
  const date = new Date(day)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1)
}

function localDay(zone: Intl.DateTimeFormat, at: number): Day {
  const local = at + offsetAt(zone, at)
  return local - (((local % DAY_MS) + DAY_MS) % DAY_MS)
}

/** Returns the first moment whose local date is a day or a later one. */
function startOf(zone: Intl.DateTimeFormat, day: Day): number {
  let before = day - FARTHEST_MS
  let after = day + FARTHEST_MS
  const first = offsetAt(zone, before)
  const last = offsetAt(zone, after)
  if (first === last) return day - first
  // The clocks are set in between: finds when.
  while (after - before > 1) {
    const middle = Math.floor((before + after) / 2)
    if (offsetAt(zone, middle) === first) before = middle
    else after = middle
  }
  return day - first < after ? day - first : Math.max(after, day - last)
}

/** Returns by how much local time is ahead of UTC, in milliseconds. */
function offsetAt(zone: Intl.DateTimeFormat, at: number): number {
  const second = Math.floor(at / 1000) * 1000
  const [month, day, year, hour, minute, seconds] = zone.format(second).match(/\d+/g) as string[]
  return (
    Date.UTC(Number(year), Number(month) - 1, Number(day), Number(hour), Number(minute), Number(seconds)) -
    second
  )
}

const zones = new Map<string, Intl.DateTimeFormat>()

function zoneOf(timezone: string): Intl.DateTimeFormat {
  let zone = zones.get(timezone)
  if (!zone) {
    zone = new Intl.DateTimeFormat('en-US', {
      timeZone: timezone,
      hourCycle: 'h23',
      year: 'numeric',
      ...{ month: 'numeric', day: 'numeric', hour: 'numeric', minute: 'numeric', second: 'numeric' },
    })
    zones.set(timezone, zone)
  }
  return zone
}
