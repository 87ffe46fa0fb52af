import type { TestContext } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import OpenAI from 'openai'
import type { Catalog } from '../../lib/core/catalog/index.ts'
import { loadConfig } from '../../lib/core/config/index.ts'
import { OPERATIONS } from '../../lib/core/operations/index.ts'
import {
  MemoryTaskStore,
  TaskSettler,
  VIDEO_CREATE_PATHS,
  VIDEO_PATHS,
  type VideoEndpointsOptions,
  videoEndpoints,
} from '../../lib/endpoints/video/index.ts'
import { accountWallet, MemoryLedger } from '../../lib/ledger/index.ts'
import { authenticate, memoryKeyDirectory } from '../../lib/middleware/authenticate/index.ts'
import type { MemoryKeyDirectory } from '../../lib/middleware/authenticate/memory-key-directory.ts'
import { beginCall } from '../../lib/middleware/begin-call/index.ts'
import {
  type CallLogEntry,
  CallLogWriter,
  callLog,
  MemoryCallStore,
} from '../../lib/middleware/call-log/index.ts'
import { errorEnvelope, unknownPath } from '../../lib/middleware/error-envelope/index.ts'
import { idempotency, MemoryIdempotencyStore } from '../../lib/middleware/idempotency/index.ts'
import { rateLimit } from '../../lib/middleware/rate-limit/index.ts'
import { readRequest } from '../../lib/middleware/read-request/index.ts'
import { LineAccess, LineRegistry, route } from '../../lib/middleware/route/index.ts'
import { type RecordingLogger, recordingLogger, serveApp } from './app-server.ts'
import { startVideoUpstream, type VideoUpstream } from './video-upstream.ts'

/** The account acme's key; the other's is {@link OTHER_KEY}. */
export const KEY = 'sk-video-1'
export const OTHER_KEY = 'sk-video-2'
export const TASKS = '/api/v3/contents/generations/tasks'

export type LineKind = 'openai' | 'ark'

/** A gateway that makes videos, with money, keys and limits in memory. */
export interface VideoGateway {
  readonly url: string
  readonly logger: RecordingLogger
  /** The log entry of a request id. */
  entry(response: Response | string): Promise<CallLogEntry>
  readonly ledger: MemoryLedger
  readonly tasks: MemoryTaskStore
  readonly keys: MemoryKeyDirectory
  readonly catalog: Catalog
  readonly lines: LineRegistry
  readonly sdk: OpenAI
  /** Makes a request with a key. */
  send(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Response>
  /** Spent, and leased, of the account acme. */
  money(): Promise<{ spent: bigint; leased: bigint }>
}

export interface VideoGatewayOptions {
  /** Lines of the model "video", in their order; further members as the config writes them. */
  lines: readonly { kind: LineKind; url: string; [member: string]: unknown }[]
  config?: Record<string, unknown>
  video?: Partial<VideoEndpointsOptions>
  /** Polls what nobody asks about. */
  settles?: boolean
}

/** Starts a gateway; it is closed at the end of the test. The model "video" costs 0.10 a second. */
export async function startVideoGateway(t: TestContext, options: VideoGatewayOptions): Promise<VideoGateway> {
  const config = loadConfig({
    accounts: [{ id: 'acme', balance: '100' }, { id: 'other' }],
    keys: [
      { id: 'key_acme', account: 'acme', secret: KEY },
      { id: 'key_other', account: 'other', secret: OTHER_KEY },
    ],
    models: [
      { id: 'video', kind: 'video', price: { perSecond: '0.10' } },
      { id: 'chat', kind: 'chat' },
    ],
    lines: options.lines.map(({ kind, url, ...line }, i) => ({
      id: `line-${i}`,
      provider: `provider-${i}`,
      protocol: kind,
      baseUrl: kind === 'ark' ? `${url}/api/v3` : `${url}/v1`,
      apiKey: `upstream-key-${i}`,
      priority: i,
      models: { video: `upstream-video-${i}`, ...(kind === 'openai' && { chat: 'upstream-chat' }) },
      ...line,
    })),
    ...options.config,
  })
  const { catalog, region, bodyLimitBytes, routing } = config
  const ledger = new MemoryLedger(config)
  const claims = new MemoryIdempotencyStore()
  const store = new MemoryCallStore()
  const writer = new CallLogWriter({ store })
  const tasks = new MemoryTaskStore({ money: ledger.holds, claims, calls: store })
  const logger = recordingLogger()
  const lines = new LineRegistry()
  const keys = memoryKeyDirectory(config)
  const access = new LineAccess({ catalog, lines, region, ...routing })
  const video = videoEndpoints({ tasks, calls: store, lines: access, logger, ...options.video })
  const settler = options.settles
    ? new TaskSettler({ store: tasks, clients: video.clients, logger, shortestPollMs: 20, pollMs: 10 })
    : undefined
  const server = await serveApp((app) => {
    app.set('trust proxy', config.trustProxy)
    app.use(beginCall({ logger }), callLog({ writer }))
    app.get('/v1/videos/:id/content', video.signedContent)
    app.use(authenticate({ keys, region }))
    app.post(
      OPERATIONS.map(({ path }) => path),
      readRequest({ catalog, bodyLimitBytes }),
      route({ catalog, lines }),
    )
    const once = [idempotency({ store: claims, logger, unresolved: video.unresolved }), rateLimit()]
    app.post(
      VIDEO_CREATE_PATHS,
      video.findSource,
      readRequest({ catalog, bodyLimitBytes, operation: video.operationOf }),
      once,
      video.create,
    )
    app.use(VIDEO_PATHS, once, video.routes)
    app.use(unknownPath(), errorEnvelope())
  })
  t.after(async () => {
    await settler?.close()
    await server.close()
    await video.close()
    await lines.close()
    await writer.close()
  })
  const { url } = server
  return {
    url,
    logger,
    async entry(response) {
      const id = typeof response === 'string' ? response : response.headers.get('x-request-id')
      for (let tries = 0; tries < 1000; tries++) {
        await writer.flush()
        const found = await store.find(id ?? '')
        if (found) return found
        await pause(5)
      }
      throw new Error(`no call-log entry for ${id}`)
    },
    ledger,
    tasks,
    keys,
    catalog,
    lines,
    sdk: new OpenAI({ apiKey: KEY, baseURL: `${url}/v1`, maxRetries: 0 }),
    send: (method, path, body, headers = {}) =>
      fetch(url + path, {
        method,
        headers: {
          authorization: `Bearer ${KEY}`,
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      }),
    async money() {
      const [account] = await ledger.wallets([accountWallet('acme')])
      return { spent: account?.spent ?? 0n, leased: account?.leased ?? 0n }
    },
  }
}

/** An upstream that is closed at the end of the test. */
export async function videoUpstreamFor(t: TestContext): Promise<VideoUpstream> {
  const upstream = await startVideoUpstream()
  t.after(() => upstream.close())
  return upstream
}
