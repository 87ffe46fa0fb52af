import type { TestContext } from 'node:test'
import type { RequestHandler } from 'express'
import { loadConfig } from '../../../lib/core/config/index.ts'
import { OPERATIONS } from '../../../lib/core/operations/index.ts'
import { callLogRoutes } from '../../../lib/endpoints/calls/index.ts'
import { errorEnvelope } from '../../../lib/middleware/error-envelope/index.ts'
import { type IdempotencyOptions, idempotency } from '../../../lib/middleware/idempotency/index.ts'
import { readRequest } from '../../../lib/middleware/read-request/index.ts'
import { type RouteOptions, route } from '../../../lib/middleware/route/index.ts'
import { type ChainServer, serveChain } from '../../support/chain-server.ts'
import { type Exchange, readExchange } from '../../support/exchange.ts'
import { chatBody, KEY } from '../../support/gateway.ts'

export const OTHER_KEY = 'sk-test-other'
export const CHAT = '/v1/chat/completions'

export interface KeyedGatewayOptions {
  /** URLs of the upstreams, in the order in which they are tried. */
  lines: readonly string[]
  /** Members of every line's config. */
  line?: Record<string, unknown>
  idempotency?: IdempotencyOptions
  /** The middleware between `idempotency` and `route`. */
  further?: RequestHandler
  route?: Partial<RouteOptions>
}

/** A gateway with `idempotency` in its chain. */
export interface KeyedGateway extends ChainServer {
  /** POSTs a chat with an Idempotency-Key, if one is given. */
  post(key: string | undefined, body?: unknown, init?: RequestInit): Promise<Response>
  /** The same, read to its end. */
  exchange(key: string | undefined, body?: unknown, init?: RequestInit): Promise<Exchange>
}

async function startKeyedGateway(options: KeyedGatewayOptions): Promise<KeyedGateway> {
  const config = loadConfig({
    accounts: [{ id: 'acme' }, { id: 'globex' }],
    keys: [
      { id: 'key_acme', account: 'acme', secret: KEY },
      { id: 'key_globex', account: 'globex', secret: OTHER_KEY },
    ],
    models: [{ id: 'chat', kind: 'chat' }],
    lines: options.lines.map((url, i) => ({
      id: `line-${i}`,
      provider: `provider-${i}`,
      protocol: 'openai',
      baseUrl: `${url}/v1`,
      apiKey: 'upstream-key',
      priority: i,
      models: { chat: 'upstream-chat' },
      ...options.line,
    })),
  })
  const { catalog } = config
  const pass: RequestHandler = (_req, _res, next) => next()
  const chain = await serveChain(config, (app, { logger, lines, store }) => {
    app.post(
      OPERATIONS.map(({ path }) => path),
      readRequest({ catalog }),
      idempotency({ logger, storeTimeoutMs: 10_000, ...options.idempotency }),
      options.further ?? pass,
      route({ catalog, lines, ...options.route }),
    )
    app.use('/v1', callLogRoutes({ store }))
    app.use(errorEnvelope())
  })
  const post = (key: string | undefined, body: unknown = chatBody(), init: RequestInit = {}) =>
    postTo(chain.url, key, body, init)
  return {
    ...chain,
    post,
    exchange: async (key, body, init) => readExchange(await post(key, body, init)),
  }
}

/** A gateway that is closed at the end of the test, however that ends. */
export async function keyedGateway(t: TestContext, options: KeyedGatewayOptions): Promise<KeyedGateway> {
  const gateway = await startKeyedGateway(options)
  t.after(() => gateway.close())
  return gateway
}

/** POSTs a chat to a gateway, with an Idempotency-Key if one is given. */
export function postTo(
  url: string,
  key: string | undefined,
  body: unknown = chatBody(),
  { headers, ...init }: RequestInit = {},
): Promise<Response> {
  return fetch(url + CHAT, {
    method: 'POST',
    body: typeof body === 'string' ? body : JSON.stringify(body),
    ...init,
    headers: {
      authorization: `Bearer ${KEY}`,
      'content-type': 'application/json',
      ...(key !== undefined && { 'idempotency-key': key }),
      ...(headers as Record<string, string>),
    },
  })
}
