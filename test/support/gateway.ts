import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { authenticate, memoryKeyDirectory } from '../../lib/authenticate/index.ts'
import { beginCall } from '../../lib/begin-call/index.ts'
import type { Call, Logger } from '../../lib/call/index.ts'
import {
  type CallLogEntry,
  CallLogWriter,
  callLog,
  callLogRoutes,
  MemoryCallStore,
} from '../../lib/call-log/index.ts'
import { type GatewayConfig, loadConfig } from '../../lib/catalog/index.ts'
import { errorEnvelope, unknownPath } from '../../lib/error-envelope/index.ts'
import { modelRoutes } from '../../lib/models/index.ts'
import { OPERATIONS } from '../../lib/operations/index.ts'
import { readRequest } from '../../lib/read-request/index.ts'
import { LineRegistry, type RouteOptions, route } from '../../lib/route/index.ts'

/** The key every test gateway knows. */
export const KEY = 'sk-test-1'

/** A whole chain on loopback, with the memory stores. */
export interface TestGateway {
  readonly url: string
  readonly config: GatewayConfig
  readonly lines: LineRegistry
  readonly store: MemoryCallStore
  /** Calls that have not ended. */
  readonly openCalls: ReadonlySet<Call>
  /** What was logged: level, message and fields. */
  readonly logged: { level: string; message: string; fields: any }[]
  /** The log entry of a request id; waits for it. */
  entry(requestId: string | null): Promise<CallLogEntry>
  /** POSTs JSON with the test key. */
  post(path: string, body: unknown, init?: RequestInit): Promise<Response>
  close(): Promise<void>
}

export interface TestGatewayOptions {
  /** Lines as the config writes them; `model`, `id`, `provider` and `protocol` have defaults. */
  lines: readonly LineSeed[]
  /** Replaces or adds members of the config. */
  config?: Record<string, unknown>
  /** Further options of `route`. */
  route?: Partial<RouteOptions>
}

export interface LineSeed {
  url: string
  id?: string
  protocol?: 'openai' | 'anthropic'
  [member: string]: unknown
}

/** Starts a gateway over some lines. The model "chat" is served by all of them, in the order given. */
export async function startGateway({
  lines: seeds,
  config: extra,
  route: routeOptions,
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
  const logged: TestGateway['logged'] = []
  const log = (level: string) => (fields: object, message: string) =>
    void logged.push({ level, message, fields })
  const logger: Logger = { info: log('info'), warn: log('warn'), error: log('error') }
  const store = new MemoryCallStore()
  const writer = new CallLogWriter({ store })
  const lines = new LineRegistry()
  const openCalls = new Set<Call>()
  const onBegin = (call: Call): void => {
    openCalls.add(call)
    call.onEnd('test', () => void openCalls.delete(call))
  }
  const { catalog, region, bodyLimitBytes, routing } = config
  const app = express()
  app.disable('x-powered-by')
  app.set('trust proxy', config.trustProxy)
  app.use(
    beginCall({ logger, onBegin }),
    callLog({ writer }),
    authenticate({ keys: memoryKeyDirectory(config), region }),
  )
  app.post(
    OPERATIONS.map(({ path }) => path),
    readRequest({ catalog, bodyLimitBytes }),
    route({ catalog, lines, region, ...routing, ...routeOptions }),
  )
  app.use('/v1', callLogRoutes({ store }), modelRoutes({ catalog, lineStatus: (line) => lines.status(line) }))
  app.use(unknownPath(), errorEnvelope())
  const server = await listen(app)
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url,
    config,
    lines,
    store,
    openCalls,
    logged,
    async entry(requestId) {
      for (let tries = 0; tries < 100; tries++) {
        await writer.flush()
        const found = await store.find(requestId ?? '')
        if (found) return found
        await new Promise((resolve) => setTimeout(resolve, 10))
      }
      throw new Error(`no call-log entry for ${requestId}`)
    },
    post: (path, body, init = {}) =>
      fetch(url + path, {
        method: 'POST',
        body: typeof body === 'string' ? body : JSON.stringify(body),
        ...init,
        headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', ...init.headers },
      }),
    async close() {
      server.close()
      server.closeAllConnections()
      await lines.close()
      await writer.close()
    },
  }
}

/** Listens on a free port of loopback. */
export function listen(app: express.Express): Promise<Server> {
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
