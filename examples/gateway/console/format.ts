import { h } from './element.ts'

const COUNT = new Intl.NumberFormat('en')

/** What stands where there is nothing to tell. */
export const NOTHING = '–'

export function count(value: number | null | undefined): string {
  return value === null || value === undefined ? NOTHING : COUNT.format(value)
}

/** Milliseconds in the unit that a person reads them in. */
export function duration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return NOTHING
  if (ms < 1000) return `${Math.round(ms)} ms`
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`
  const seconds = Math.round(ms / 1000)
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`
}

/** A decimal string in US dollars: all its places, at least two. */
export function usd(amount: string | null | undefined): string {
  if (amount === null || amount === undefined) return NOTHING
  const negative = amount.startsWith('-')
  const [whole = '0', places = ''] = amount.replace('-', '').split('.')
  return `${negative ? '−' : ''}$${COUNT.format(BigInt(whole))}.${places.padEnd(2, '0')}`
}

const NANOS = 9

/** A decimal string as a whole number of nano-units, to be added up without rounding. */
export function nanosOf(amount: string): bigint {
  const [whole = '0', places = ''] = amount.replace('-', '').split('.')
  const nanos = BigInt(whole + places.padEnd(NANOS, '0').slice(0, NANOS))
  return amount.startsWith('-') ? -nanos : nanos
}

/** Nano-units as the decimal string that they are. */
export function amountOf(nanos: bigint): string {
  const digits = String(nanos < 0n ? -nanos : nanos).padStart(NANOS + 1, '0')
  const places = digits.slice(-NANOS).replace(/0+$/, '')
  return `${nanos < 0n ? '-' : ''}${digits.slice(0, -NANOS)}${places === '' ? '' : `.${places}`}`
}

const two = (value: number): string => String(value).padStart(2, '0')

/** In the reader's time zone: 2026-01-31. */
export function day(time: Date): string {
  return `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())}`
}

/** In the reader's time zone: 17:05. */
export function clock(time: Date): string {
  return `${two(time.getHours())}:${two(time.getMinutes())}`
}

/** A moment, in the reader's time zone; the exact one on hovering. */
export function moment(iso: string | null | undefined): HTMLElement | string {
  if (!iso) return NOTHING
  const time = new Date(iso)
  return timeElement(iso, `${day(time)} ${seconds(time)}`)
}

/** A moment among others in a list: today's without the day. */
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
