import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import express, { type RequestHandler } from 'express'
import { authenticate, memoryKeyDirectory } from '../../lib/authenticate/index.ts'
import { beginCall } from '../../lib/begin-call/index.ts'
import type { Call } from '../../lib/call/index.ts'
import { type CallLogEntry, CallLogWriter, callLog, MemoryCallStore } from '../../lib/call-log/index.ts'
import { loadConfig } from '../../lib/catalog/index.ts'
import { errorEnvelope, unknownPath } from '../../lib/error-envelope/index.ts'
import { type IdempotencyStore, idempotency } from '../../lib/idempotency/index.ts'
import { OPERATIONS } from '../../lib/operations/index.ts'
import { type LimitStore, rateLimit } from '../../lib/rate-limit/index.ts'
import { readRequest } from '../../lib/read-request/index.ts'
import { LineRegistry, type RouteOptions, route } from '../../lib/route/index.ts'
import { type RecordingLogger, recordingLogger } from './app-server.ts'
import { type Exchange, type Mode, pathOf, readExchange } from './exchange.ts'
import { KEY, listen } from './gateway.ts'

export interface LimitedGatewayOptions {
  /** The whole config, as it is written. */
  config: unknown
  limits: LimitStore
  claims: IdempotencyStore
  /** What stands between `rateLimit` and `route`. */
  further?: RequestHandler
  route?: Partial<RouteOptions>
}

/** What a request is sent with. */
export interface Sending {
  /** The Idempotency-Key. */
  key?: string
  /** The API key; the one of every test gateway when it is left out. */
  secret?: string
  signal?: AbortSignal
}

/** The gateway's chain in its order, with every step that takes something. */
export interface LimitedGateway {
  readonly logger: RecordingLogger
  /** Calls that have not ended. */
  readonly openCalls: ReadonlySet<Call>
  post(mode: Mode, body: unknown, sending?: Sending): Promise<Response>
  /** The same, read to its end. */
  exchange(mode: Mode, body: unknown, sending?: Sending): Promise<Exchange>
  /** The log entry of a request id; waits for it. */
  entry(requestId: string): Promise<CallLogEntry>
  close(): Promise<void>
}

/** Far more than the default: a busy machine must not look like a store that is away. */
export const STORE_TIMEOUT_MS = 10_000

export async function startLimitedGateway(options: LimitedGatewayOptions): Promise<LimitedGateway> {
  const config = loadConfig(options.config)
  const { catalog, region, routing, bodyLimitBytes } = config
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
    authenticate({ keys: memoryKeyDirectory(config), region }),
  )
  app.post(
    OPERATIONS.map(({ path }) => path),
    readRequest({ catalog, bodyLimitBytes }),
    idempotency({ store: options.claims, logger, storeTimeoutMs: STORE_TIMEOUT_MS }),
    rateLimit({ store: options.limits }),
    options.further ?? pass,
    route({ catalog, lines, region, ...routing, ...options.route }),
  )
  app.use(unknownPath(), errorEnvelope({ logger }))
  const server: Server = await listen(app)
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const post = (mode: Mode, body: unknown, { key, secret = KEY, signal }: Sending = {}) =>
    fetch(url + pathOf(mode), {
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
    logger,
    openCalls,
    post,
    exchange: async (mode, body, sending) => readExchange(await post(mode, body, sending)),
    async entry(requestId) {
      for (let tries = 0; tries < 1000; tries++) {
        await writer.flush()
        const found = await store.find(requestId)
        if (found) return found
        await new Promise((resolve) => setTimeout(resolve, 5))
      }
      throw new Error(`no call-log entry for ${requestId}`)
    },
    async close() {
      server.close()
      server.closeAllConnections()
      await lines.close()
      await writer.close()
    },
  }
}
