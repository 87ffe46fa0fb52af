/**
 * The cost of telemetry in µs of CPU time per request, by difference: the whole chain in memory runs in one
 * process, with and without it in turn. `node test/bench/telemetry-cost.ts [requests] [rounds]`. A process of its own is
 * the collector. The least of the rounds counts, because other processes can only add to it; each row is what it costs
 * beyond the chain.
 */
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { context, diag, metrics, propagation, trace } from '@opentelemetry/api'
import express, { type RequestHandler } from 'express'
import { Pool } from 'undici'
import type { ObservabilitySettings } from '../../examples/gateway/config/environment.ts'
import { startObservability } from '../../examples/gateway/telemetry/open-telemetry.ts'
import {
  authenticate,
  beginCall,
  billingGuard,
  CallLogWriter,
  callLog,
  idempotency,
  LeasePool,
  MemoryCallStore,
  MemoryLedger,
  memoryKeyDirectory,
  rateLimit,
  readRequest,
  route,
  telemetry,
} from '../../lib/index.ts'
import { benchConfig } from './chain.ts'
import { LOAD_CORE, startListening } from './processes.ts'
import { median } from './statistics.ts'
import { BENCH_KEY, chatRequest, PATH } from './workload.ts'

const requests = Number(process.argv[2] ?? 8000)
const rounds = Number(process.argv[3] ?? 9)
const CONNECTIONS = 16

const upstream = await startListening('upstream', join(import.meta.dirname, 'upstream.ts'), LOAD_CORE)
process.on('exit', () => void upstream.stop())
process.env.UPSTREAM = upstream.url
process.env.OTEL_EXPORTER_OTLP_ENDPOINT = upstream.url

const config = benchConfig()
const { catalog } = config
const body = chatRequest(null)
const pool = new LeasePool({ ledger: new MemoryLedger(config) })
const chain: readonly RequestHandler[] = [
  callLog({ writer: new CallLogWriter({ store: new MemoryCallStore() }) }),
  authenticate({ keys: memoryKeyDirectory(config) }),
  readRequest({ catalog }),
  idempotency(),
  rateLimit(),
  billingGuard({ pool, catalog }),
  route({ catalog }),
]
const answer: RequestHandler = (req, res) => void req.resume().on('end', () => res.json({ done: true }))

interface Row {
  readonly name: string
  readonly handlers: () => readonly RequestHandler[]
  /** undefined: no SDK. */
  readonly traces?: ObservabilitySettings['traces']
}

const observed = () => [beginCall(), telemetry({ catalog, states: { pool } }), ...chain]
const rows: readonly Row[] = [
  { name: 'Express with an answer, and the client', handlers: () => [answer] },
  { name: 'the whole chain', handlers: () => [beginCall(), ...chain] },
  { name: 'telemetry, no SDK', handlers: observed },
  { name: 'metrics, no call traced', handlers: observed, traces: { sampler: undefined, share: 0 } },
  { name: '… and traces as by default', handlers: observed, traces: { sampler: undefined, share: 0.01 } },
  {
    name: '… by a sampler of the SDK, one in a hundred',
    handlers: observed,
    traces: { sampler: 'parentbased_traceidratio', share: 0.01 },
  },
  {
    name: '… of every call',
    handlers: observed,
    traces: { sampler: 'parentbased_always_on', share: 1 },
  },
]
const CHAIN = 1

const measured: number[][] = rows.map(() => [])
for (let round = 0; round <= rounds; round++) {
  for (const [i, row] of rows.entries()) {
    const micros = await measure(row)
    // The first round is for the compiler.
    if (round > 0) measured[i]?.push(micros)
  }
}
const difference = (i: number, j: number) =>
  median((measured[i] ?? []).map((micros, round) => micros - (measured[j]?.[round] ?? Number.NaN)))
const leastOf = (i: number) => Math.min(...(measured[i] ?? []))
const all = leastOf(CHAIN)
console.log(`${rounds} rounds of ${requests} requests; client in the same process.\n`)
console.log(
  '| | µs of CPU time a request, least of the rounds | of the chain and its client | median of the rounds |',
)
console.log('| --- | --- | --- | --- |')
for (const [i, { name }] of rows.entries()) {
  const before = i === 0 ? 0 : leastOf(i === CHAIN ? 0 : CHAIN)
  const micros = leastOf(i) - before
  const middle = i === 0 ? median(measured[0] ?? []) : difference(i, i === CHAIN ? 0 : CHAIN)
  const share = i <= CHAIN ? '–' : `${((micros / all) * 100).toFixed(1)} %`
  console.log(`| ${i === 0 ? name : `+ ${name}`} | ${micros.toFixed(1)} | ${share} | ${middle.toFixed(1)} |`)
}
process.exit()

async function measure({ handlers, traces }: Row): Promise<number> {
  const logger = { info: () => {}, warn: console.error, error: console.error }
  const sdk = traces && (await startObservability({ toCollector: true, traces }, logger))
  const app = express()
  app.disable('x-powered-by')
  app.post(PATH, ...handlers())
  const { origin, server } = await serve(app)
  const client = new Pool(origin, { connections: CONNECTIONS })
  await ask(client, requests / 4)
  const start = process.cpuUsage()
  await ask(client, requests)
  // Sending the remaining telemetry is part of the cost.
  await sdk?.close()
  const { user, system } = process.cpuUsage(start)
  await client.destroy()
  server.close()
  server.closeAllConnections()
  for (const api of [metrics, trace, context, propagation, diag]) api.disable()
  return (user + system) / requests
}

async function ask(client: Pool, count: number): Promise<void> {
  const headers = { authorization: `Bearer ${BENCH_KEY}`, 'content-type': 'application/json' }
  const one = async (): Promise<void> => {
    for (let i = 0; i < count / CONNECTIONS; i++) {
      const got = await client.request({ path: PATH, method: 'POST', headers, body })
      if (got.statusCode !== 200) throw new Error(`answered ${got.statusCode}`)
      await got.body.dump()
    }
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, one))
}

async function serve(app: express.Express): Promise<{ origin: string; server: Server }> {
  const server = createServer(app).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server }
}
