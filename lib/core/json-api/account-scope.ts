import type { Request } from 'express'
import { callOf } from '../call/index.ts'

/** Whose rows routes answer: those of the account of a request, or of all. */
export type AccountOption = 'all' | ((req: Request) => string | undefined)

/** The rule of an {@link AccountOption}. */
export const anAccount = {
  be: '"all" or a function of the request that returns an account',
  accepts: (value: unknown): boolean => value === 'all' || typeof value === 'function',
}

/**
 * Returns a function that returns the filter for the account of a request. It is empty, for all accounts, only with `'all'`.
 * The function throws `missing_credential` if the request has no account.
 */
export function accountScope(
  account: AccountOption = (req) => callOf(req).principal?.accountId,
): (req: Request) => { account?: string } {
  return function scopeOf(req) {
    if (account === 'all') return {}
    const own = account(req)
    if (own === undefined) throw callOf(req).refuse('missing_credential')
    return { account: own }
  }
}
