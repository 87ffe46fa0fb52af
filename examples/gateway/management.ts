import type { Express } from 'express'
import { callLogRoutes, type Logger, modelRoutes, usageRoutes } from 'express-model-gateway'
import type { ConfigAuthority } from 'express-model-gateway/admin'
import { adminAccess, adminRoutes, adminTicketRoutes } from 'express-model-gateway/admin'
import { adminTokensFault, adminTokensIn, followSecret } from './config/secret-settings.ts'
import type { Services } from './services.ts'
import type { Stores } from './stores/stores.ts'
import { mergeWorkerLines } from './workers/merged-lines.ts'
import type { Peers } from './workers/reports.ts'

/** Returns the middleware that lets operators in. @param adminToken undefined = there is no admin API. */
export function operatorAccess(adminToken: string | undefined, stores: Stores, logger: Logger) {
  const { operators, sessions } = stores
  if (!adminToken) return adminAccess({ token: undefined, operators, sessions })
  const tokens = followSecret('ADMIN_TOKEN', adminToken, logger, adminTokensFault)
  return adminAccess({ token: () => adminTokensIn(tokens()), operators, sessions })
}

/** The options of the API for operators. */
export interface ManagementOptions
  extends Pick<Services, 'catalog' | 'lines' | 'modelNames' | 'switches' | 'lineFigures'> {
  readonly access: ReturnType<typeof operatorAccess>
  readonly stores: Stores
  /** Compares config and database; undefined = nothing compares them. */
  readonly authority: ConfigAuthority | undefined
  /** The other processes that serve the same port; undefined = there are none. */
  readonly peers: Peers | undefined
  readonly webhookAllowPrivate: boolean
}

/** Mounts the API of operators. */
export function mountManagement(app: Express, options: ManagementOptions): void {
  const { access, stores, authority, catalog, lines, modelNames, switches, lineFigures, peers } = options
  app.use('/admin', access)
  app.use(
    '/admin',
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
      webhooks: { store: stores.webhooks, allowPrivate: options.webhookAllowPrivate },
      changes: stores.changes,
    }),
  )
  app.use('/admin', callLogRoutes({ store: stores.calls, account: 'all' }))
  app.use('/admin', usageRoutes({ store: stores.usage, account: 'all' }))
  app.use('/admin', modelRoutes({ catalog, lineStatus: (line) => lines.figures(line), names: modelNames }))
  app.use('/admin', adminTicketRoutes({ store: stores.tickets, calls: stores.calls }))
}
