import type { Express } from 'express'
import {
  type adminAccess,
  adminRoutes,
  adminTicketRoutes,
  callLogRoutes,
  type LineRegistry,
  type LineSwitches,
  modelRoutes,
  usageRoutes,
} from 'express-model-gateway'
import type { ConfigAuthority } from 'express-model-gateway/admin'
import type { LineFigures } from 'express-model-gateway/route'
import type { SqlRegions } from 'express-model-gateway/sql'
import type { DurableStores } from './durable-stores.ts'
import type { LiveConfig } from './live-config.ts'
import { mergeWorkerLines } from './merged-lines.ts'
import type { Peers } from './peers.ts'

/** What the admin API is made of. */
export interface AdminEndpoints {
  readonly access: ReturnType<typeof adminAccess>
  readonly stores: DurableStores
  readonly catalog: LiveConfig['catalog']
  readonly lines: LineRegistry
  readonly switches: LineSwitches
  readonly authority: ConfigAuthority | undefined
  /** How the lines do in this process. */
  readonly lineFigures: () => Promise<readonly LineFigures[]>
  /** The other processes that serve the same port; undefined = there are none. */
  readonly peers: Peers | undefined
  /** The other regions; undefined = there are none. */
  readonly regions: SqlRegions | undefined
  /** Whether webhooks may have private addresses. */
  readonly allowPrivate: boolean
}

/** Mounts the API of operators. */
export function mountAdmin(app: Express, endpoints: AdminEndpoints): void {
  const { access, stores, authority, catalog, lines, switches, lineFigures, peers, allowPrivate } = endpoints
  const { regions } = endpoints
  app.use(
    '/admin',
    access,
    adminRoutes({
      accounts: stores.accounts,
      ledger: stores.ledger,
      catalog,
      keys: stores.adminKeys,
      budgets: stores.budgets,
      lines: {
        list: async () => {
          const own = await lineFigures()
          return peers ? mergeWorkerLines(own, await peers.ask('lines')) : own
        },
        store: stores.lineSwitches,
        refresh: async () => {
          await switches.refresh()
          // Each worker reads the switches before it reports.
          await peers?.ask('lines')
        },
      },
      videoTasks: stores.tasks,
      operators: stores.operators,
      sessions: stores.sessions,
      ...(authority && { authority }),
      webhooks: { store: stores.webhooks, allowPrivate },
      changes: stores.changes,
      ...(regions && { regions }),
    }),
    callLogRoutes({ store: stores.calls, account: 'all' }),
    usageRoutes({ store: stores.usage, account: 'all' }),
    modelRoutes({ catalog, lineStatus: (line) => lines.figures(line) }),
    adminTicketRoutes({ store: stores.tickets, calls: stores.calls }),
  )
}
