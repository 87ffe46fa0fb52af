import type { Request, Router } from 'express'
import type { Catalog } from '../core/catalog/index.ts'
import { actorOf, type ChangeLog, changeOrigin } from '../core/change-log/index.ts'
import { accountWarnings, keyWarnings } from '../core/config/unknown-names.ts'
import {
  type Endpoint,
  jsonBody,
  newRouter,
  noStore,
  refuseUnknown,
  serveEndpoints,
} from '../core/json-api/index.ts'
import {
  aCatalog,
  aFunction,
  anObject,
  anObjectWith,
  catalogFrom,
  checkOptions,
  type OptionRules,
  required,
} from '../core/options/index.ts'
import { boundedStore } from '../core/store-guard/index.ts'
import type { AccountStore } from './accounts/account-store.ts'
import { ACCOUNT_ENDPOINTS } from './accounts/accounts.ts'
import { LEDGER_ENDPOINTS, type LedgerView } from './accounts/ledger.ts'
import { type Authority, DRIFT_ENDPOINTS } from './authority/drift.ts'
import type { BudgetStore } from './budgets/budget-store.ts'
import { BUDGET_ENDPOINTS } from './budgets/budgets.ts'
import type { KeyStore } from './keys/key-store.ts'
import { KEY_ENDPOINTS } from './keys/keys.ts'
import { type AdminLines, LINE_ENDPOINTS } from './lines/lines.ts'
import { CHANGE_ENDPOINTS } from './operators/changes.ts'
import type { OperatorStore } from './operators/operator-store.ts'
import { OPERATOR_ENDPOINTS } from './operators/operators.ts'
import type { SessionStore } from './operators/session-store.ts'
import { OWN_SESSION_ENDPOINTS, SESSION_ENDPOINTS } from './operators/sessions.ts'
import type { ResourceParts } from './resource.ts'
import { VIDEO_TASK_ENDPOINTS, type VideoTasksView } from './video-tasks.ts'
import { type AdminWebhooks, WEBHOOK_ENDPOINTS } from './webhooks/webhooks.ts'

/** Options of {@link adminRoutes}. */
export interface AdminRoutesOptions {
  /** The store of accounts. */
  accounts: AccountStore
  /** The models and lines that keys and accounts may name; answers list other names in `warnings`. Defaults to none: there are no warnings. */
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
  /** Compares config and database. Defaults to none: its path is `not_found`, and operators may change all. */
  authority?: Authority
  /** The webhooks that events are sent to. Defaults to none: their paths are `not_found`. */
  webhooks?: AdminWebhooks
  /** The log of the changes in these stores. Defaults to none: its path is `not_found`. */
  changes?: ChangeLog
  /**
   * Returns who makes a change, for the change log. Defaults to the operator's name, with the `ADMIN_TOKEN` to the header
   * `X-Admin-Actor`, else `admin`.
   */
  actor?: (req: Request) => string
}

/** The check reads every charge there ever was. */
const CHECK_MS = 10 * 60_000

const RULES: OptionRules<AdminRoutesOptions> = {
  accounts: required(anObjectWith('an AccountStore, such as new SqlAccountStore(db)', 'deposit')),
  ledger: required(anObjectWith('the ledger that the billing guard uses', 'check')),
  catalog: aCatalog,
  videoTasks: anObject('a TaskStore, such as new MemoryTaskStore({ money })'),
  budgets: anObjectWith('a BudgetStore, such as new SqlBudgetStore(db)', 'changes'),
  keys: anObject('a KeyStore, such as new SqlKeyStore(db)'),
  lines: {
    be: 'an object with list, refresh and the store of the switches, such as { list, refresh, store: new SqlLineSwitchStore(db) }',
    accepts: (value) => {
      const { list, refresh, store } = (value ?? {}) as Partial<AdminLines>
      return typeof list === 'function' && typeof refresh === 'function' && typeof store === 'object'
    },
  },
  operators: anObject('an OperatorStore, such as new SqlOperatorStore(db)'),
  sessions: anObject('a SessionStore, such as new SqlSessionStore(db)'),
  authority: anObjectWith('a ConfigAuthority', 'rules', 'drift'),
  webhooks: {
    be: 'an object with the store of the webhooks, such as { store: new SqlWebhookStore(db) }',
    accepts: (value) => typeof (value as Partial<AdminWebhooks> | null)?.store === 'object',
  },
  changes: anObject('a ChangeLog, such as new SqlChangeLog(db)'),
  actor: aFunction('a function of the request that returns who makes a change'),
}

