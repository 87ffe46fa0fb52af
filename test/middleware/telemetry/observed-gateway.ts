import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { context, diag, metrics, propagation, trace } from '@opentelemetry/api'
import { assemble } from '../../../examples/gateway/app.ts'
import type { ObservabilitySettings } from '../../../examples/gateway/config/environment.ts'
import { Readiness } from '../../../examples/gateway/serving/readiness.ts'
import { openLimitStores } from '../../../examples/gateway/stores/limit-stores.ts'
import type { DurableStores } from '../../../examples/gateway/stores/stores.ts'
import { openDurableStores } from '../../../examples/gateway/stores/stores.ts'
import { metricsPage } from '../../../examples/gateway/telemetry/observability.ts'
import { startObservability } from '../../../examples/gateway/telemetry/open-telemetry.ts'
import { loadConfig } from '../../../lib/core/config/index.ts'
import { recordingLogger } from '../../support/app-server.ts'
import { Scrape } from './scrape.ts'

/** The key that every observed gateway knows. */
export const KEY = 'sk-observed'

/** The assembled gateway of the examples, observed. */
export interface ObservedGateway {
  readonly url: string
  /** POSTs JSON with the key. */
  post(path: string, body: unknown, headers?: Readonly<Record<string, string>>): Promise<Response>
  /** GETs with the key. */
  get(path: string, headers?: Readonly<Record<string, string>>): Promise<Response>
  /** Reads the page of `GET /metrics` once no call is open: a call is recorded when it ends. */
  scrape(): Promise<Scrape>
  /** Ends the SDK, which sends what it has not sent. */
  flush(): Promise<void>
}

/** A line as the config writes it; the other members have defaults. */
export interface LineSeed {
  readonly url: string
  readonly [member: string]: unknown
}

export interface ObservedOptions {
  readonly lines: readonly LineSeed[]
  /** Replaces or adds members of the config. */
  readonly config?: Record<string, unknown>
  /** Replaces stores. */
  readonly stores?: Partial<DurableStores> | ((stores: DurableStores) => Partial<DurableStores>)
  /** Fills the stores before the gateway is put together. */
  readonly prepare?: (stores: DurableStores) => Promise<void>
  readonly adminToken?: string
  /** Where metrics and traces are sent, too: the origin of a collector. */
  readonly collector?: string
  /** Defaults to every call. */
  readonly traces?: ObservabilitySettings['traces']
}

/** Starts it on memory stores, with the SDK registered; all of it is undone at the end of the test. */
export async function startObserved(t: TestContext, options: ObservedOptions): Promise<ObservedGateway> {
  const logger = recordingLogger()
  const { collector, traces = { sampler: undefined, share: 1 }, stores = {} } = options
  if (collector !== undefined) process.env.OTEL_EXPORTER_OTLP_ENDPOINT = collector
  const observability = await startObservability({ toCollector: collector !== undefined, traces }, logger)
  const config = loadConfig({
    accounts: [{ id: 'acme' }],
    keys: [{ id: 'key_acme', account: 'acme', secret: KEY }],
    models: [{ id: 'chat', kind: 'chat', price: { perRequest: '0.01' } }],
    lines: options.lines.map(({ url, ...line }, i) => ({
      id: `line-${i}`,
      provider: `provider-${i}`,
      protocol: 'openai',
      baseUrl: `${url}/v1`,
      priority: i,
      models: { chat: `upstream-chat-${i}` },
      ...line,
    })),
    ...options.config,
  })
  const memory = await openDurableStores('memory:', config, logger)
  const durable = { ...memory, ...(typeof stores === 'function' ? stores(memory) : stores) }
  await options.prepare?.(durable)
  const { limits } = await openLimitStores(undefined, logger)
  const gateway = assemble({
    config,
    stores: { ...durable, limits },
    logger,
    readiness: new Readiness(durable.ping),
    adminToken: options.adminToken,
    webhookAllowPrivate: true,
    metricsPage: metricsPage(observability.metricsText, undefined),
  })
  const server = createServer(gateway.app).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  t.after(async () => {
    server.closeAllConnections()
    server.close()
    await gateway.close()
    await durable.close()
    await observability.close()
    unregister()
  })
  return {
    url,
    post: (path, body, headers = {}) =>
      fetch(url + path, {
        method: 'POST',
        body: JSON.stringify(body),
        headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', ...headers },
      }),
    get: (path, headers = {}) =>
      fetch(url + path, { headers: { authorization: `Bearer ${KEY}`, ...headers } }),
    async scrape() {
      for (;;) {
        // A loop of scrapes would let nothing else run.
        await sleep(1)
        const scrape = new Scrape(await observability.metricsText())
        if (scrape.sum('model_gateway_calls_open') === 0) return scrape
      }
    },
    flush: () => observability.close(),
  }
}

/** So that another SDK can be registered in this process. */
function unregister(): void {
  delete process.env.OTEL_EXPORTER_OTLP_ENDPOINT
  metrics.disable()
  trace.disable()
  context.disable()
  propagation.disable()
  diag.disable()
}
