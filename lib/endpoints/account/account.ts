import { type Request, type Response, Router } from 'express'
import { callOf } from '../../core/call/index.ts'
import { formatAmount } from '../../core/catalog/index.ts'

/** What an account's wallet comes to, in nano-units. */
export interface OwnFunds {
  /** Whether calls are refused for want of money. */
  readonly limited: boolean
  /** Deposited so far. */
  readonly funds: bigint
  readonly spent: bigint
  /** Held by open leases of all processes. */
  readonly leased: bigint
}

/** What is read of the ledger. `MemoryLedger` and `SqlLedger` fit as they are. */
export interface FundsView {
  /** A wallet that the ledger does not know is left out. */
  wallets(ids: readonly `account:${string}`[]): Promise<readonly OwnFunds[]>
}

/** Options of {@link accountRoutes}. */
export interface AccountRoutesOptions {
  /** The ledger that the billing guard uses. */
  ledger: FundsView
}

/**
 * `GET /account`: what the account of the caller's key has, has spent and may do. Without `authenticate` before it every
 * request is refused with `missing_credential`.
 *
 * @throws TypeError at construction without a ledger.
 * @example
 * app.use('/v1', authenticate({ keys }), accountRoutes({ ledger }))
 */
export function accountRoutes({ ledger }: AccountRoutesOptions): Router {
  if (typeof ledger?.wallets !== 'function')
    throw new TypeError('accountRoutes: "ledger" must be the ledger that the billing guard uses')
  const router = Router()
  router.get('/account', showAccount)
  return router

  async function showAccount(req: Request, res: Response): Promise<void> {
    const { principal } = callOf(req)
    if (!principal) throw callOf(req).refuse('missing_credential')
    const { accountId, keyId, accountLimits, keyLimits } = principal
    const [funds = NOTHING] = await ledger.wallets([`account:${accountId}`])
    res.setHeader('cache-control', 'private, no-store')
    res.json({
      id: accountId,
      object: 'account',
      ...figuresOf(funds),
      limits: accountLimits,
      key: { id: keyId, limits: keyLimits },
    })
  }
}

/** An account that has neither been given nor spent anything yet has no wallet. */
const NOTHING: OwnFunds = { limited: false, funds: 0n, spent: 0n, leased: 0n }

function figuresOf({ limited, funds, spent, leased }: OwnFunds) {
  return {
    prepaid: limited,
    deposited: formatAmount(funds),
    spent: formatAmount(spent),
    balance: formatAmount(funds - spent),
    leased: formatAmount(leased),
    available: formatAmount(funds - spent - leased),
  }
}
