import type { Request, Response } from 'express'
import { callOf, type OpenCall } from '../../../lib/core/call/index.ts'
import { formatAmount } from '../../../lib/core/catalog/index.ts'
import { LeasePool, type Ledger, type LedgerAdmin } from '../../../lib/ledger/index.ts'
import { accountWallet } from '../../../lib/ledger/wallet.ts'
import { billingGuard } from '../../../lib/middleware/billing-guard/index.ts'
import { errorEnvelope } from '../../../lib/middleware/error-envelope/index.ts'
import { type AppServer, recordingLogger, serveApp } from '../../support/app-server.ts'

/** Somebody's own API behind `billingGuard`, with the account in the header `x-account`. */
export interface PaidApp extends AppServer {
  /** Calls that have reached the handler. */
  readonly handled: OpenCall[]
  readonly pool: LeasePool
  /** The amount that an account has spent, and the amount leased from it, in units. */
  account(id: string): Promise<{ spent: string; leased: string }>
  get(account?: string, key?: string): Promise<globalThis.Response>
}

export interface PaidAppOptions {
  ledger: Ledger & LedgerAdmin
  handler: (req: Request, res: Response) => void
  reserve?: string
  confirmMs?: number
  onStoreError?: 'hold' | 'deliver'
}

export async function servePaid({
  ledger,
  handler,
  reserve = '1',
  ...options
}: PaidAppOptions): Promise<PaidApp> {
  const logger = recordingLogger()
  const pool = new LeasePool({ ledger, logger, ...options })
  const handled: OpenCall[] = []
  const app = await serveApp((app) => {
    app.use(
      billingGuard({
        pool,
        account: (req) => req.get('x-account'),
        key: (req) => req.get('x-key') ?? null,
        reserve: () => reserve,
      }),
      (req: Request, res: Response) => {
        handled.push(callOf(req))
        handler(req, res)
      },
      errorEnvelope({ logger }),
    )
  })
  return {
    ...app,
    handled,
    pool,
    async account(id) {
      const [wallet] = await ledger.wallets([accountWallet(id)])
      return { spent: formatAmount(wallet?.spent ?? 0n), leased: formatAmount(wallet?.leased ?? 0n) }
    },
    get: (account = 'acme', key) =>
      fetch(app.url, { headers: { ...(account && { 'x-account': account }), ...(key && { 'x-key': key }) } }),
    async close() {
      await app.close()
      await pool.close()
    },
  }
}
