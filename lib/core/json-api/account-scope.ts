import type { Request } from 'express'
import { callOf } from '../call/index.ts'

/** The account whose rows routes answer: that of a request, or `all`. */
export type AccountOption = 'all' | ((req: Request) => string | undefined)

/** The rule of an {@link AccountOption}. */
export const anAccount = {
  be: '"all" or a function of the request that returns an account',
  accepts: (value: unknown): boolean => value === 'all' || typeof value === 'function',
}

/**
 * Returns a function that returns the account of a request. The function throws `missing_credential` if the request has none.
 *
 * @param account defaults to the account that `authenticate` found.
 */
export function accountFrom(
  account: (req: Request) => string | undefined = (req) => callOf(req).principal?.accountId,
): (req: Request) => string {
  return function accountOf(req) {
    const own = account(req)
    if (own === undefined) throw callOf(req).refuse('missing_credential')
    return own
  }
}
