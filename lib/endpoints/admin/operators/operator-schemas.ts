import { z } from 'zod'
import { ROLES } from '../../../core/call/index.ts'

/** A name that the change log shows. `X-Admin-Actor` has the same form. */
const name = z.string().regex(/^[\x20-\x7e]{1,200}$/, 'must be 1 to 200 printable ASCII characters')
const role = z.enum(ROLES)

/** The body of `POST /operators`. */
export const newOperatorSchema = z.strictObject({ name, role })

/** The body of `PATCH /operators/{id}`. */
export const operatorChangeSchema = newOperatorSchema.partial()

const WEEK_SECONDS = 604_800

/** The body of `POST /operators/{id}/rotate`. */
export const operatorRotationSchema = z
  .strictObject({
    overlap_seconds: z
      .int()
      .min(0)
      .max(WEEK_SECONDS)
      .default(0)
      .describe('For how long the previous token stays valid.'),
  })
  .default({ overlap_seconds: 0 })
