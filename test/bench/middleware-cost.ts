/**
 * The cost of each middleware in µs of CPU time per request, by difference: the chain is served and asked in
 * one process, growing by one middleware a row. `node test/bench/middleware-cost.ts [requests] [rounds]`; the least of
 * the rounds counts, because other processes can only add to it.
 */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import express, { type RequestHandler } from 'express'
import { Pool } from 'undici'
import {
  authenticate,
  beginCall,
  CallLogWriter,
  callLog,
  callOf,
  idempotency,
  loadConfig,
  MemoryCallStore,
  memoryKeyDirectory,
  rateLimit,
  readRequest,
  route,
} from '../../lib/index.ts'
import { BENCH_KEY, BENCH_MODEL, chatRequest, PATH, PLAIN_ANSWER } from './workload.ts'

const requests = Number(process.argv[2] ?? 4000)
const rounds = Number(process.argv[3] ?? 7)
const CONNECTIONS = 16
const FAR = { rpm: 1_000_000_000, tpm: 1_000_000_000_000 }

const upstream = await serve((req, res) => {
  req.resume().on('end', () => res.writeHead(200, { 'content-type': 'application/json' }).end(PLAIN_ANSWER))
})
const config = loadConfig({
  accounts: [{ id: 'bench', limits: { ...FAR, concurrency: 1_000_000 } }],
  keys: [{ id: 'key_bench', account: 'bench', secret: BENCH_KEY, limits: FAR }],
  models: [{ id: BENCH_MODEL, kind: 'chat', contextWindow: 128_000 }],
  lines: [
    {
      id: 'upstream',
      provider: 'bench',
      protocol: 'openai',
      baseUrl: `${upstream.origin}/v1`,
      models: { [BENCH_MODEL]: BENCH_MODEL },
    },
  ],
})
const { catalog } = config
const body = chatRequest(null)
const bare = new Pool(upstream.origin)

const answer: RequestHandler = (_req, res) => {
  res.writeHead(200, { 'content-type': 'application/json' }).end(PLAIN_ANSWER)
}
/** The minimum that route needs: the request to the upstream and its answer, looked at by nobody. */
const relay: RequestHandler = (req, res) => {
  const raw = callOf(req).request?.body.raw ?? body
  void bare
    .request({ path: PATH, method: 'POST', headers: { 'content-type': 'application/json' }, body: raw })
    .then(async (got) =>
      res.writeHead(200, { 'content-type': 'application/json' }).end(await got.body.text()),
    )
}

const middlewares: [string, RequestHandler][] = [
  ['beginCall', beginCall()],
  ['callLog (memory)', callLog({ writer: new CallLogWriter({ store: new MemoryCallStore() }) })],
  ['authenticate (memory)', authenticate({ keys: memoryKeyDirectory(config) })],
  ['readRequest', readRequest({ catalog })],
  ['idempotency (no key sent)', idempotency()],
  ['rateLimit (memory, five limits)', rateLimit()],
]

const rows: { name: string; chain: RequestHandler[] }[] = [
  { name: 'Express with an answer', chain: [answer] },
]
for (const [i, [name]] of middlewares.entries()) {
  rows.push({ name, chain: [...middlewares.slice(0, i + 1).map(([, handler]) => handler), answer] })
}
const guards = middlewares.map(([, handler]) => handler)
rows.push({ name: "undici's request() in route's place", chain: [...guards, relay] })
rows.push({ name: 'route, beyond that', chain: [...guards, route({ catalog })] })

const least = new Array<number>(rows.length).fill(Number.POSITIVE_INFINITY)
for (let round = 0; round <= rounds; round++) {
  for (const [i, { chain }] of rows.entries()) {
    const micros = await measure(chain)
    // The first round is for the compiler.
    if (round > 0) least[i] = Math.min(least[i] as number, micros)
  }
}
console.log(`Least of ${rounds} rounds of ${requests} requests, client and upstream in the same process.\n`)
console.log('| | µs of CPU time a request |\n| --- | --- |')
for (const [i, { name }] of rows.entries()) {
  const before = i === 0 ? 0 : (least[i - 1] as number)
  console.log(`| ${i === 0 ? name : `+ ${name}`} | ${((least[i] as number) - before).toFixed(1)} |`)
}
process.exit()

async function measure(chain: RequestHandler[]): Promise<number> {
  const app = express()
  app.disable('x-powered-by')
  app.post(PATH, ...chain)
  const { origin, server } = await serve(app)
  const client = new Pool(origin, { connections: CONNECTIONS })
  const headers = { authorization: `Bearer ${BENCH_KEY}`, 'content-type': 'application/json' }
  const ask = async (count: number): Promise<void> => {
    for (let i = 0; i < count; i++) {
      const got = await client.request({ path: PATH, method: 'POST', headers, body })
      if (got.statusCode !== 200) throw new Error(`answered ${got.statusCode}`)
      await got.body.dump()
    }
  }
  const all = (count: number) =>
    Promise.all(Array.from({ length: CONNECTIONS }, () => ask(count / CONNECTIONS)))
  await all(requests / 4)
  const start = process.cpuUsage()
  await all(requests)
  const { user, system } = process.cpuUsage(start)
  await client.destroy()
  server.close()
  server.closeAllConnections()
  return (user + system) / requests
}

async function serve(
  handler: Parameters<typeof createServer>[1],
): Promise<{ origin: string; server: Server }> {
  const server = createServer(handler)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server }
}
