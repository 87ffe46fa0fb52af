/** Returns a time, in milliseconds since the epoch, as the API answers it. */
export function isoTime(at: number): string
export function isoTime(at: number | null): string | null
export function isoTime(at: number | null): string | null {
  return at === null ? null : new Date(at).toISOString()
}
