/**
 * A gateway whose lines are tried in an order of its own: the cheapest first, as long as it is fast enough. It has no keys
 * and no limits, so that nothing stands between the strategy and who looks at it.
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

/** What the app needs from outside. */
export interface AppOptions {
  catalog: Catalog
  lines: LineRegistry
  /** The longest time to first byte that will do, in milliseconds. */
  boundMs: number
}

/** Puts the app together. */
export function createApp({ catalog, lines, boundMs }: AppOptions): Express {
  const app = express()
  const store = new MemoryCallStore()
  app.use(beginCall(), callLog({ writer: new CallLogWriter({ store }) }))
  app.post(
    '/v1/chat/completions',
    readRequest({ catalog }),
    route({ catalog, lines, strategy: cheapestWithin(boundMs) }),
  )
  // Everybody's calls for everybody: put `authenticate` in front, and leave `account` out, where others can reach it.
  app.use('/v1', callLogRoutes({ store, account: 'all' }))
  app.get('/lines', (_req, res) => {
    res.json(catalog.lines.map((line) => lines.status(line)))
  })
  app.use(unknownPath(), errorEnvelope())
  return app
}
