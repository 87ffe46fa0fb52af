/**
 * Returns a token count that an upstream reports: a safe integer that is not negative. Anything else, such as a
 * fraction or a string, counts as not reported.
 *
 * @example tokenCount(12) // 12
 * @example tokenCount('12') // undefined
 */
export function tokenCount(value: unknown): number | undefined {
  return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : undefined
}
