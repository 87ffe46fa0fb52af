/**
 * A gateway inside a company, built from the parts that it needs: employees instead of API keys, a rule about what may be
 * sent out, limits per person, several lines. It has no billing, no idempotency and no call log.
 */

import express, { type Express } from 'express'
import {
  beginCall,
  type Catalog,
  errorEnvelope,
  type LineRegistry,
  modelRoutes,
  rateLimit,
  readRequest,
  route,
  unknownPath,
} from 'express-model-gateway'
import { noCardNumbers } from './no-card-numbers.ts'
import { type Person, personOf, staffOnly } from './staff.ts'
import { TeamUsageCounter } from './team-usage.ts'

/** Options of {@link createApp}. */
export interface AppOptions {
  catalog: Catalog
  lines: LineRegistry
  /** The employees, by their tokens. */
  tokens: ReadonlyMap<string, Person>
}

/** Creates the app. */
export function createApp({ catalog, lines, tokens }: AppOptions): Express {
  const app = express()
  const usage = new TeamUsageCounter()

  app.use(beginCall()) // (1) every answer has a request id, refusals too
  app.use('/v1', staffOnly(tokens)) // (2) before the body is read: a stranger's 20 MB are not
  app.post(
    '/v1/chat/completions',
    readRequest({ catalog }), // (3) reads and judges the body
    noCardNumbers(), // (4) needs the body; refuses before anything is counted
    rateLimit({ levels: [{ name: 'person', by: (req) => personOf(req)?.name, rpm: 5, concurrency: 2 }] }), // (5)
    usage.count(), // (6) sees what `route` has measured, when the call ends
    route({ catalog, lines }), // (7) ends the chain
  )
  app.use('/v1', modelRoutes({ catalog }))
  app.get('/usage', (_req, res) => {
    res.json(Object.fromEntries(usage.byTeam))
  })
  app.use(unknownPath(), errorEnvelope()) // (8) words all that went wrong, for the SDKs
  return app
}
