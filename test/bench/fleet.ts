/**
 * The throughput of the assembled gateway in 1, 2 and 4 processes on one Postgres and one Redis, and its cost per call:
 * `node test/bench/fleet.ts [--seconds 8] [--share 0.15] [--rounds 3] [--only worker]`. See README.md.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import {
  type Environment,
  type GatewayProcess,
  startGatewayProcess,
  temporaryFolder,
} from '../support/gateway-process.ts'
import { descendantsOf } from '../support/processes.ts'
import { checkedAnswerBytes } from './answer-check.ts'
import { benchSource } from './chain.ts'
import { type CpuShare, cpuShare } from './fleet/cpu-share.ts'
import { Engines, type EngineWork } from './fleet/engines.ts'
import { generate, type LoadResult } from './load.ts'
import { cpuSecondsOf, LOAD_CORE, type Running, residentKiB, startListening } from './processes.ts'
import { median } from './statistics.ts'
import { BENCH_KEY, chatRequest, PATH } from './workload.ts'

const { values: flags } = parseArgs({
  options: {
    seconds: { type: 'string', default: '8' },
    share: { type: 'string', default: '0.15' },
    rounds: { type: 'string', default: '3' },
    only: { type: 'string', default: '' },
  },
})
const seconds = Number(flags.seconds)
const share = Number(flags.share)
const rounds = Number(flags.rounds)

const ACCOUNTS = 20
const CONNECTIONS = 24
const WARM_UP_SECONDS = 10
/** Postgres shows others what a connection has done within a second. */
const TOLD_WITHIN_MS = 1200
const SETTLED_MS = 5000
const IDLE_MS = 20_000

/** Machines with one process each, and one machine with workers that share its port. */
const SHAPES = [
  { name: '1 process', machines: 1, workers: undefined },
  { name: '2 processes', machines: 2, workers: undefined },
  { name: '4 processes', machines: 4, workers: undefined },
  { name: '1 worker', machines: 1, workers: 1 },
  { name: '2 workers', machines: 1, workers: 2 },
] as const
type Shape = (typeof SHAPES)[number]
const shapes = SHAPES.filter(({ name }) => name.includes(flags.only))

/** Of one round of a shape; what is used is per call, in microseconds of a core unless its name says otherwise. */
interface Figures extends EngineWork {
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly gatewayCpu: number
}

const upstream = await startListening('upstream', join(import.meta.dirname, 'upstream.ts'), LOAD_CORE)
const folder = await temporaryFolder()
const GATEWAY_CONFIG = join(folder.path, 'config.json')
const keys = [BENCH_KEY, ...Array.from({ length: ACCOUNTS - 1 }, (_, i) => `${BENCH_KEY}-${i}`)]
writeFileSync(GATEWAY_CONFIG, JSON.stringify(configOf(keys)))

function configOf(secrets: readonly string[]): object {
  const source = benchSource(upstream.url) as { accounts: object[]; keys: object[] }
  const accounts = secrets.map((_, i) => ({ ...source.accounts[0], id: `account-${i}` }))
  const own = secrets.map((secret, i) => ({
    ...source.keys[0],
    id: `key-${i}`,
    account: `account-${i}`,
    secret,
  }))
  return { ...source, accounts, keys: own }
}

/** Measures a process that nobody calls. */
async function measureIdle(): Promise<string> {
  const engines = await Engines.start()
  const gateway = await start(engines)
  try {
    await sleep(SETTLED_MS)
    const before = await engines.work()
    await sleep(IDLE_MS)
    const after = await engines.work()
    const perSecond = (name: keyof EngineWork) => ((after[name] - before[name]) / IDLE_MS) * 1000
    const memory = Math.round((residentKiB(gateway.pid) ?? Number.NaN) / 1024)
    return `an idle process: ${perSecond('transactions').toFixed(1)} transactions and ${perSecond('redisCommands').toFixed(1)} Redis commands a second, ${memory} MiB`
  } finally {
    await stop(gateway)
    await engines.close()
  }
}

function start({ databaseUrl, redisUrl }: Engines, env: Environment = {}): Promise<GatewayProcess> {
  return startGatewayProcess({ GATEWAY_CONFIG, DATABASE_URL: databaseUrl, REDIS_URL: redisUrl, ...env })
}

