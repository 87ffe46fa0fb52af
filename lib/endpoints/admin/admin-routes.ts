import type { Request, Router } from 'express'
import type { Catalog } from '../../core/catalog/index.ts'
import { aCatalog, catalogFrom } from '../../core/catalog-source/index.ts'
import { actorOf, type ChangeLog } from '../../core/change-log/index.ts'
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
import { type Authority, driftRoutes } from './authority/drift-routes.ts'
import { budgetRoutes } from './budgets/budget-routes.ts'
import type { BudgetStore } from './budgets/budget-store.ts'
import { changeRoutes } from './change-routes.ts'
import { keyRoutes } from './keys/key-routes.ts'
import type { KeyStore } from './keys/key-store.ts'
import { ledgerRoutes } from './ledger/ledger-routes.ts'
import type { LedgerView } from './ledger/ledger-view.ts'
import { type AdminLines, lineRoutes } from './lines/line-routes.ts'
import { operatorRoutes } from './operators/operator-routes.ts'
import type { OperatorStore } from './operators/operator-store.ts'
import { type RegionsView, regionRoutes } from './regions/region-routes.ts'
import { sessionRoutes } from './sessions/session-routes.ts'
import type { SessionStore } from './sessions/session-store.ts'
import { accountWarnings, keyWarnings } from './unknown-names.ts'
import { videoTaskRoutes } from './videos/video-task-routes.ts'
import type { VideoTasksView } from './videos/video-tasks-view.ts'
import { type AdminWebhooks, webhookRoutes } from './webhooks/webhook-routes.ts'

/** Options of {@link adminRoutes}. */
export interface AdminRoutesOptions {
  /** The store of accounts. */
  accounts: AccountStore
  /** The models and lines that keys and accounts may name; what is not there is told in `warnings`. Defaults to none: there are no warnings. */
  catalog?: Catalog | (() => Catalog)
  /** The ledger, such as a `MemoryLedger` or a `SqlLedger`. */
  ledger: LedgerView
  /** The store of video tasks, such as a `MemoryTaskStore` or a `SqlTaskStore`. Defaults to none: its paths are `not_found`. */
  videoTasks?: VideoTasksView
  /** The store of API keys. Defaults to none: its paths are `not_found`. */
  keys?: KeyStore
  /** The store of budgets. Defaults to none: its paths are `not_found`. */
  budgets?: BudgetStore
  /** The lines and their switches. Defaults to none: their paths are `not_found`. */
  lines?: AdminLines
  /** The operators with tokens of their own, as `adminAccess` has them. Defaults to none: their paths are `not_found`. */
  operators?: OperatorStore
  /** The sessions of those who signed in at a provider, as `adminAccess` has them. Defaults to none. */
  sessions?: SessionStore
  /** What compares config and database. Defaults to none: its path is `not_found`, and operators may change all. */
  authority?: Authority
  /** The webhooks that are told events. Defaults to none: their paths are `not_found`. */
  webhooks?: AdminWebhooks
  /** The other regions, such as a `SqlRegions`. Defaults to none: their list is empty. */
  regions?: RegionsView
  /** The log of the changes in these stores. Defaults to none: its path is `not_found`. */
  changes?: ChangeLog
  /** Returns who makes a change, for the change log. Defaults to the operator's name, with the
   * `ADMIN_TOKEN` to the header `X-Admin-Actor`, else `admin`. */
  actor?: (req: Request) => string
}

/** The check reads every charge there ever was. */
const CHECK_MS = 10 * 60_000

