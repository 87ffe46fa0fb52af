import express, { type Express } from 'express'
import {
  authenticate,
  beginCall,
  CallLogWriter,
  callLog,
  callLogRoutes,
  errorEnvelope,
  type GatewayConfig,
  LineRegistry,
  type Logger,
  modelRoutes,
  readRequest,
  route,
  unknownPath,
} from 'express-model-gateway'
import { OPERATIONS } from 'express-model-gateway/operations'
import { accessLog } from './access-log.ts'
import type { Readiness } from './readiness.ts'
import type { Stores } from './stores.ts'

/** What the gateway is put together from. */
export interface GatewayParts {
  readonly config: GatewayConfig
  readonly stores: Stores
  readonly logger: Logger
  readonly readiness: Readiness
}

/** The gateway as an Express app, and how to end what it keeps open. */
export interface Gateway {
  readonly app: Express
  /** Writes what is queued and ends the connections to upstreams. */
  close(): Promise<void>
}

/** Puts the middlewares into their order. */
export function createGateway({ config, stores, logger, readiness }: GatewayParts): Gateway {
  const { catalog, region, routing, bodyLimitBytes } = config
  const lines = new LineRegistry()
  const writer = new CallLogWriter({ store: stores.calls, logger })

  const app = express()
  app.disable('x-powered-by')
  app.disable('etag')
  app.set('trust proxy', config.trustProxy)

  app.use(beginCall({ logger, onBegin: accessLog(logger) }))
  app.get('/healthz', (_req, res) => void res.json({ status: 'ok' }))
  app.get('/readyz', readiness.handler())

  app.use(['/v1', '/api/v3'], callLog({ writer }), authenticate({ keys: stores.keys, region }))
  app.post(
    OPERATIONS.map(({ path }) => path),
    readRequest({ catalog, bodyLimitBytes }),
    route({ catalog, lines, region, ...routing }),
  )
  app.use('/v1', modelRoutes({ catalog, lineStatus: (line) => lines.status(line) }))
  app.use('/v1', callLogRoutes({ store: stores.calls }))

  app.use(unknownPath())
  app.use(errorEnvelope({ logger }))

  return {
    app,
    async close() {
      await writer.close()
      await lines.close()
    },
  }
}
