/** One unit of a currency in nano-units, the integer that all money is counted in. */
export const NANOS_PER_UNIT = 1_000_000_000n

const DECIMAL = /^(-?)(\d{1,12})(?:\.(\d{1,9}))?$/

/** Whether a text is a decimal amount that {@link parseAmount} takes: at most 12 digits before and 9 behind the point. */
export function isAmount(text: string): boolean {
  return DECIMAL.test(text)
}

/**
 * Reads a decimal string as nano-units: `"0.15"` → `150000000n`.
 *
 * @throws RangeError when the text is not a decimal with at most nine places.
 */
export function parseAmount(text: string): bigint {
  const match = DECIMAL.exec(text)
  if (!match)
    throw new RangeError(`"${text}" is not a decimal amount such as "12.50" (at most 9 decimal places)`)
  const [, sign, whole = '0', fraction = ''] = match
  const nanos = BigInt(whole) * NANOS_PER_UNIT + BigInt(fraction.padEnd(9, '0'))
  return sign === '-' ? -nanos : nanos
}

/** Writes nano-units as a decimal string without trailing zeros: `123000n` → `"0.000123"`. */
export function formatAmount(nanos: bigint): string {
  return nanos >= 0n && nanos <= EXACT_AS_NUMBER ? formatNumber(Number(nanos)) : formatAny(nanos)
}

const EXACT_AS_NUMBER = BigInt(Number.MAX_SAFE_INTEGER)
const NUMBER_PER_UNIT = Number(NANOS_PER_UNIT)

/** Of an amount that a number holds exactly: several times as fast, and each call has half a dozen of them. */
function formatNumber(nanos: number): string {
  const rest = nanos % NUMBER_PER_UNIT
  const whole = (nanos - rest) / NUMBER_PER_UNIT
  if (rest === 0) return String(whole)
  // With a digit in front, leading zeros stay.
  const digits = String(NUMBER_PER_UNIT + rest)
  let end = digits.length
  while (digits.charCodeAt(end - 1) === ZERO) end--
  return `${whole}.${digits.slice(1, end)}`
}

const ZERO = '0'.charCodeAt(0)

function formatAny(nanos: bigint): string {
  const sign = nanos < 0n ? '-' : ''
  const size = nanos < 0n ? -nanos : nanos
  const fraction = (size % NANOS_PER_UNIT).toString().padStart(9, '0').replace(/0+$/, '')
  return `${sign}${size / NANOS_PER_UNIT}${fraction === '' ? '' : `.${fraction}`}`
}
