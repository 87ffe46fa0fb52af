import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import type { Period } from '../../../lib/ledger/budgets/budget.ts'
import { isTimezone, periodAt } from '../../../lib/ledger/budgets/budget-period.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

const ZONES = Intl.supportedValuesOf('timeZone')

/** Reads the calendar of a zone, without computing offsets. */
function calendarOf(timeZone: string): (at: number) => string {
  const format = new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short' })
  return (at) => format.format(at)
}

/** The name of a period, which changes when the next one begins: from the date alone. */
function nameOf(period: Exclude<Period, 'total'>, date: string): string {
  if (period === 'month') return date.slice(0, 7)
  if (period === 'day') return date
  const day = Date.parse(date)
  return new Date(day - ((new Date(day).getUTCDay() + 6) % 7) * DAY_MS).toISOString().slice(0, 10)
}

describe('the period of a budget', () => {
  it('is that of the calendar in its time zone, and the next one begins at its end', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...ZONES),
        fc.constantFrom('day' as const, 'week' as const, 'month' as const),
        fc.integer({ min: Date.UTC(1990, 0), max: Date.UTC(2045, 0) }),
        (zone, period, at) => {
          const { start, end } = periodAt(period, zone, at)
          const dateAt = calendarOf(zone)
          const name = nameOf(period, dateAt(start))
          assert.ok(start <= at && at < end)
          assert.ok(nameOf(period, dateAt(start - 1)) < name, 'just before it, it was the one before')
          assert.ok(nameOf(period, dateAt(end)) > name, 'at its end, it is the next')
          for (let step = 0; step < 12; step++) {
            const within = start + Math.floor(((end - start) * step) / 12)
            assert.equal(nameOf(period, dateAt(within)), name)
          }
          assert.equal(periodAt(period, zone, end).start, end)
          assert.equal(periodAt(period, zone, start - 1).end, start)
          assert.deepEqual(periodAt(period, zone, end - 1), { start, end })
        },
      ),
      { numRuns: 150 },
    )
  })

  it('begins at midnight, unless a change of clocks skips midnight', () => {
    const start = (zone: string, at: string, period: Period = 'day') =>
      new Date(periodAt(period, zone, Date.parse(at)).start).toISOString()
    assert.equal(start('Asia/Tokyo', '2026-11-23T15:00:00Z'), '2026-11-23T15:00:00.000Z')
    assert.equal(start('Asia/Tokyo', '2026-11-23T14:59:59.999Z'), '2026-11-22T15:00:00.000Z')
    assert.equal(start('Europe/Berlin', '2026-03-29T12:00:00Z'), '2026-03-28T23:00:00.000Z')
    assert.equal(start('Europe/Berlin', '2026-03-30T12:00:00Z'), '2026-03-29T22:00:00.000Z')
    assert.equal(start('America/New_York', '2026-11-20T12:00:00Z', 'month'), '2026-11-01T04:00:00.000Z')
    assert.equal(start('UTC', '2026-11-22T23:59:59Z', 'week'), '2026-11-16T00:00:00.000Z')
    // Midnight did not exist there on this day.
    assert.equal(start('America/Sao_Paulo', '2017-10-15T12:00:00Z'), '2017-10-15T03:00:00.000Z')
    // Neither did the day before.
    assert.equal(start('Pacific/Apia', '2011-12-30T12:00:00Z'), '2011-12-30T10:00:00.000Z')
  })

  it('of a day has 23 or 25 hours at a change of clocks', () => {
    const hours = (zone: string, at: string) => {
      const { start, end } = periodAt('day', zone, Date.parse(at))
      return (end - start) / HOUR_MS
    }
    assert.equal(hours('Europe/Berlin', '2026-03-29T12:00:00Z'), 23)
    assert.equal(hours('Europe/Berlin', '2026-10-25T12:00:00Z'), 25)
    assert.equal(hours('Australia/Lord_Howe', '2026-10-04T00:00:00Z'), 23.5)
    assert.equal(hours('Asia/Tokyo', '2026-10-25T12:00:00Z'), 24)
  })

  it('is unlimited for a total', () => {
    assert.deepEqual(periodAt('total', 'UTC', 5), { start: 0, end: Number.POSITIVE_INFINITY })
  })

  it('needs a valid time zone', () => {
    assert.deepEqual(['Europe/Berlin', 'UTC', 'Mars/Base', ''].map(isTimezone), [true, true, false, false])
  })
})
