import type { TestContext } from 'node:test'
import type { ErrorRequestHandler, Express } from 'express'
import { type RateLimitOptions, rateLimit } from '../../../lib/middleware/rate-limit/index.ts'
import { serveApp } from '../../support/app-server.ts'

/** An app of somebody else: no other middleware of ours, and an error handler of its own. */
export async function shop(t: TestContext, options: RateLimitOptions, before?: (app: Express) => void) {
  let handled = 0
  const app = await serveApp((app) => {
    before?.(app)
    app.use(rateLimit(options))
    app.get('/', (_req, res) => {
      handled++
      res.send('ok')
    })
    const own: ErrorRequestHandler = (error: Error & { status?: number }, _req, res, _next) => {
      res.status(error.status ?? 500).send(error.message)
    }
    app.use(own)
  })
  t.after(app.close)
  return {
    get handled() {
      return handled
    },
    ask: (headers: Record<string, string> = {}, signal: AbortSignal | null = null) =>
      fetch(app.url, { headers, signal }),
  }
}
