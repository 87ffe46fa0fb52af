// Memory and disk over many calls of many keys, users and tags: node test/bench/soak.ts --help
import { statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { Agent } from 'undici'
import { startGatewayProcess, temporaryFolder } from '../support/gateway-process.ts'
import { benchSource } from './chain.ts'
import { LOAD_CORE, residentKiB, startListening } from './processes.ts'
import { BENCH_MODEL, PATH } from './workload.ts'

const { values: flags } = parseArgs({
  options: {
    calls: { type: 'string', default: '1000000' },
    keys: { type: 'string', default: '2000' },
    accounts: { type: 'string', default: '200' },
    users: { type: 'string', default: '10000' },
    tags: { type: 'string', default: '5000' },
    connections: { type: 'string', default: '16' },
    rate: { type: 'string', default: 'Infinity' },
    rows: { type: 'string', default: '20' },
    help: { type: 'boolean', default: false },
  },
})
if (flags.help) {
  console.log(
    '--calls in all, of so many --keys, --accounts, --users and values of --tags, on --connections, at most --rate a second; --rows of the table. Build before, and set TEST_BUILT_GATEWAY=1',
  )
  process.exit()
}
const [calls, connections, rate] = [Number(flags.calls), Number(flags.connections), Number(flags.rate)]
const [keys, accounts] = [Number(flags.keys), Number(flags.accounts)]
const [users, tags] = [Number(flags.users), Number(flags.tags)]
const callsARow = Math.ceil(calls / Number(flags.rows))
const secretOf = (key: number): string => `sk-${String(key).padStart(32, '0')}`
const anyOf = (count: number): number => Math.floor(Math.random() * count)

const upstream = await startListening('upstream', join(import.meta.dirname, 'upstream.ts'), LOAD_CORE)
const folder = await temporaryFolder()
const config = join(folder.path, 'config.json')
const database = join(folder.path, 'gateway.db')
writeFileSync(
  config,
  JSON.stringify({
    ...benchSource(upstream.url),
    accounts: Array.from({ length: accounts }, (_, i) => ({ id: `account-${i}`, balance: '1000000000' })),
    keys: Array.from({ length: keys }, (_, i) => ({
      ...{ id: `key-${i}`, account: `account-${i % accounts}`, secret: secretOf(i) },
    })),
  }),
)
const preloaded = fileURLToPath(new URL('heap-on-signal.ts', import.meta.url))
const gateway = await startGatewayProcess({
  GATEWAY_CONFIG: config,
  DATABASE_URL: `sqlite:${database}`,
  NODE_OPTIONS: `--import=${preloaded}`,
})

const agent = new Agent({ connections })
const refusals = new Map<number, number>()
let begun = 0
let ended = 0

async function call(): Promise<void> {
  const { statusCode, body } = await agent.request({
    origin: gateway.url,
    path: PATH,
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      authorization: `Bearer ${secretOf(anyOf(keys))}`,
      'x-gateway-tags': `team=team-${anyOf(tags)}`,
    },
    body: JSON.stringify({
      model: BENCH_MODEL,
      messages: [{ role: 'user', content: `Name three rivers of Europe. ${begun}` }],
      max_tokens: 256,
      user: `user-${anyOf(users)}`,
    }),
  })
  await body.dump()
  if (statusCode !== 200) refusals.set(statusCode, (refusals.get(statusCode) ?? 0) + 1)
}

const start = performance.now()

/** Sends one call after the other, no faster than the rate allows. */
async function send(): Promise<void> {
  while (begun < calls) {
    const early = start + (begun++ / rate) * 1000 - performance.now()
    if (early > 0) await sleep(early)
    await call()
    if (++ended % callsARow === 0) await report()
  }
}

/** The MiB that the gateway's heap and buffers hold when they have been collected. */
async function held(): Promise<readonly string[]> {
  const before = gateway.stdout.length
  gateway.kill('SIGUSR2')
  for (;;) {
    await sleep(50)
    const [, heap, external] = /^held (\d+) (\d+)$/m.exec(gateway.stdout.slice(before)) ?? []
    if (heap !== undefined && external !== undefined) return [heap, external]
  }
}

async function report(): Promise<void> {
  const at = ended
  const seconds = (performance.now() - start) / 1000
  const resident = Math.round((residentKiB(gateway.pid) ?? 0) / 1024)
  const [heap, external] = await held()
  const bytes = statSync(database).size + statSync(`${database}-wal`).size
  console.log(
    `| ${at} | ${Math.round(at / seconds)} | ${heap} | ${external} | ${resident} | ${Math.round(bytes / at)} |`,
  )
}

console.log(`| calls | calls/s | heap MiB | external MiB | resident MiB | bytes on disk a call |
| --- | --- | --- | --- | --- | --- |`)
await Promise.all(Array.from({ length: connections }, send))
console.log(`not 200: ${JSON.stringify(Object.fromEntries(refusals))}`)
await agent.close()
gateway.kill('SIGTERM')
await gateway.exited
await upstream.stop()
await folder.remove()
