/**
 * An existing app with its own routes, sessions and error handler. Two middlewares were added on the lines marked (1) and
 * (2): `authenticate` protects the API with keys, and `errorEnvelope` writes its errors in the form that the official SDKs
 * of model providers understand. All else is unchanged.
 */

import express, { type Express, type NextFunction, type Request, type Response } from 'express'
import { authenticate, callOf, errorEnvelope, memoryKeyDirectory } from 'express-model-gateway'

/** Creates the app. */
export function createApp(): Express {
  const app = express()

  app.get('/', (_req, res) => {
    res.type('html').send('<h1>A shop</h1>')
  })
  app.get('/orders/:id', (req, res) => {
    if (req.params.id !== '1') throw new Error('no such order')
    res.json({ id: 1, total: '12.50' })
  })

  const keys = memoryKeyDirectory({
    accounts: [{ id: 'partner' }],
    keys: [
      { id: 'key_1', account: 'partner', secret: 'sk-partner-1' },
      { id: 'key_old', account: 'partner', secret: 'sk-partner-0', expiresAt: '2026-01-01T00:00:00Z' },
    ],
  })
  const api = express.Router()
  api.use(authenticate({ keys })) // (1)
  api.use(express.json())
  api.post('/summaries', (req, res) => {
    const { accountId } = callOf(req).principal ?? {}
    const text = String(req.body?.text ?? '')
    res.json({ for: accountId, summary: text.split('. ')[0] })
  })
  api.use(errorEnvelope()) // (2)
  app.use('/api', api)

  app.use((error: Error, _req: Request, res: Response, _next: NextFunction) => {
    res.status(500).type('html').send(`<h1>Sorry</h1><p>${error.message}</p>`)
  })
  return app
}
