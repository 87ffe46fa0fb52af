import { randomBytes } from 'node:crypto'
import type { Request } from 'express'
import { z } from 'zod'
import { isAmount, parseAmount } from '../core/catalog/index.ts'
import { AMOUNT_FORM, MAX_AMOUNT } from '../core/catalog/money.ts'
import type { ChangeOrigin } from '../core/change-log/index.ts'
import { WELL_FORMED } from '../core/json/index.ts'

/** The parts that the handlers of all resources work with. */
export interface ResourceParts {
  /** Returns the origin of the change that a request makes. */
  readonly origin: (req: Request) => ChangeOrigin
}

/** Returns an id for a new object. */
export function newId(prefix: string): string {
  return `${prefix}_${randomBytes(12).toString('hex')}`
}

/** An id that operators choose. */
export const idMember = z
  .string()
  .max(200)
  .regex(/^[\x21-\x7e]+$/, 'must be printable ASCII without spaces')

/** A text that all databases store unchanged. */
export const textMember = z
  .string()
  .min(1)
  .max(200)
  .refine(...WELL_FORMED)

/** A limit; null means unlimited. */
export const limitMember = z.int().min(1).nullable()

const amountError = `must be ${AMOUNT_FORM}`

/** An amount as a decimal string, parsed into nano-units. */
export const amountMember = z
  .string({ error: amountError })
  .refine(isAmount, { error: amountError, abort: true })
  .transform(parseAmount)
  .refine((nanos) => nanos <= MAX_AMOUNT && nanos >= -MAX_AMOUNT, { error: 'must be below 9223372036' })

export const positiveAmountMember = amountMember.refine((nanos) => nanos > 0n, { error: 'must be positive' })

const WEEK_SECONDS = 604_800

/** Returns the schema of the body of a rotation, which may be absent. */
export function rotationOf(overlap: string, defaultSeconds = 0) {
  const seconds = z.int().min(0).max(WEEK_SECONDS).default(defaultSeconds)
  return z.strictObject({ overlap_seconds: seconds.describe(overlap) }).prefault({})
}

/** Names in an answer, or null for all. */
export const names = z.array(z.string()).nullable()

/** The warnings of an answer, about names in the settings that do not exist. */
export const warnings = z
  .array(z.string())
  .describe('The models, lines and regions of the settings that do not exist.')

/** Returns the schema of the answer to a deletion. */
export function deletedOf<Kind extends string>(kind: Kind) {
  return z.strictObject({ id: z.string(), object: z.literal(kind), deleted: z.literal(true) })
}

/** Returns the answer to a deletion. */
export function deletion<Kind extends string>(kind: Kind, id: string) {
  return { id, object: kind, deleted: true } as const
}
