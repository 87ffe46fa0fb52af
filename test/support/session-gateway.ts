import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { WebSocket } from 'ws'
import type { Call, OpenCall } from '../../lib/core/call/index.ts'
import { hashSecret, parseAmount } from '../../lib/core/catalog/index.ts'
import { type LoadedConfig, loadConfig } from '../../lib/core/config/index.ts'
import { LeasePool, MemoryLedger } from '../../lib/ledger/index.ts'
import { authenticate, type KeyDirectory } from '../../lib/middleware/authenticate/index.ts'
import {
  beginCall,
  cutStalledCallers,
  type UpgradeHandler,
  upgradeHandler,
} from '../../lib/middleware/begin-call/index.ts'
import { billingGuard } from '../../lib/middleware/billing-guard/index.ts'
import {
  type CallLogEntry,
  CallLogWriter,
  callLog,
  MemoryCallStore,
} from '../../lib/middleware/call-log/index.ts'
import { errorEnvelope, unknownPath } from '../../lib/middleware/error-envelope/index.ts'
import { forward } from '../../lib/middleware/forward/index.ts'
import { rateLimit } from '../../lib/middleware/rate-limit/index.ts'
import { readRequest } from '../../lib/middleware/read-request/index.ts'
import type { UpstreamResources } from '../../lib/middleware/references/index.ts'
import { LineRegistry, route } from '../../lib/middleware/route/index.ts'
import { type RawClient, rawClient, recordingLogger, serveApp } from './app-server.ts'
import type { CleanUp } from './clean-up.ts'
import { chatBody } from './gateway.ts'
import { until } from './until.ts'

/** The ways in which a call takes long. */
export type SessionKind = 'stream' | 'download' | 'upload' | 'websocket'
export const SESSION_KINDS: readonly SessionKind[] = ['stream', 'download', 'upload', 'websocket']

export interface SessionGatewayOptions {
  /** Members of the config: accounts, keys, and what replaces the rest. */
  config: Record<string, unknown>
  /** Where the line is. */
  upstream: string
  keys(config: LoadedConfig): KeyDirectory
  /** When callers that take nothing are cut, in milliseconds. */
  stalledMs?: number
  /** Which line keeps what for whom, on paths that are passed on. */
  resources?: UpstreamResources
  /** The balance of each account. */
  balance?: string
}

/** A chain with every way in which a call takes long. */
export interface SessionGateway {
  readonly url: string
  readonly port: number
  readonly server: Server
  readonly upgrades: UpgradeHandler
  readonly open: ReadonlySet<Call>
  readonly ledger: MemoryLedger
  readonly logged: readonly { level: string; message: string }[]
  /** The entries of ended calls of a key. */
  entriesOf(key: string): Promise<readonly CallLogEntry[]>
}

const PRICE = { perRequest: '0.01' }