/** Runs a shape on engines of its own, so that none finds the rows of another. */
async function measure({ machines, workers }: Shape): Promise<Figures> {
  const engines = await Engines.start()
  const shares: CpuShare[] = []
  const gateways: GatewayProcess[] = []
  try {
    for (let i = 0; i < machines; i++)
      gateways.push(await start(engines, workers === undefined ? {} : { WORKERS: `${workers}` }))
    const [first] = gateways
    const expectedBytes = await checkedAnswerBytes(asTarget(first as GatewayProcess), null)
    const load = (duration: number) =>
      Promise.all(
        gateways.map(({ url }) =>
          generate({
            url: url + PATH,
            body: chatRequest(null),
            connections: CONNECTIONS * (workers ?? 1),
            seconds: duration,
            expectedBytes,
            keys,
          }),
        ),
      )
    // With all there is: within a small share the compiler would not be done with the program for minutes.
    await load(WARM_UP_SECONDS)
    for (const gateway of gateways) {
      const bounded = cpuShare(share * (workers ?? 1))
      if (!bounded) continue
      shares.push(bounded)
      for (const pid of pidsOf(gateway)) bounded.add(pid)
    }
    await load(1)
    await sleep(TOLD_WITHIN_MS)
    const before = await engines.work()
    const cpuBefore = cpuOf(gateways)
    const results = await load(seconds)
    await sleep(TOLD_WITHIN_MS)
    return figuresOf(results, cpuOf(gateways) - cpuBefore, before, await engines.work())
  } finally {
    await Promise.all(gateways.map(stop))
    for (const bounded of shares) bounded.remove()
    await engines.close()
  }
}

function figuresOf(
  results: readonly LoadResult[],
  gatewayCpu: number,
  before: EngineWork,
  after: EngineWork,
): Figures {
  const faults = results.reduce((sum, result) => sum + result.faults, 0)
  if (faults > 0) throw new Error(`${faults} calls were not answered as they must be`)
  const calls = results.reduce((sum, { completed }) => sum + completed, 0)
  const perCall = (name: keyof EngineWork) => (after[name] - before[name]) / calls
  return {
    perSecond: results.reduce((sum, each) => sum + each.completed / each.seconds, 0),
    p50Ms: median(results.map(({ p50Ms }) => p50Ms)),
    p99Ms: Math.max(...results.map(({ p99Ms }) => p99Ms)),
    gatewayCpu: (gatewayCpu / calls) * 1e6,
    postgresCpu: perCall('postgresCpu') * 1e6,
    redisCpu: perCall('redisCpu') * 1e6,
    transactions: perCall('transactions'),
    rows: perCall('rows'),
    walBytes: perCall('walBytes'),
    diskBytes: perCall('diskBytes'),
    redisCommands: perCall('redisCommands'),
  }
}

function pidsOf({ pid }: GatewayProcess): number[] {
  return [pid, ...descendantsOf(pid).map((each) => each.pid)]
}

function cpuOf(gateways: readonly GatewayProcess[]): number {
  return gateways.flatMap(pidsOf).reduce((sum, pid) => sum + (cpuSecondsOf(pid) ?? 0), 0)
}

/** With its workers, which outlive a process that is killed. */
async function stop(gateway: GatewayProcess): Promise<void> {
  gateway.kill('SIGTERM')
  await gateway.exited
}

function asTarget({ pid, url, stop, stderr }: GatewayProcess): Running {
  return { name: 'gateway', pid, url, complaints: () => stderr, stop }
}

function row({ name }: Shape, all: readonly Figures[], alone: readonly Figures[]): string {
  const of = (figure: keyof Figures, digits = 0) => median(all.map((each) => each[figure])).toFixed(digits)
  // Each round beside its own: the machine may have been slower then.
  const gain = median(all.map(({ perSecond }, i) => perSecond / (alone[i]?.perSecond ?? perSecond)))
  return `| ${[
    name,
    of('perSecond'),
    gain.toFixed(2),
    of('p50Ms', 1),
    of('p99Ms', 1),
    of('gatewayCpu'),
    of('postgresCpu'),
    of('redisCpu'),
    of('transactions', 2),
    of('rows', 1),
    of('walBytes'),
    of('diskBytes'),
    of('redisCommands', 1),
  ].join(' | ')} |`
}

const figures = new Map<Shape, Figures[]>(shapes.map((shape) => [shape, []]))
for (let round = 0; round < rounds; round++)
  for (const shape of shapes) figures.get(shape)?.push(await measure(shape))

const isBounded = cpuShare(share)
isBounded?.remove()
console.log(
  isBounded
    ? `each process has ${share * 100} % of a core; ${rounds} rounds of ${seconds} s`
    : `CPU time could not be bounded here: the gateways share their cores with the load; ${rounds} rounds of ${seconds} s`,
)
if (!flags.only) console.log(await measureIdle())
console.log(
  '\n| | calls/s | gain | p50 ms | p99 ms | CPU µs per call: gateway | Postgres | Redis | per call: transactions | rows | bytes of WAL | of disk | Redis commands |',
)
console.log(`|${' --- |'.repeat(13)}`)
for (const [shape, all] of figures) {
  const alone = SHAPES.find(
    ({ machines, workers }) => machines === 1 && (workers ?? 1) === 1 && !workers === !shape.workers,
  )
  console.log(row(shape, all, figures.get(alone as Shape) ?? []))
}
await upstream.stop()
await folder.remove()
