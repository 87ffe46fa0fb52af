import { z } from 'zod'

/** Returns a time, in milliseconds since the epoch, as the API answers it. */
export function isoTime(at: number): string
export function isoTime(at: number | null): string | null
export function isoTime(at: number | null): string | null {
  return at === null ? null : new Date(at).toISOString()
}

/** A time in an answer. */
export const time = z.iso.datetime()

/** An amount of money in an answer, as `formatAmount` writes it. */
export const amount = z.string().describe('A decimal string.')

/** null means unlimited. */
const limit = z.int().nullable()

/** The limits of a key in an answer. */
export const keyLimits = z.object({ rpm: limit, tpm: limit })

/** The limits of an account in an answer. */
export const accountLimits = keyLimits.extend({ concurrency: limit })