export async function sessionGateway(
  cleanUp: CleanUp,
  { config: members, upstream, keys, stalledMs, resources: kept, balance = '10' }: SessionGatewayOptions,
): Promise<SessionGateway> {
  const config = loadConfig({
    models: [{ id: 'chat', kind: 'chat', price: { inputPerMillion: '1', outputPerMillion: '1' } }],
    lines: [
      {
        id: 'line',
        provider: 'p',
        protocol: 'openai',
        baseUrl: `${upstream}/v1`,
        models: { chat: 'upstream-chat' },
      },
    ],
    passThrough: ['/v1/bytes', '/v1/realtime'].map((path) => ({
      path,
      lines: ['line'],
      price: PRICE,
      raw: true,
    })),
    ...members,
  })
  const logger = recordingLogger()
  const { catalog, region } = config
  const ledger = new MemoryLedger({
    accounts: config.accounts.map(({ id }) => ({ id, balance })),
    keys: config.keys.map(({ id }) => ({ id })),
  })
  const pool = new LeasePool({ ledger, logger })
  const store = new MemoryCallStore()
  const writer = new CallLogWriter({ store, logger, flushMs: 0 })
  const lines = new LineRegistry()
  const open = new Set<Call>()
  const onBegin = (call: Call): void => {
    open.add(call)
    call.onEnd('test', () => void open.delete(call))
  }
  const limits = rateLimit()
  let handler: UpgradeHandler | undefined
  const served = await serveApp((app) => {
    app.use(beginCall({ logger, onBegin }), callLog({ writer }), authenticate({ keys: keys(config), region }))
    app.get(
      '/v1/list',
      limits,
      (_req, res) => void res.json({ data: Array(300_000).fill('an item of a list') }),
    )
    app.post(
      '/v1/chat/completions',
      readRequest({ catalog }),
      limits,
      billingGuard({ pool, catalog }),
      route({ catalog, lines, region }),
    )
    for (const rule of config.passThrough) {
      const bill = billingGuard({
        pool,
        reserve: () => parseAmount(rule.price.perRequest ?? '0') + parseAmount(rule.price.perMinute ?? '0'),
      })
      app.all(
        rule.path,
        limits,
        bill,
        forward({ catalog, rule, lines, region, ...(kept && { resources: kept }) }),
      )
    }
    app.use(unknownPath(), errorEnvelope({ logger }))
    handler = upgradeHandler(app)
  })
  const upgrades = handler as unknown as UpgradeHandler
  served.server.on('upgrade', upgrades.handle)
  if (stalledMs !== undefined) cutStalledCallers(served.server, { afterMs: stalledMs })
  cleanUp.after(async () => {
    upgrades.cutOff()
    await served.close()
    await lines.close()
    await pool.close()
    await writer.close()
  })
  return {
    url: served.url,
    server: served.server,
    upgrades,
    port: (served.server.address() as AddressInfo).port,
    open,
    ledger,
    logged: logger.lines,
    async entriesOf(key) {
      await writer.flush()
      return (await store.list({ limit: 1000 })).entries.filter((entry) => entry.key === key)
    },
  }
}

/** A call that takes long, from its caller's side. */
export interface OpenSession {
  readonly raw: RawClient | undefined
  readonly socket: WebSocket | undefined
  /** Whether its caller has received its end. */
  readonly over: boolean
  /** All that its caller received; of a WebSocket, the code and the reason of its end. */
  ended(): Promise<string>
  leave(): void
}

/** Begins one, and waits until it runs; an upload to another process only until it is sent. */
export async function beginSession(
  { port, url, open }: Pick<SessionGateway, 'port' | 'url'> & Partial<Pick<SessionGateway, 'open'>>,
  kind: SessionKind,
  secret: string,
): Promise<OpenSession> {
  if (kind === 'websocket') return beginWebSocket(url, secret)
  const type = kind === 'upload' ? 'application/octet-stream' : 'application/json'
  const head = (method: string, path: string, more: string): string =>
    `${method} ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${secret}\r\ncontent-type: ${type}\r\n${more}\r\n\r\n`
  const body = JSON.stringify(chatBody({ stream: true }))
  const request = {
    stream: head('POST', '/v1/chat/completions', `content-length: ${body.length}`) + body,
    download: head('GET', '/v1/bytes', 'accept: */*'),
    upload: `${head('POST', '/v1/bytes', 'content-length: 1000000')}first bytes`,
  }[kind]
  const raw = rawClient(port, request)
  if (kind !== 'upload') await raw.until('first')
  if (open) {
    const hash = hashSecret(secret)
    await until(
      () => [...open].some((call) => (call as OpenCall).secretHash === hash && call.routing),
      'the beginning',
    )
  }
  return {
    raw,
    socket: undefined,
    get over() {
      return raw.socket.destroyed || (kind === 'upload' && raw.received !== '')
    },
    async ended() {
      if (kind === 'upload') await raw.until('}')
      else await raw.end()
      return raw.received
    },
    leave: () => void raw.socket.destroy(),
  }
}

async function beginWebSocket(url: string, secret: string): Promise<OpenSession> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/v1/realtime`, {
    headers: { authorization: `Bearer ${secret}` },
  })
  socket.on('error', () => {})
  let end: string | undefined
  const closed = new Promise<string>((resolve) => {
    socket.once('close', (code, reason) => {
      end = `${code} ${reason}`
      resolve(end)
    })
  })
  await once(socket, 'open')
  return {
    raw: undefined,
    socket,
    get over() {
      return end !== undefined
    },
    ended: () => closed,
    leave: () => socket.terminate(),
  }
}
