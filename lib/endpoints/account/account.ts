import type { Request, Response, Router } from 'express'
import { callOf } from '../../core/call/index.ts'
import { newRouter, setNoStore } from '../../core/json-api/index.ts'
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
  const router = newRouter()
  router.get('/account', showAccount)
  return router

  async function showAccount(req: Request, res: Response): Promise<void> {
    const { principal } = callOf(req)
    if (!principal) throw callOf(req).refuse('missing_credential')
    const { accountId, keyId, accountLimits, keyLimits } = principal
    const [funds] = await ledger.wallets([`account:${accountId}`])
    setNoStore(res)
    res.json({
      id: accountId,
      object: 'account',
      prepaid: funds?.limited ?? false,
      ...describeFunds(funds),
      limits: accountLimits,
      key: { id: keyId, limits: keyLimits },
    })
  }
}