const RULES: OptionRules<AdminRoutesOptions> = {
  accounts: required(anObjectWith('an AccountStore, such as new MemoryAccountStore({ ledger })', 'deposit')),
  ledger: required(anObjectWith('the ledger that the billing guard uses', 'check')),
  catalog: aCatalog,
  videoTasks: anObject('a TaskStore, such as new MemoryTaskStore({ money })'),
  budgets: anObjectWith('a BudgetStore, such as new SqlBudgetStore(db)', 'changes'),
  keys: anObject('a KeyStore, such as new MemoryKeyStore({ accounts })'),
  lines: {
    be: 'an object with list, refresh and the store of the switches, such as { list, refresh, store: new MemoryLineSwitchStore() }',
    accepts: (value) => {
      const { list, refresh, store } = (value ?? {}) as Partial<AdminLines>
      return typeof list === 'function' && typeof refresh === 'function' && typeof store === 'object'
    },
  },
  operators: anObject('an OperatorStore, such as new MemoryOperatorStore()'),
  sessions: anObject('a SessionStore, such as new MemorySessionStore()'),
  authority: anObjectWith('a ConfigAuthority', 'rules', 'drift'),
  webhooks: {
    be: 'an object with the store of the webhooks, such as { store: new MemoryWebhooks() }',
    accepts: (value) => typeof (value as Partial<AdminWebhooks> | null)?.store === 'object',
  },
  regions: anObjectWith('a SqlRegions', 'list', 'homeOf', 'sharesOf'),
  changes: anObject('a ChangeLog, such as new MemoryChangeLog()'),
  actor: aFunction('a function of the request that returns who makes a change'),
}

/**
 * Returns the routes of the admin API: accounts, deposits, leases, the check of the ledger, keys, lines, video tasks,
 * operators, webhooks and changes. Each change is recorded with its time, its actor and the values before and after. The routes authenticate
 * nobody: mount them behind {@link adminAccess} or your own authentication.
 *
 * @throws TypeError at construction if a store or the ledger is missing.
 * @example
 * app.use('/admin', adminAccess({ token: process.env.ADMIN_TOKEN }), adminRoutes({ accounts, ledger }))
 */
export function adminRoutes(options: AdminRoutesOptions): Router {
  checkOptions('adminRoutes', options, RULES)
  const {
    budgets,
    keys,
    lines,
    videoTasks,
    operators,
    sessions,
    authority,
    webhooks,
    regions,
    changes,
    actor = actorOf,
  } = options
  const catalogNow = options.catalog && catalogFrom(options.catalog)
  const accounts = boundedStore('accounts', options.accounts)
  const ledger = boundedStore('ledger', options.ledger, { check: CHECK_MS })
  const router = newRouter()
    .use(noStore)
    .use(
      adminAccountRoutes({
        accounts,
        ledger,
        authority,
        regions,
        warningsOf: (account) => (catalogNow ? accountWarnings(account, catalogNow()) : []),
        actor,
      }),
    )
    .use(ledgerRoutes(ledger))
    .use(regionRoutes(regions))
    .use(sessionRoutes({ sessions: sessions && boundedStore('sessions', sessions), actor }))
  // The models come from other routes, which callers have too.
  for (const path of ['/models', '/models/*id']) router.get(path, (_req, _res, next) => next())
  if (keys)
    router.use(
      keyRoutes({
        keys: boundedStore('keys', keys),
        ledger,
        authority,
        warningsOf: (key) => (catalogNow ? keyWarnings(key, catalogNow()) : []),
        actor,
      }),
    )
  if (authority) router.use(driftRoutes(authority))
  if (budgets) router.use(budgetRoutes({ budgets: boundedStore('budgets', budgets), ledger, actor }))
  if (lines) router.use(lineRoutes({ lines: boundedLines(lines), actor }))
  if (operators) router.use(operatorRoutes({ operators: boundedStore('operators', operators), actor }))
  if (webhooks) router.use(webhookRoutes({ webhooks: boundedWebhooks(webhooks), actor }))
  if (changes) router.use(changeRoutes(boundedStore('change log', changes)))
  if (videoTasks) router.use(videoTaskRoutes({ tasks: boundedStore('video tasks', videoTasks), actor }))
  return router
}

function boundedLines(lines: AdminLines): AdminLines {
  const { list, refresh } = boundedStore('lines', lines)
  const store = boundedStore('line switches', lines.store)
  return { list, refresh, store }
}

function boundedWebhooks({ store, ...rest }: AdminWebhooks): AdminWebhooks {
  return { ...rest, store: boundedStore('webhooks', store) }
}
