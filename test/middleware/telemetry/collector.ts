import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'

type Value = { readonly stringValue?: string; readonly intValue?: number; readonly doubleValue?: number }
type Attribute = { readonly key: string; readonly value: Value }

interface SentSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly kind: number
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly attributes: readonly Attribute[]
  readonly status: { readonly code: number }
}

/** A span as it arrived. */
export interface CollectedSpan extends Omit<SentSpan, 'attributes'> {
  readonly attributes: Readonly<Record<string, string | number | undefined>>
}

/** A collector on loopback that keeps what it is sent, as OTLP over HTTP in JSON. */
export interface Collector {
  readonly url: string
  readonly spans: readonly CollectedSpan[]
  /** Names of the metrics that arrived. */
  readonly metrics: ReadonlySet<string>
  /** The instance ids of the processes that have sent metrics. */
  readonly instances: ReadonlySet<string | undefined>
}

interface TraceRequest {
  readonly resourceSpans?: readonly {
    readonly scopeSpans: readonly { readonly spans: readonly SentSpan[] }[]
  }[]
}

interface MetricRequest {
  readonly resourceMetrics?: readonly {
    readonly resource: {
      readonly attributes: readonly {
        readonly key: string
        readonly value: { readonly stringValue?: string }
      }[]
    }
    readonly scopeMetrics: readonly { readonly metrics: readonly { readonly name: string }[] }[]
  }[]
}

export async function startCollector(t: TestContext): Promise<Collector> {
  const spans: CollectedSpan[] = []
  const metrics = new Set<string>()
  const instances = new Set<string | undefined>()
  const server = createServer(async (req, res) => {
    const pieces: Buffer[] = []
    for await (const piece of req) pieces.push(piece as Buffer)
    const body = JSON.parse(Buffer.concat(pieces).toString())
    if (req.url === '/v1/traces') spans.push(...spansIn(body))
    if (req.url === '/v1/metrics') {
      for (const name of metricsIn(body)) metrics.add(name)
      for (const id of instancesIn(body)) instances.add(id)
    }
    res.writeHead(200, { 'content-type': 'application/json' }).end('{}')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, spans, metrics, instances }
}

function spansIn({ resourceSpans = [] }: TraceRequest): CollectedSpan[] {
  const sent = resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans))
  return sent.map((span) => ({
    ...span,
    attributes: Object.fromEntries(
      span.attributes.map(({ key, value }) => [
        key,
        value.stringValue ?? value.intValue ?? value.doubleValue,
      ]),
    ),
  }))
}

function metricsIn({ resourceMetrics = [] }: MetricRequest): string[] {
  return resourceMetrics.flatMap(({ scopeMetrics }) =>
    scopeMetrics.flatMap(({ metrics }) => metrics.map(({ name }) => name)),
  )
}

function instancesIn({ resourceMetrics = [] }: MetricRequest): (string | undefined)[] {
  return resourceMetrics.map(
    ({ resource }) => resource.attributes.find(({ key }) => key === 'service.instance.id')?.value.stringValue,
  )
}
