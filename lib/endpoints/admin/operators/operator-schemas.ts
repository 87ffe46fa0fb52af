import { z } from 'zod'
import { ROLES } from '../../../core/call/index.ts'
import { rotationSchema } from '../rotation-schema.ts'

/** A name that the change log shows. `X-Admin-Actor` has the same form. */
const name = z.string().regex(/^[\x20-\x7e]{1,200}$/, 'must be 1 to 200 printable ASCII characters')
const role = z.enum(ROLES)

/** The body of `POST /operators`. */
export const newOperatorSchema = z.strictObject({ name, role })

/** The body of `PATCH /operators/{id}`. */
export const operatorChangeSchema = newOperatorSchema.partial()

/** The body of `POST /operators/{id}/rotate`. */
export const operatorRotationSchema = rotationSchema('For how long the previous token stays valid.')
