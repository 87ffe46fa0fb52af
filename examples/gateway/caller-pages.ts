import type { Express, RequestHandler } from 'express'
import {
  accountRoutes,
  callLogRoutes,
  type LineRegistry,
  modelRoutes,
  ticketRoutes,
  usageRoutes,
} from 'express-model-gateway'
import type { DurableStores } from './durable-stores.ts'
import type { LiveConfig } from './live-config.ts'

/** What callers with a key look up. */
export interface CallerPages {
  readonly catalog: LiveConfig['catalog']
  readonly lines: LineRegistry
  readonly stores: DurableStores
  /** Limits tickets as calls. */
  readonly limit: RequestHandler
}

/** Mounts what callers look up about models, their calls and their account. The console shows it too. */
export function mountCallerPages(app: Express, { catalog, lines, stores, limit }: CallerPages): void {
  app.use('/v1', modelRoutes({ catalog, lineStatus: (line, view) => lines.outline(line, view) }))
  app.use('/v1', callLogRoutes({ store: stores.calls }))
  app.use('/v1', usageRoutes({ store: stores.usage }))
  app.use('/v1', accountRoutes({ ledger: stores.ledger }))
  app.post('/v1/tickets', limit)
  app.use('/v1', ticketRoutes({ store: stores.tickets, calls: stores.calls }))
}
