import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import express, { type RequestHandler } from 'express'
import { authenticate, memoryKeyDirectory } from '../../lib/authenticate/index.ts'
import { beginCall } from '../../lib/begin-call/index.ts'
import type { Call } from '../../lib/call/index.ts'
import { type CallLogEntry, CallLogWriter, callLog, MemoryCallStore } from '../../lib/call-log/index.ts'
import { loadConfig } from '../../lib/catalog/index.ts'
import { errorEnvelope } from '../../lib/error-envelope/index.ts'
import { type IdempotencyOptions, idempotency } from '../../lib/idempotency/index.ts'
import { OPERATIONS } from '../../lib/operations/index.ts'
import { readRequest } from '../../lib/read-request/index.ts'
import { LineRegistry, type RouteOptions, route } from '../../lib/route/index.ts'
import { type RecordingLogger, recordingLogger } from '../support/app-server.ts'
import { type Exchange, readExchange } from '../support/exchange.ts'
import { chatBody, KEY, listen } from '../support/gateway.ts'

export const OTHER_KEY = 'sk-test-other'
export const CHAT = '/v1/chat/completions'

export interface KeyedGatewayOptions {
  /** URLs of the upstreams, in the order in which they are tried. */
  lines: readonly string[]
  /** Members of every line's config. */
  line?: Record<string, unknown>
  idempotency?: IdempotencyOptions
  /** What stands between `idempotency` and `route`. */
  further?: RequestHandler
  route?: Partial<RouteOptions>
}

/** A gateway with `idempotency` in its chain. */
export interface KeyedGateway {
  readonly url: string
  readonly logger: RecordingLogger
  /** Calls that have not ended. */
  readonly openCalls: ReadonlySet<Call>
  /** POSTs a chat with an Idempotency-Key, if one is given. */
  post(key: string | undefined, body?: unknown, init?: RequestInit): Promise<Response>
  /** The same, read to its end. */
  exchange(key: string | undefined, body?: unknown, init?: RequestInit): Promise<Exchange>
  /** The log entry of a request id; waits for it. */
  entry(requestId: string): Promise<CallLogEntry>
  close(): Promise<void>
}

export async function startKeyedGateway(options: KeyedGatewayOptions): Promise<KeyedGateway> {
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
  const logger = recordingLogger()
  const store = new MemoryCallStore()
  const writer = new CallLogWriter({ store })
  const lines = new LineRegistry()
  const openCalls = new Set<Call>()
  const onBegin = (call: Call): void => {
    openCalls.add(call)
    call.onEnd('test', () => void openCalls.delete(call))
  }
  const pass: RequestHandler = (_req, _res, next) => next()
  const app = express()
  app.use(
    beginCall({ logger, onBegin }),
    callLog({ writer }),
    authenticate({ keys: memoryKeyDirectory(config) }),
  )
  app.post(
    OPERATIONS.map(({ path }) => path),
    readRequest({ catalog }),
    idempotency({ logger, ...options.idempotency }),
    options.further ?? pass,
    route({ catalog, lines, ...options.route }),
  )
  app.use(errorEnvelope())
  const server: Server = await listen(app)
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const post = (key: string | undefined, body: unknown = chatBody(), init: RequestInit = {}) =>
    postTo(url, key, body, init)
  return {
    url,
    logger,
    openCalls,
    post,
    exchange: async (key, body, init) => readExchange(await post(key, body, init)),
    async entry(requestId) {
      for (;;) {
        await writer.flush()
        const found = await store.find(requestId)
        if (found) return found
        await new Promise((resolve) => setTimeout(resolve, 5))
      }
    },
    async close() {
      server.close()
      server.closeAllConnections()
      await lines.close()
      await writer.close()
    },
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
