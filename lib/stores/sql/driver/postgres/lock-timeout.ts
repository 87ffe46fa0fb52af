/** Whether Postgres gave up because somebody else had locked a row for longer than `lockTimeoutMs`, or as part of a deadlock. */
export function isLocked(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code
  return code === '55P03' || code === '40P01'
}
