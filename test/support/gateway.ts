import type { Server } from 'node:http'
import type { Express } from 'express'
import { type LoadedConfig, loadConfig } from '../../lib/core/config/index.ts'
import { OPERATIONS } from '../../lib/core/operations/index.ts'
import { callLogRoutes } from '../../lib/endpoints/calls/index.ts'
import { modelRoutes } from '../../lib/endpoints/models/index.ts'
import { STORED_RESPONSE_PATH, storedResponse } from '../../lib/endpoints/responses/index.ts'
import { errorEnvelope, unknownPath } from '../../lib/middleware/error-envelope/index.ts'
import { readRequest } from '../../lib/middleware/read-request/index.ts'
import { type ResourceStore, references, UpstreamResources } from '../../lib/middleware/references/index.ts'
import { type RouteOptions, route } from '../../lib/middleware/route/index.ts'
import type { LoggedLine } from './app-server.ts'
import { type ChainServer, serveChain } from './chain-server.ts'

/** The key every test gateway knows. */
export const KEY = 'sk-test-1'

/** A whole chain on loopback, with the memory stores. */
export interface TestGateway extends ChainServer {
  readonly config: LoadedConfig
  /** The lines of the log: level, message and fields. */
  readonly logged: readonly LoggedLine[]
  /** POSTs JSON with the test key. */
  post(path: string, body: unknown, init?: RequestInit): Promise<Response>
}

export interface TestGatewayOptions {
  /** Lines as the config writes them; `model`, `id`, `provider` and `protocol` have defaults. */
  lines: readonly LineSeed[]
  /** Replaces or adds members of the config. */
  config?: Record<string, unknown>
  /** Further options of `route`. */
  route?: Partial<RouteOptions>
  /** The store of what lines keep; one in memory of its own else. */
  resourceStore?: ResourceStore
}

export interface LineSeed {
  url: string
  id?: string
  protocol?: 'openai' | 'anthropic' | 'ark'
  [member: string]: unknown
}

/** Starts a gateway over some lines. The model "chat" is served by all of them, in the order given. */
export async function startGateway({
  lines: seeds,
  config: extra,
  route: routeOptions,
  resourceStore: keptStore,
}: TestGatewayOptions): Promise<TestGateway> {
  const config = loadConfig({
    accounts: [{ id: 'acme' }],
    keys: [{ id: 'key_acme', account: 'acme', secret: KEY }],
    models: [{ id: 'chat', kind: 'chat' }],
    lines: seeds.map(({ url, ...line }, i) => ({
      id: `line-${i}`,
      provider: `provider-${i}`,
      protocol: 'openai',
      baseUrl: `${url}/v1`,
      apiKey: `upstream-key-${i}`,
      priority: i,
      models: { chat: `upstream-chat-${i}` },
      ...line,
    })),
    ...extra,
  })
  const { catalog, region, bodyLimitBytes, bodyBudgetBytes, routing } = config
  const chain = await serveChain(config, (app, { store, lines, logger }) => {
    const resources = new UpstreamResources({ logger, ...(keptStore && { store: keptStore }) })
    const toLine = route({ catalog, lines, region, ...routing, ...routeOptions })
    app.post(
      OPERATIONS.map(({ path }) => path),
      readRequest({ catalog, bodyLimitBytes, bodyBudgetBytes }),
      references({ resources }),
      toLine,
    )
    app.all(STORED_RESPONSE_PATH, storedResponse({ resources, catalog }), toLine)
    app.use(
      '/v1',
      callLogRoutes({ store }),
      modelRoutes({ catalog, lineStatus: (line, view) => lines.outline(line, view) }),
    )
    app.use(unknownPath(), errorEnvelope())
  })
  return {
    ...chain,
    config,
    logged: chain.logger.lines,
    post: (path, body, init = {}) =>
      fetch(chain.url + path, {
        method: 'POST',
        body: typeof body === 'string' ? body : JSON.stringify(body),
        ...init,
        headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', ...init.headers },
      }),
  }
}

/** Listens on a free port of loopback. */
export function listen(app: Express): Promise<Server> {
  return new Promise((resolve) => {
    const server = app.listen(0, '127.0.0.1', () => resolve(server))
  })
}

/** The smallest body of a chat call. */
export const chatBody = (extra: Record<string, unknown> = {}) => ({
  model: 'chat',
  messages: [{ role: 'user', content: 'hi' }],
  ...extra,
})

/** The smallest body of a message call. */
export const messageBody = (extra: Record<string, unknown> = {}) => ({
  model: 'chat',
  max_tokens: 100,
  messages: [{ role: 'user', content: 'hi' }],
  ...extra,
})
