import type { Router } from 'express'
import { z } from 'zod'
import { callOf, type Principal } from '../../core/call/index.ts'
import {
  type AnswerOf,
  accountLimits,
  amount,
  answersWith,
  endpointFor,
  keyLimits,
  newRouter,
  serveEndpoints,
} from '../../core/json-api/index.ts'
import { anObjectWith, checkOptions, required } from '../../core/options/index.ts'
import { boundedStore } from '../../core/store-guard/index.ts'
import type { WalletState } from '../../ledger/index.ts'
import { describeFunds } from '../../ledger/wallet.ts'

/** The sums of an account's wallet, in nano-units. */
export type OwnFunds = Pick<WalletState, 'limited' | 'funds' | 'spent' | 'leased'>

/** The operation of a ledger that {@link accountRoutes} needs. `MemoryLedger` and `SqlLedger` have it. */
export interface FundsView {
  /** Returns wallets. An unknown one is left out. */
  wallets(ids: readonly `account:${string}`[]): Promise<readonly OwnFunds[]>
}

/** The sums of an account in answers. */
export const funds = { deposited: amount, spent: amount, balance: amount, leased: amount, available: amount }

const ownAccount = z.strictObject({
  id: z.string(),
  object: z.literal('account'),
  prepaid: z.boolean(),
  ...funds,
  limits: accountLimits,
  key: z.strictObject({ id: z.string(), limits: keyLimits }),
})
export type OwnAccountAnswer = AnswerOf<typeof ownAccount>

interface AccountParts {
  readonly ledger: FundsView
  readonly principal: Principal
}

const endpoint = endpointFor<AccountParts>()

export const ACCOUNT_ENDPOINTS = [
  endpoint({
    id: 'getOwnAccount',
    method: 'get',
    path: '/account',
    summary: 'Balance and limits of the account of this key',
    answers: answersWith('OwnAccount', ownAccount),
    async handle(_request, { ledger, principal }) {
      const { accountId, keyId } = principal
      const [wallet] = await ledger.wallets([`account:${accountId}`])
      return {
        id: accountId,
        object: 'account' as const,
        prepaid: wallet?.limited ?? false,
        ...describeFunds(wallet),
        limits: principal.accountLimits,
        key: { id: keyId, limits: principal.keyLimits },
      }
    },
  }),
]

/** Options of {@link accountRoutes}. */
export interface AccountRoutesOptions {
  /** The ledger that the billing guard uses. */
  ledger: FundsView
}

/**
 * Returns the route `GET /account`: balance and limits of the account of the caller's key. Without `authenticate` before
 * it, all requests are refused with `missing_credential`.
 *
 * @throws TypeError at construction without a ledger.
 * @example
 * app.use('/v1', authenticate({ keys }), accountRoutes({ ledger }))
 */
export function accountRoutes(options: AccountRoutesOptions): Router {
  checkOptions('accountRoutes', options, {
    ledger: required(anObjectWith('the ledger that the billing guard uses', 'wallets')),
  })
  const ledger = boundedStore('ledger', options.ledger)
  return serveEndpoints(newRouter(), ACCOUNT_ENDPOINTS, (req) => {
    const { principal } = callOf(req)
    if (!principal) throw callOf(req).refuse('missing_credential')
    return { ledger, principal }
  })
}
