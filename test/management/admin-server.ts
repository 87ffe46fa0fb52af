import { before, describe } from 'node:test'
import { callOf } from '../../lib/core/call/index.ts'
import type { ChangeLog } from '../../lib/core/change-log/index.ts'
import type { TaskStore } from '../../lib/endpoints/video/index.ts'
import type { Ledger, LedgerAdmin } from '../../lib/ledger/index.ts'
import {
  type AccountStore,
  type AdminLines,
  adminAccess,
  adminRoutes,
  type BudgetStore,
  type KeyStore,
} from '../../lib/management/index.ts'
import { authenticate, type KeyDirectory, type KeySeed } from '../../lib/middleware/authenticate/index.ts'
import { errorEnvelope, unknownPath } from '../../lib/middleware/error-envelope/index.ts'
import {
  type Database,
  openDatabase,
  SqlAccountStore,
  SqlBudgetStore,
  SqlChangeLog,
  SqlKeyDirectory,
  SqlKeyStore,
  SqlLedger,
  SqlTaskStore,
  seedAccountsAndKeys,
} from '../../lib/stores/sql/index.ts'
import { postgresUrl } from '../stores/sql/support/postgres-database.ts'
import { temporaryDatabase } from '../stores/sql/support/temporary-database.ts'
import { type ErrorEnvelope, jsonOf } from '../support/answer-bodies.ts'
import { serveApp } from '../support/app-server.ts'
import { cleaningUp } from '../support/clean-up.ts'
import { WITHOUT_POSTGRES } from '../support/postgres-server.ts'

export const TOKEN = 'admin-token-1'

/** The seed of the tests: one prepaid account with a key, and a postpaid one. */
export const SEED: KeySeed = {
  accounts: [
    { id: 'acme', name: 'Acme', balance: '25.00', limits: { rpm: 600, tpm: null, concurrency: 20 } },
    { id: 'globex' },
  ],
  keys: [{ id: 'key_acme', account: 'acme', secret: 'sk-acme' }],
}

/** The stores behind an admin API. */
export interface AdminStores {
  readonly db: Database
  readonly accounts: AccountStore
  readonly ledger: Ledger & LedgerAdmin
  /** The directory that `authenticate` asks. */
  readonly directory: KeyDirectory
  readonly keys: KeyStore
  readonly budgets: BudgetStore
  readonly changes: ChangeLog
  readonly videoTasks: TaskStore
  readonly lines?: AdminLines
  /** Returns the events that webhooks are to deliver, in their order. */
  told(): Promise<readonly ToldEvent[]>
  close(): Promise<void>
}

/** The members of an event that tests read. */
export interface ToldEvent {
  readonly type: string
  readonly subject: string
  readonly data: { readonly share?: number; readonly spent?: string; readonly amount?: string }
}

/** An admin API on loopback, and what stands behind it. */
export interface AdminServer extends AdminStores {
  readonly url: string
  /** Asks as an operator; a body makes it JSON. */
  ask(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>
}

/** An answer and its body as JSON. */
export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly body: AdminBody
}

/** The members of bodies that tests read by name; no body has all of them. */
export interface AdminBody {
  readonly object: string
  readonly id: string
  readonly name: string | null
  readonly prepaid: boolean
  readonly deposited: string
  readonly spent: string
  readonly balance: string
  readonly leased: string
  readonly available: string
  readonly created_at: string
  readonly renewed_at: string
  readonly data: readonly AdminBody[]
  readonly account: string
  readonly secret?: string
  readonly enabled: boolean
  readonly next_cursor: string | null
  readonly state: string
  readonly held: string
  readonly charged: string | null
  readonly violations: readonly string[]
  readonly error: ErrorEnvelope['error']
}

/** Opens stores with the seed. Defaults to a database in memory. */
export async function sqlStores(url = 'sqlite::memory:'): Promise<AdminStores> {
  const db = await openDatabase(url)
  await seedAccountsAndKeys(db, SEED)
  const ledger = new SqlLedger(db)
  const accounts = new SqlAccountStore(db)
  const directory = new SqlKeyDirectory(db)
  const keys = new SqlKeyStore(db)
  const budgets = new SqlBudgetStore(db)
  const told = async () => {
    const events = await db.selectFrom('webhook_events').selectAll().execute()
    return inOrder(events).map(({ type, subject, data }) => ({ type, subject, data: JSON.parse(data) }))
  }
  const [changes, videoTasks] = [new SqlChangeLog(db), new SqlTaskStore(db)]
  return {
    accounts,
    ledger,
    directory,
    keys,
    budgets,
    changes,
    videoTasks,
    told,
    db,
    close: () => db.destroy(),
  }
}

function inOrder<Event extends { readonly at: number | bigint }>(events: Event[]): Event[] {
  return events.sort((one, other) => Number(one.at) - Number(other.at))
}

/** Serves the admin API over some stores, and `/v1/me`, which returns what `authenticate` knows of the caller. */
export async function serveAdmin(
  stores: AdminStores,
  token: string | undefined = TOKEN,
): Promise<AdminServer> {
  const { db: _db, directory: _directory, told: _told, close: _close, ...administered } = stores
  const server = await serveApp((app) => {
    app.use('/admin', adminAccess({ token }), adminRoutes(administered))
    app.get(
      '/v1/me',
      authenticate({ keys: stores.directory, region: 'local', cacheKeysMs: 0 }),
      (req, res) => {
        res.json(callOf(req).principal?.accountLimits)
      },
    )
    app.use(unknownPath(), errorEnvelope())
  })
  return {
    ...stores,
    url: server.url,
    async ask(method, path, body, headers = {}) {
      const response = await fetch(server.url + path, {
        method,
        headers: {
          authorization: `Bearer ${TOKEN}`,
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      })
      return { status: response.status, headers: response.headers, body: await jsonOf<AdminBody>(response) }
    },
    async close() {
      await server.close()
      await stores.close()
    },
  }
}

/** Runs a suite on an admin API over SQLite and Postgres; each has its own, seeded, for the whole suite. */
export function onEveryBackend(name: string, suite: (server: () => AdminServer) => void): void {
  const run = (backend: string, open: () => Promise<AdminStores>, skip: string | false = false) =>
    describe(`${name}, ${backend}`, { skip }, () => {
      let server: AdminServer | undefined
      const cleanUp = cleaningUp()
      before(async () => {
        const opened = await serveAdmin(await open())
        cleanUp.after(() => opened.close())
        server = opened
      })
      suite(() => {
        if (!server) throw new Error('the server is not there yet')
        return server
      })
    })

  run('SQLite', async () => {
    const { url, remove } = await temporaryDatabase()
    const stores = await sqlStores(url)
    return { ...stores, close: () => stores.close().then(remove) }
  })
  run(
    'Postgres',
    async () => {
      return sqlStores(await postgresUrl())
    },
    WITHOUT_POSTGRES,
  )
}
