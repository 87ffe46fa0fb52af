import { z } from 'zod'
import { isAddressOrBlock } from '../../../core/catalog/index.ts'
import { keyMembers } from '../../../core/config/index.ts'
import { id, limit } from '../accounts/account-schemas.ts'
import { rotationSchema } from '../rotation-schema.ts'

const YEAR_10000 = 253_402_300_800_000

const settings = {
  name: keyMembers.name.nullable(),
  note: keyMembers.note.nullable(),
  tags: keyMembers.tags.describe('Tags that every call with the key has. Replaces all of them.'),
  enabled: keyMembers.enabled,
  expires_at: keyMembers.expiresAt
    .refine((text) => Date.parse(text) < YEAR_10000, { error: 'must be before the year 10000' })
    .nullable()
    .describe('ISO 8601; null: never.'),
  quota: keyMembers.quota
    .nullable()
    .describe('What the key may spend in all, as a decimal string; null: no quota.'),
  allow_ips: z
    .array(z.string().refine(isAddressOrBlock, { error: 'must be an address or a CIDR block' }))
    .nullable()
    .describe('Addresses and CIDR blocks; null: all.'),
  allow_models: keyMembers.allowModels.nullable().describe('Model ids, * is a wildcard; null: all.'),
  limits: z.strictObject({ rpm: limit, tpm: limit }).partial(),
}

/** The body of `POST /keys`. */
export const newKeySchema = z.strictObject({
  id: id.optional().describe('Absent: a new id is generated.'),
  account: id,
  ...z.strictObject(settings).partial().shape,
})

/** The body of `POST /keys/{id}/rotate`. */
export const keyRotationSchema = rotationSchema(
  'How long the previous secret is still valid. An earlier one becomes invalid at once.',
)

/** The body of `PATCH /keys/{id}`. Absent members, also those of `limits`, stay as they are. */
export const keyChangeSchema = z.strictObject(settings).partial()
