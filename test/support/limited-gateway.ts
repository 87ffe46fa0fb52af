import type { RequestHandler } from 'express'
import { OPERATIONS } from '../../lib/core/operations/index.ts'
import { errorEnvelope, unknownPath } from '../../lib/middleware/error-envelope/index.ts'
import { type IdempotencyStore, idempotency } from '../../lib/middleware/idempotency/index.ts'
import { type LimitStore, rateLimit } from '../../lib/middleware/rate-limit/index.ts'
import { readRequest } from '../../lib/middleware/read-request/index.ts'
import { type RouteOptions, route } from '../../lib/middleware/route/index.ts'
import { loadConfig } from './any-config.ts'
import { type ChainServer, serveChain } from './chain-server.ts'
import { type Exchange, type Mode, pathOf, readExchange } from './exchange.ts'
import { KEY } from './gateway.ts'

export interface LimitedGatewayOptions {
  /** The whole config, as it is written. */
  config: unknown
  limits: LimitStore
  claims: IdempotencyStore
  /** A middleware between `rateLimit` and `route`. */
  further?: RequestHandler
  route?: Partial<RouteOptions>
}

/** The options that a request is sent with. */
export interface Sending {
  /** The Idempotency-Key. */
  key?: string
  /** The API key; the one of every test gateway when it is left out. */
  secret?: string
  signal?: AbortSignal
}

/** The gateway's chain in its order, with every step that takes something. */
export interface LimitedGateway extends ChainServer {
  post(mode: Mode, body: unknown, sending?: Sending): Promise<Response>
  /** The same, read to its end. */
  exchange(mode: Mode, body: unknown, sending?: Sending): Promise<Exchange>
}

/** Far more than the default: a busy machine must not look like a store that is away. */
export const STORE_TIMEOUT_MS = 10_000

export async function startLimitedGateway(options: LimitedGatewayOptions): Promise<LimitedGateway> {
  const config = loadConfig(options.config)
  const { catalog, region, routing, bodyLimitBytes } = config
  const pass: RequestHandler = (_req, _res, next) => next()
  const chain = await serveChain(config, (app, { logger, lines }) => {
    app.post(
      OPERATIONS.map(({ path }) => path),
      readRequest({ catalog, bodyLimitBytes }),
      idempotency({ store: options.claims, logger, storeTimeoutMs: STORE_TIMEOUT_MS }),
      rateLimit({ store: options.limits }),
      options.further ?? pass,
      route({ catalog, lines, region, ...routing, ...options.route }),
    )
    app.use(unknownPath(), errorEnvelope({ logger }))
  })
  const post = (mode: Mode, body: unknown, { key, secret = KEY, signal }: Sending = {}) =>
    fetch(chain.url + pathOf(mode), {
      method: 'POST',
      body: typeof body === 'string' ? body : JSON.stringify(body),
      headers: {
        authorization: `Bearer ${secret}`,
        'content-type': 'application/json',
        ...(key !== undefined && { 'idempotency-key': key }),
      },
      ...(signal && { signal }),
    })
  return {
    ...chain,
    post,
    exchange: async (mode, body, sending) => readExchange(await post(mode, body, sending)),
  }
}
