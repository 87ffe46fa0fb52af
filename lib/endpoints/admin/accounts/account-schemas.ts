import { z } from 'zod'
import { isAmount, parseAmount } from '../../../core/catalog/index.ts'
import { MAX_AMOUNT } from '../../../core/catalog/money.ts'
import { WELL_FORMED } from '../../../core/json/index.ts'
import { ACCOUNT_STATUSES } from './account-store.ts'

export const id = z
  .string()
  .max(200)
  .regex(/^[\x21-\x7e]+$/, 'must be printable ASCII without spaces')

/** A text that all databases store unchanged. */
const text = z
  .string()
  .min(1)
  .max(200)
  .refine(...WELL_FORMED)

/** A limit; null means unlimited. */
export const limit = z.int().min(1).nullable()
const regions = z.array(id).nullable()
const limits = z.strictObject({ rpm: limit, tpm: limit, concurrency: limit }).partial()

const settings = {
  name: text.nullable(),
  prepaid: z.boolean(),
  limits,
  regions,
  line_regions: regions,
}

/** The body of `POST /accounts`. */
export const newAccountSchema = z.strictObject({
  id,
  name: settings.name.default(null),
  prepaid: settings.prepaid.default(true),
  limits: settings.limits.prefault({}),
  regions: settings.regions.default(null),
  line_regions: settings.line_regions.default(null),
})

/** The body of `PATCH /accounts/{id}`. */
export const accountChangeSchema = z.strictObject({ ...settings, status: z.enum(ACCOUNT_STATUSES) }).partial()

const amountError = 'must be a decimal string such as "12.50", with at most 9 places'

/** An amount as a decimal string, parsed into nano-units. */
const amount = z
  .string({ error: amountError })
  .refine(isAmount, { error: amountError, abort: true })
  .transform(parseAmount)
  .refine((nanos) => nanos <= MAX_AMOUNT && nanos >= -MAX_AMOUNT, { error: 'must be below 9223372036' })

export const positiveAmount = amount.refine((nanos) => nanos > 0n, { error: 'must be positive' })

/** The body of `POST /accounts/{id}/deposits`. */
export const depositSchema = z.strictObject({
  amount: positiveAmount,
  reference: text,
})

/** The body of `POST /accounts/{id}/adjustments`. */
export const adjustmentSchema = z.strictObject({
  amount: amount.refine((nanos) => nanos !== 0n, { error: 'must not be 0' }),
  reference: text,
  reason: text,
})
