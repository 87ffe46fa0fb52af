/**
 * A shop's search API with rate limits only: searches per address, and searches and concurrent requests per user. Redis
 * counts them for all processes.
 */

import express, { type Express, type Request } from 'express'
import { errorEnvelope, ipSubject, type LimitStore, rateLimit } from 'express-model-gateway'

/** Options of {@link createApp}. */
export interface AppOptions {
  /** The store of the counts. */
  store: LimitStore
}

/** Returns the user of a request. The app identifies users itself, here by a header. */
const userOf = (req: Request) => req.get('x-user')

const isCustomer = (req: Request) => userOf(req)?.startsWith('customer-')

/** Creates the app. */
export function createApp({ store }: AppOptions): Express {
  const app = express()
  app.get('/', (_req, res) => {
    res.type('html').send('<h1>A shop</h1>')
  })

  const limits = rateLimit({
    store,
    levels: [
      { name: 'ip', by: ipSubject(), rpm: 20 },
      // Visitors without a user are limited by their address only.
      { name: 'user', by: userOf, rpm: (req) => (isCustomer(req) ? 10 : 5), concurrency: 2 },
    ],
  })
  app.get('/search', limits, (req, res) => {
    res.json({ for: userOf(req) ?? 'a visitor', found: [] })
  })
  app.get('/report', limits, (_req, res) => {
    // A slow answer, which holds its slot until the last byte.
    res.write('begin\n')
    setTimeout(() => res.end('end\n'), 500)
  })

  app.use(errorEnvelope())
  return app
}
