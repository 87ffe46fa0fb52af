import { z } from 'zod'

const WEEK_SECONDS = 604_800

/** Returns the schema of the body of a rotation, which may be absent. */
export function rotationSchema(overlap: string, defaultSeconds = 0) {
  const seconds = z.int().min(0).max(WEEK_SECONDS).default(defaultSeconds)
  return z.strictObject({ overlap_seconds: seconds.describe(overlap) }).prefault({})
}
