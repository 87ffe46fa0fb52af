import { hash } from 'node:crypto'
import type { Express, NextFunction, Request, RequestHandler, Response } from 'express'
import { callOf, type GatewayConfig } from 'express-model-gateway'
import { type Endpoint, openApiDocument } from 'express-model-gateway/openapi'
import { OPERATIONS } from 'express-model-gateway/operations'
import manifest from 'express-model-gateway/package.json' with { type: 'json' }
import { DEPLOYMENT_ENDPOINTS } from './azure-paths.ts'
import { consolePage } from './console-page.ts'
import type { LiveConfig } from './live-config.ts'
import type { Readiness } from './readiness.ts'

/** What the pages without a key need. */
export interface OpenPages {
  /** Whether an endpoint is served at the same place. */
  readonly serves: (endpoint: Endpoint) => boolean
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

/** Whether an endpoint is served to callers, where operators have a port of their own. */
export function isForCallers({ auth }: Endpoint): boolean {
  return auth !== 'admin'
}

/** Whether an endpoint is served to operators, where they have a port of their own: what the console shows is. */
export function isForOperators({ auth, tag }: Endpoint): boolean {
  return auth === 'admin' || tag === 'Health' || tag === 'Calls and models'
}

/** Mounts the pages that need no key. */
export function mountOpenPages(app: Express, { readiness, live, serves }: OpenPages): void {
  app.use(['/healthz', '/readyz', '/openapi.json'], noBody)
  app.get('/healthz', (_req, res) => void res.json({ status: 'ok' }))
  app.get('/readyz', readiness.handler())
  app.get(
    '/openapi.json',
    live.following('passThrough', (rules) => describe(rules, serves)),
  )
}

/** Mounts the console and the metrics, which need no key either. */
export function mountAdminPages(app: Express, { metricsPage, signInPage }: AdminPages): void {
  app.use(['/console', '/metrics'], noBody)
  app.use('/console/sign-in', signInPage)
  app.use('/console', consolePage())
  if (metricsPage) app.get('/metrics', metricsPage)
}

function describe(passThrough: GatewayConfig['passThrough'], only: OpenPages['serves']): RequestHandler {
  const { version } = manifest
  const options = { version, operations: OPERATIONS, passThrough, more: DEPLOYMENT_ENDPOINTS, only }
  return ofMemory(() => openApiDocument(options))
}

/** Answers with a document, which is made when somebody first asks for it: its bytes and its tag then stay. */
function ofMemory(make: () => object): RequestHandler {
  let made: { readonly body: Buffer; readonly etag: string } | undefined
  return (_req, res) => {
    made ??= bytesOf(make())
    res.set('etag', made.etag).type('json').send(made.body)
  }
}

function bytesOf(document: object): { readonly body: Buffer; readonly etag: string } {
  const body = Buffer.from(JSON.stringify(document))
  return { body, etag: `"${hash('sha256', body)}"` }
}

const MAX_BODY_BYTES = 64 * 1024

/**
 * Refuses long bodies on paths that nobody needs a key for. Node would otherwise read a body to its end behind the answer,
 * however long it is.
 */
function noBody(req: Request, _res: Response, next: NextFunction): void {
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = req.headers
  next(
    encoding === undefined && Number(length) <= MAX_BODY_BYTES
      ? undefined
      : callOf(req).refuse('request_too_large'),
  )
}
