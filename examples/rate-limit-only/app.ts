/**
 * A shop's search API that wants limits and nothing else: each address may search so often, each user so often and so
 * many times at once. The counts are in Redis, so that they hold over all of its processes.
 */

import express, { type Express, type Request } from 'express'
import { errorEnvelope, type LimitStore, rateLimit } from 'express-model-gateway'

/** What the app needs from outside. */
export interface AppOptions {
  /** Where counts are kept. */
  store: LimitStore
}

/** The app has its own idea of who calls; here it is a header. */
const userOf = (req: Request) => req.get('x-user')

const isCustomer = (req: Request) => userOf(req)?.startsWith('customer-')

/** Puts the app together. */
export function createApp({ store }: AppOptions): Express {
  const app = express()
  app.get('/', (_req, res) => {
    res.type('html').send('<h1>A shop</h1>')
  })

  const limits = rateLimit({
    store,
    levels: [
      { name: 'ip', by: (req) => req.ip, rpm: 20 },
      // Visitors without a user are limited by their address alone.
      { name: 'user', by: userOf, rpm: (req) => (isCustomer(req) ? 10 : 5), concurrency: 2 },
    ],
  })
  app.get('/search', limits, (req, res) => {
    res.json({ for: userOf(req) ?? 'a visitor', found: [] })
  })
  app.get('/report', limits, (_req, res) => {
    // Takes its time, and holds a slot until the last byte.
    res.write('begin\n')
    setTimeout(() => res.end('end\n'), 500)
  })

  app.use(errorEnvelope())
  return app
}
