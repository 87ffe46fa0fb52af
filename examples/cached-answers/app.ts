/**
 * A phrase book whose answers take time and money. A repeated question of the same user is answered from a cache, which is
 * in Redis for all processes, or in memory.
 */

import express, { type Express, type Request } from 'express'
import { cache, errorEnvelope, rateLimit } from 'express-model-gateway'
import type { CacheStore } from 'express-model-gateway/cache'

/** Options of {@link createApp}. */
export interface AppOptions {
  /** Where answers are kept. Defaults to the memory of this process. */
  store?: CacheStore
  /** Returns the translation of a text. */
  translate: (text: string) => Promise<string>
}

/** Returns the user of a request. The app identifies users itself, here by a header. */
const userOf = (req: Request) => req.get('x-user')

/** Creates the app. */
export function createApp({ store, translate }: AppOptions): Express {
  const app = express()
  const cached = cache({
    ttl: 10 * 60_000,
    // Visitors without a name are answered anew.
    by: userOf,
    ...(store && { store }),
    onHit: rateLimit({ limit: 60 }),
  })
  app.post('/translations', express.json(), cached, async (req, res) => {
    res.json({ text: await translate(String(req.body?.text)) })
  })
  app.use(errorEnvelope())
  return app
}
