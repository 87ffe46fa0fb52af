import { type NextFunction, type Request, type Response, Router } from 'express'
import { actorOfHeader, type ChangeLog } from '../../core/change-log/index.ts'
import { accountRoutes } from './accounts/account-routes.ts'
import type { AccountStore } from './accounts/account-store.ts'
import { changeRoutes } from './change-routes.ts'
import { keyRoutes } from './keys/key-routes.ts'
import type { KeyStore } from './keys/key-store.ts'
import { ledgerRoutes } from './ledger/ledger-routes.ts'
import type { LedgerView } from './ledger/ledger-view.ts'
import { type AdminLines, lineRoutes } from './lines/line-routes.ts'
import { videoTaskRoutes } from './videos/video-task-routes.ts'
import type { VideoTasksView } from './videos/video-tasks-view.ts'

/** Options of {@link adminRoutes}. */
export interface AdminRoutesOptions {
  /** Where accounts are kept and changed. */
  accounts: AccountStore
  /** Where their money is kept; `MemoryLedger` and `SqlLedger` fit. */
  ledger: LedgerView
  /** Where video tasks are kept and resolved; `MemoryTaskStore` and `SqlTaskStore` fit. Defaults to none: their paths are `not_found`. */
  videoTasks?: VideoTasksView
  /** Where API keys are kept and changed. Defaults to none: their paths are `not_found`. */
  keys?: KeyStore
  /** The lines, and how to switch them. Defaults to none: their paths are `not_found`. */
  lines?: AdminLines
  /** Where the changes of all these stores are recorded. Defaults to none: the path is `not_found`. */
  changes?: ChangeLog
  /**
   * Who makes a change, recorded with it. Defaults to the header `X-Admin-Actor`, in which whoever has the token names
   * himself, else `admin`.
   */
  actor?: (req: Request) => string
}

/**
 * The admin API: accounts, deposits, leases, the check of the ledger, keys, lines, video tasks, and what was changed.
 * Every change is recorded with time, actor and
 * before and after. It asks nobody who they are: mount it behind {@link adminAccess}, or your own authentication.
 *
 * @throws TypeError at construction without a store or a ledger.
 * @example
 * app.use('/admin', adminAccess({ token: process.env.ADMIN_TOKEN }), adminRoutes({ accounts, ledger }))
 */
export function adminRoutes(options: AdminRoutesOptions): Router {
  const { accounts, ledger, keys, lines, videoTasks, changes, actor = actorOfHeader } = options
  if (typeof accounts?.deposit !== 'function')
    throw new TypeError('adminRoutes: "accounts" must be an AccountStore, such as a MemoryAccountStore')
  if (typeof ledger?.check !== 'function')
    throw new TypeError('adminRoutes: "ledger" must be the ledger that the billing guard uses')
  const router = Router()
    .use(keepFromCaches)
    .use(accountRoutes({ accounts, ledger, actor }))
    .use(ledgerRoutes(ledger))
  if (keys) router.use(keyRoutes({ keys, ledger, actor }))
  if (lines) router.use(lineRoutes({ lines, actor }))
  if (changes) router.use(changeRoutes(changes))
  if (videoTasks) router.use(videoTaskRoutes({ tasks: videoTasks, actor }))
  return router
}

function keepFromCaches(_req: Request, res: Response, next: NextFunction): void {
  res.setHeader('cache-control', 'private, no-store')
  next()
}
