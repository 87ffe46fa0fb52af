/**
 * A gateway with its own routing strategy: it tries the cheapest line that is fast enough first. It has neither keys nor
 * limits, to keep the example short.
 */

import express, { type Express } from 'express'
import {
  beginCall,
  CallLogWriter,
  type Catalog,
  callLog,
  callLogRoutes,
  errorEnvelope,
  type LineRegistry,
  MemoryCallStore,
  readRequest,
  route,
  unknownPath,
} from 'express-model-gateway'
import { cheapestWithin } from './cheapest-within.ts'

/** Options of {@link createApp}. */
export interface AppOptions {
  catalog: Catalog
  lines: LineRegistry
  /** The longest acceptable time to first byte, in milliseconds. */
  boundMs: number
}

/** Creates the app. */
export function createApp({ catalog, lines, boundMs }: AppOptions): Express {
  const app = express()
  const store = new MemoryCallStore()
  app.use(beginCall(), callLog({ writer: new CallLogWriter({ store }) }))
  app.post(
    '/v1/chat/completions',
    readRequest({ catalog }),
    route({ catalog, lines, strategy: cheapestWithin(boundMs) }),
  )
  // Shows all calls to everybody. If others can reach the app, mount `authenticate` before it and leave `account` out.
  app.use('/v1', callLogRoutes({ store, account: 'all' }))
  app.get('/lines', (_req, res) => {
    res.json(catalog.lines.map((line) => lines.status(line)))
  })
  app.use(unknownPath(), errorEnvelope())
  return app
}
