/**
 * A count of tokens as an upstream reports it: a whole number that is exact and not negative. Anything else, a fraction
 * or a string included, says nothing that a charge could rest on, and counts as not reported.
 *
 * @example tokenCount(12) // 12
 * @example tokenCount('12') // undefined
 */
export function tokenCount(value: unknown): number | undefined {
  return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : undefined
}
