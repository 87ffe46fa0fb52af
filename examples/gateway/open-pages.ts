import type { Express, RequestHandler } from 'express'
import type { GatewayConfig } from 'express-model-gateway'
import { openApiDocument } from 'express-model-gateway/openapi'
import { OPERATIONS } from 'express-model-gateway/operations'
import manifest from 'express-model-gateway/package.json' with { type: 'json' }
import { DEPLOYMENT_ENDPOINTS } from './azure-paths.ts'
import { consolePage } from './console-page.ts'
import type { LiveConfig } from './live-config.ts'
import { noBody } from './no-body.ts'
import { ofMemory } from './of-memory.ts'
import type { Readiness } from './readiness.ts'

/** What the pages without a key need. */
export interface OpenPages {
  readonly readiness: Readiness
  readonly live: LiveConfig
}

/** What the pages of operators need. */
export interface AdminPages {
  /** Signs operators in at a provider. */
  readonly signInPage: RequestHandler
  /** Answers `GET /metrics`; undefined = there is none. */
  readonly metricsPage: RequestHandler | undefined
}

/** Mounts the pages that need no key. */
export function mountOpenPages(app: Express, { readiness, live }: OpenPages): void {
  app.use(['/healthz', '/readyz', '/openapi.json'], noBody)
  app.get('/healthz', (_req, res) => void res.json({ status: 'ok' }))
  app.get('/readyz', readiness.handler())
  app.get('/openapi.json', live.following('passThrough', describe))
}

/** Mounts the console and the metrics, which need no key either. */
export function mountAdminPages(app: Express, { metricsPage, signInPage }: AdminPages): void {
  app.use(['/console', '/metrics'], noBody)
  app.use('/console/sign-in', signInPage)
  app.use('/console', consolePage())
  if (metricsPage) app.get('/metrics', metricsPage)
}

function describe(passThrough: GatewayConfig['passThrough']): RequestHandler {
  const { version } = manifest
  const options = { version, operations: OPERATIONS, passThrough, more: DEPLOYMENT_ENDPOINTS }
  return ofMemory(() => openApiDocument(options))
}
