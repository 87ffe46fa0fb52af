import { z } from 'zod'

/** A query member that is a time or a date; milliseconds since the epoch. */
export const queryTime = z
  .union([z.iso.datetime({ offset: true }), z.iso.date()], {
    error: 'must be an ISO 8601 time such as 2026-01-31T12:00:00Z (write a + as %2B)',
  })
  .transform((text) => Date.parse(text))
