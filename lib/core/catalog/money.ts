/** One unit of a currency in nano-units. All amounts are integers of nano-units. */
export const NANOS_PER_UNIT = 1_000_000_000n

const DECIMAL = /^(-?)(\d{1,12})(?:\.(\d{1,9}))?$/

/** Whether {@link parseAmount} accepts a text: at most 12 digits before the decimal point and 9 behind it. */
export function isAmount(text: string): boolean {
  return DECIMAL.test(text)
}

/**
 * Parses a decimal string into nano-units: `"0.15"` → `150000000n`.
 *
 * @throws RangeError if the text is not a decimal amount with at most 9 decimal places.
 */
export function parseAmount(text: string): bigint {
  const match = DECIMAL.exec(text)
  if (!match)
    throw new RangeError(`"${text}" is not a decimal amount such as "12.50" (at most 9 decimal places)`)
  const [, sign, whole = '0', fraction = ''] = match
  const nanos = BigInt(whole) * NANOS_PER_UNIT + BigInt(fraction.padEnd(9, '0'))
  return sign === '-' ? -nanos : nanos
}

/** Formats nano-units as a decimal string without trailing zeros: `123000n` → `"0.000123"`. */
export function formatAmount(nanos: bigint): string {
  if (nanos < 0n || nanos > MAX_SAFE_NANOS) return formatBigInt(nanos)
  // Most amounts are what a number holds exactly. It is several times as fast, and each call formats several amounts.
  const number = Number(nanos)
  const rest = number % NUMBER_PER_UNIT
  const whole = (number - rest) / NUMBER_PER_UNIT
  if (rest === 0) return String(whole)
  // The unit adds a leading 1, which preserves the leading zeros.
  const digits = String(NUMBER_PER_UNIT + rest)
  let end = digits.length
  while (digits.charCodeAt(end - 1) === ZERO) end--
  return `${whole}.${digits.slice(1, end)}`
}

const MAX_SAFE_NANOS = BigInt(Number.MAX_SAFE_INTEGER)
const NUMBER_PER_UNIT = Number(NANOS_PER_UNIT)
const ZERO = '0'.charCodeAt(0)

function formatBigInt(nanos: bigint): string {
  const sign = nanos < 0n ? '-' : ''
  const absolute = nanos < 0n ? -nanos : nanos
  const fraction = (absolute % NANOS_PER_UNIT).toString().padStart(9, '0').replace(/0+$/, '')
  return `${sign}${absolute / NANOS_PER_UNIT}${fraction === '' ? '' : `.${fraction}`}`
}
