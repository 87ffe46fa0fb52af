import { hash } from 'node:crypto'
import type { Express, NextFunction, Request, RequestHandler, Response } from 'express'
import { callOf } from 'express-model-gateway'
import { type Endpoint, openApiDocument } from 'express-model-gateway/openapi'
import { OPERATIONS } from 'express-model-gateway/operations'
import manifest from 'express-model-gateway/package.json' with { type: 'json' }
import { DEPLOYMENT_ENDPOINTS } from './azure-paths.ts'
import type { LiveConfig } from './config/reload.ts'
import { consolePage } from './console-page.ts'
import type { Readiness } from './serving/readiness.ts'

/** The options of the pages for everybody. */
export interface OpenPages {
  /** Whether an endpoint is served at the same place. */
  readonly serves: (endpoint: Endpoint) => boolean
  readonly readiness: Readiness
  readonly live: LiveConfig
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
  app.use(['/healthz', '/readyz', '/openapi.json'], refuseLongBodies)
  app.get('/healthz', (_req, res) => void res.json({ status: 'ok' }))
  app.get('/readyz', readiness.handler())
  app.get(
    '/openapi.json',
    live.following('passThrough', (passThrough) => {
      const { version } = manifest
      const options = { version, operations: OPERATIONS, passThrough, more: DEPLOYMENT_ENDPOINTS }
      return cachedDocument(() => openApiDocument({ ...options, only: serves }))
    }),
  )
}

/** The options of the pages for operators. */
export interface OperatorPages {
  /** Signs operators in at a provider. */
  readonly signInPage: RequestHandler
  /** Answers `GET /metrics`; undefined = there is none. */
  readonly metricsPage: RequestHandler | undefined
}

/** Mounts the console and the metrics, which need no key either. */
export function mountOperatorPages(app: Express, { metricsPage, signInPage }: OperatorPages): void {
  app.use(['/console', '/metrics'], refuseLongBodies)
  app.get('/', (req, res) => {
    // Relative, so that it leads there below a proxy's prefix too.
    const [path = ''] = req.originalUrl.split('?')
    res.redirect(`${path.slice(path.lastIndexOf('/') + 1) || '.'}/console`)
  })
  app.use('/console/sign-in', signInPage)
  app.use('/console', consolePage())
  if (metricsPage) app.get('/metrics', metricsPage)
}

/** Answers with a document, which is made when somebody first asks for it: its bytes and its tag then stay. */
function cachedDocument(make: () => object): RequestHandler {
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
function refuseLongBodies(req: Request, _res: Response, next: NextFunction): void {
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = req.headers
  next(
    encoding === undefined && Number(length) <= MAX_BODY_BYTES
      ? undefined
      : callOf(req).refuse('request_too_large'),
  )
}
