import type { Request, Router } from 'express'
import { actorFromHeader, type ChangeLog } from '../../core/change-log/index.ts'
import { newRouter, noStore } from '../../core/json-api/index.ts'
import {
  aFunction,
  anObject,
  anObjectWith,
  checkOptions,
  type OptionRules,
  required,
} from '../../core/options/index.ts'
import { boundedStore } from '../../core/store-guard/index.ts'
import { adminAccountRoutes } from './accounts/account-routes.ts'
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
  /** The store of accounts. */
  accounts: AccountStore
  /** The ledger, such as a `MemoryLedger` or a `SqlLedger`. */
  ledger: LedgerView
  /** The store of video tasks, such as a `MemoryTaskStore` or a `SqlTaskStore`. Defaults to none: its paths are `not_found`. */
  videoTasks?: VideoTasksView
  /** The store of API keys. Defaults to none: its paths are `not_found`. */
  keys?: KeyStore
  /** The lines and their switches. Defaults to none: their paths are `not_found`. */
  lines?: AdminLines
  /** The log of the changes in these stores. Defaults to none: its path is `not_found`. */
  changes?: ChangeLog
  /** Returns who makes a change, for the change log. Defaults to the header `X-Admin-Actor`, else `admin`. */
  actor?: (req: Request) => string
}

/** The check reads every charge there ever was. */
const CHECK_MS = 10 * 60_000

const RULES: OptionRules<AdminRoutesOptions> = {
  accounts: required(anObjectWith('an AccountStore, such as new MemoryAccountStore({ ledger })', 'deposit')),
  ledger: required(anObjectWith('the ledger that the billing guard uses', 'check')),
  videoTasks: anObject('a TaskStore, such as new MemoryTaskStore({ money })'),
  keys: anObject('a KeyStore, such as new MemoryKeyStore({ accounts })'),
  lines: {
    be: 'an object with list, refresh and the store of the switches, such as { list, refresh, store: new MemoryLineSwitchStore() }',
    accepts: (value) => {
      const { list, refresh, store } = (value ?? {}) as Partial<AdminLines>
      return typeof list === 'function' && typeof refresh === 'function' && typeof store === 'object'
    },
  },
  changes: anObject('a ChangeLog, such as new MemoryChangeLog()'),
  actor: aFunction('a function of the request that returns who makes a change'),
}

/**
 * Returns the routes of the admin API: accounts, deposits, leases, the check of the ledger, keys, lines, video tasks and
 * changes. Each change is recorded with its time, its actor and the values before and after. The routes authenticate
 * nobody: mount them behind {@link adminAccess} or your own authentication.
 *
 * @throws TypeError at construction if a store or the ledger is missing.
 * @example
 * app.use('/admin', adminAccess({ token: process.env.ADMIN_TOKEN }), adminRoutes({ accounts, ledger }))
 */
export function adminRoutes(options: AdminRoutesOptions): Router {
  checkOptions('adminRoutes', options, RULES)
  const { keys, lines, videoTasks, changes, actor = actorFromHeader } = options
  const accounts = boundedStore('accounts', options.accounts)
  const ledger = boundedStore('ledger', options.ledger, { check: CHECK_MS })
  const router = newRouter()
    .use(noStore)
    .use(adminAccountRoutes({ accounts, ledger, actor }))
    .use(ledgerRoutes(ledger))
  if (keys) router.use(keyRoutes({ keys: boundedStore('keys', keys), ledger, actor }))
  if (lines) router.use(lineRoutes({ lines: boundedLines(lines), actor }))
  if (changes) router.use(changeRoutes(boundedStore('change log', changes)))
  if (videoTasks) router.use(videoTaskRoutes({ tasks: boundedStore('video tasks', videoTasks), actor }))
  return router
}

function boundedLines(lines: AdminLines): AdminLines {
  const { list, refresh } = boundedStore('lines', lines)
  const store = boundedStore('line switches', lines.store)
  return { list, refresh, store }
}