/**
 * Returns the routes of the admin API: accounts, deposits, leases, the check of the ledger, keys, lines, video tasks,
 * operators, webhooks and changes. Each change is recorded with its time, its actor and the values before and after. The routes do not
 * authenticate: mount them behind {@link adminAccess} or your own authentication.
 *
 * @throws TypeError at construction if a store or the ledger is missing.
 * @example
 * app.use('/admin', adminAccess({ token: process.env.ADMIN_TOKEN }), adminRoutes({ accounts, ledger }))
 */
export function adminRoutes(options: AdminRoutesOptions): Router {
  checkOptions('adminRoutes', options, RULES)
  const { budgets, keys, lines, videoTasks, operators, webhooks, changes, authority } = options
  const { actor = actorOf } = options
  const common: ResourceParts = { origin: (req) => changeOrigin(req, actor) }
  const accounts = boundedStore('accounts', options.accounts)
  const ledger = boundedStore('ledger', options.ledger, { check: CHECK_MS })
  const sessions = options.sessions && boundedStore('sessions', options.sessions)
  const catalogNow = options.catalog && catalogFrom(options.catalog)
  const router = newRouter().use(noStore)

  function serve<Parts>(endpoints: readonly Endpoint<Parts>[], parts: Parts): void {
    serveEndpoints(router, endpoints, () => parts)
  }

  serve(ACCOUNT_ENDPOINTS, {
    ...common,
    accounts,
    ledger,
    authority,
    warningsOf: (account) => (catalogNow ? accountWarnings(account, catalogNow()) : []),
  })
  serve(LEDGER_ENDPOINTS, { leases: () => ledger.leases(), check: sharedRun(() => ledger.check()) })
  serve(OWN_SESSION_ENDPOINTS, { ...common, sessions, actor })
  if (sessions) serve(SESSION_ENDPOINTS, { ...common, sessions })
  if (keys)
    serve(KEY_ENDPOINTS, {
      ...common,
      keys: boundedStore('keys', keys),
      ledger,
      authority,
      warningsOf: (key) => (catalogNow ? keyWarnings(key, catalogNow()) : []),
    })
  if (authority) serve(DRIFT_ENDPOINTS, { authority })
  if (budgets) serve(BUDGET_ENDPOINTS, { ...common, budgets: boundedStore('budgets', budgets), ledger })
  if (lines) serve(LINE_ENDPOINTS, { ...common, lines: boundedLines(lines) })
  if (operators) serve(OPERATOR_ENDPOINTS, { ...common, operators: boundedStore('operators', operators) })
  if (webhooks) serve(WEBHOOK_ENDPOINTS, { ...common, webhooks: boundedWebhooks(webhooks) })
  if (changes) serve(CHANGE_ENDPOINTS, { changes: boundedStore('change log', changes) })
  if (videoTasks) serve(VIDEO_TASK_ENDPOINTS, { ...common, tasks: boundedStore('video tasks', videoTasks) })
  // `modelRoutes` answers, which also accepts parameters of Anthropic's clients.
  router.get(['/models', '/models/*id'], jsonBody, refuseUnknown)
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

/** Returns a function whose calls share a result while it is being made: each would read all rows again. */
function sharedRun<Result>(run: () => Promise<Result>): () => Promise<Result> {
  let running: Promise<Result> | undefined
  return () => {
    running ??= run().finally(() => {
      running = undefined
    })
    return running
  }
}
