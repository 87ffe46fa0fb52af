import express, { type Express } from 'express'
import {
  authenticate,
  beginCall,
  type Call,
  CallLogWriter,
  callLog,
  callLogRoutes,
  errorEnvelope,
  type GatewayConfig,
  idempotency,
  LineRegistry,
  type Logger,
  modelRoutes,
  rateLimit,
  readRequest,
  route,
  unknownPath,
} from 'express-model-gateway'
import { OPERATIONS } from 'express-model-gateway/operations'
import { accessLog } from './access-log.ts'
import { OpenCalls } from './open-calls.ts'
import type { Readiness } from './readiness.ts'
import type { DurableStores, LimitStores } from './stores.ts'

/** What the gateway is put together from. */
export interface GatewayParts {
  readonly config: GatewayConfig
  readonly stores: DurableStores & Pick<LimitStores, 'limits'>
  readonly logger: Logger
  readonly readiness: Readiness
}

/** The gateway as an Express app, and how to end what it keeps open. */
export interface Gateway {
  readonly app: Express
  /** Waits for calls that go on without their caller, ends the connections to upstreams, writes what is queued. */
  close(): Promise<void>
}

/** For calls whose caller has left and whose upstream is drained. */
const CALLS_END_WITHIN_MS = 30_000

/** Puts the middlewares into their order. */
export function createGateway({ config, stores, logger, readiness }: GatewayParts): Gateway {
  const { catalog, region, routing, bodyLimitBytes } = config
  const lines = new LineRegistry()
  const writer = new CallLogWriter({ store: stores.calls, logger })
  const openCalls = new OpenCalls()
  const noteInAccessLog = accessLog(logger)

  const app = express()
  app.disable('x-powered-by')
  app.disable('etag')
  app.set('trust proxy', config.trustProxy)

  const onBegin = (call: Call): void => {
    noteInAccessLog(call)
    openCalls.add(call)
  }
  app.use(beginCall({ logger, onBegin }))
  app.get('/healthz', (_req, res) => void res.json({ status: 'ok' }))
  app.get('/readyz', readiness.handler())

  app.use(['/v1', '/api/v3'], callLog({ writer }), authenticate({ keys: stores.keys, region }))
  app.post(
    OPERATIONS.map(({ path }) => path),
    readRequest({ catalog, bodyLimitBytes }),
    idempotency({ store: stores.claims, logger }),
    rateLimit({ store: stores.limits, onStoreError: config.onStoreError }),
    route({ catalog, lines, region, ...routing }),
  )
  app.use('/v1', modelRoutes({ catalog, lineStatus: (line) => lines.status(line) }))
  app.use('/v1', callLogRoutes({ store: stores.calls }))

  app.use(unknownPath())
  app.use(errorEnvelope({ logger }))

  return {
    app,
    async close() {
      await openCalls.ended(CALLS_END_WITHIN_MS)
      await lines.close()
      await writer.close()
    },
  }
}
