import { h } from './element.ts'

const COUNT = new Intl.NumberFormat('en')

/** The text for a missing value. */
export const NOTHING = '–'

export function count(value: number | null | undefined): string {
  return value === null || value === undefined ? NOTHING : COUNT.format(value)
}

/** Formats milliseconds in a readable unit. */
export function duration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return NOTHING
  if (ms < 1000) return `${Math.round(ms)} ms`
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`
  const seconds = Math.round(ms / 1000)
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`
}

/** Formats a decimal string in US dollars with all its places, at least two. */
export function usd(amount: string | null | undefined): string {
  if (amount === null || amount === undefined) return NOTHING
  const negative = amount.startsWith('-')
  const [whole = '0', places = ''] = amount.replace('-', '').split('.')
  return `${negative ? '−' : ''}$${COUNT.format(BigInt(whole))}.${places.padEnd(2, '0')}`
}

/** Whether a text is an amount that the gateway takes, such as -12.50. */
export function isAmount(text: string): boolean {
  return /^-?\d{1,10}(\.\d{1,9})?$/.test(text)
}

const NANOS = 9

/** Parses a decimal string into nano-units, which can be added without rounding. */
export function nanosOf(amount: string): bigint {
  const [whole = '0', places = ''] = amount.replace('-', '').split('.')
  const nanos = BigInt(whole + places.padEnd(NANOS, '0').slice(0, NANOS))
  return amount.startsWith('-') ? -nanos : nanos
}

/** Shows an amount rounded to cents, or to three digits below a dollar; its title has all places. */
export function aboutUsd(amount: string | null | undefined): HTMLElement | string {
  if (amount === null || amount === undefined) return NOTHING
  const value = Number(amount)
  const about = Math.abs(value) >= 1 || value === 0 ? value.toFixed(2) : rounded(value)
  return h('span', { title: usd(amount) }, usd(about))
}

/** Rounds to three digits, never to 1e-7. */
function rounded(value: number): string {
  return Number(value.toPrecision(3)).toFixed(9).replace(/0+$/, '')
}

/** Formats an amount of a chart, with the places that its size needs. */
export function money(value: number, short: boolean): string {
  if (!short) return usd(value.toFixed(9).replace(/\.?0+$/, ''))
  return `$${value >= 1 || value === 0 ? compact(value) : rounded(value)}`
}

const COMPACT = new Intl.NumberFormat('en', { notation: 'compact' })

/** Formats a number for an axis: 12K. */
export function compact(value: number): string {
  return COMPACT.format(value)
}

const two = (value: number): string => String(value).padStart(2, '0')

/** Formats a date in the user's time zone: 2026-01-31. */
export function day(time: Date): string {
  return `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())}`
}

/** Formats a time in the user's time zone: 17:05. */
export function clock(time: Date): string {
  return `${two(time.getHours())}:${two(time.getMinutes())}`
}

/** Formats a time for an input of a form, in the user's time zone; nothing if there is none. */
export function localTime(text: string | null | undefined): string {
  const time = new Date(text ?? '')
  return Number.isNaN(time.getTime()) ? '' : `${day(time)}T${clock(time)}`
}

/** Returns an element with a time in the user's time zone; its title has the exact time. */
export function moment(iso: string | null | undefined): HTMLElement | string {
  if (!iso) return NOTHING
  const time = new Date(iso)
  return timeElement(iso, `${day(time)} ${seconds(time)}`)
}

/** Returns an element with a time for a list; times of today have no date. */
export function listedMoment(iso: string): HTMLElement {
  const time = new Date(iso)
  const today = day(time) === day(new Date())
  return timeElement(iso, today ? seconds(time) : `${day(time)} ${seconds(time)}`)
}

function seconds(time: Date): string {
  return `${clock(time)}:${two(time.getSeconds())}`
}

function timeElement(iso: string, text: string): HTMLElement {
  return h('time', { datetime: iso, title: iso }, text)
}
