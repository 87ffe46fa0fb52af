// The throughput and the CPU time of a call with 1 to 8 workers: node test/bench/workers.ts --help
import { readFileSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type GatewayProcess, startGatewayProcess, temporaryFolder } from '../support/gateway-process.ts'
import { descendantsOf } from '../support/processes.ts'
import { checkedAnswerBytes } from './answer-check.ts'
import { withSection, workersSection } from './benchmarks-page.ts'
import { benchSource } from './chain.ts'
import { Engines } from './fleet/engines.ts'
import { generate } from './load.ts'
import { cpuSecondsOf, LOAD_CORE, residentKiB, startListening } from './processes.ts'
import { median } from './statistics.ts'
import { chatRequest, PATH } from './workload.ts'

const { values: flags } = parseArgs({
  options: {
    stores: { type: 'string', default: 'sqlite' },
    workers: { type: 'string', default: 'none,1,2,4,8' },
    seconds: { type: 'string', default: '8' },
    rounds: { type: 'string', default: '3' },
    connections: { type: 'string', default: '64' },
    write: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})
if (flags.help) {
  console.log(
    '--stores sqlite or servers (Redis and Postgres), --workers none,1,2,4,8, --seconds, --rounds, --connections, --write (into docs/benchmarks.md)',
  )
  process.exit()
}
const seconds = Number(flags.seconds)
const connections = Number(flags.connections)
/** `none`: the gateway serves in the process that is started. */
const shapes = flags.workers.split(',')

/** Each process compiles its code for itself: a new one needs three times the CPU time for its first thousand calls. */
const WARM_UP_CALLS = 5000

/** Of one round of a shape; CPU time is in microseconds of a core per call. */
interface Figures {
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** Of the process that is started. */
  readonly firstCpu: number
  readonly workersCpu: number
  readonly enginesCpu: number
  readonly mebibytes: number
}

const upstream = await startListening('upstream', join(import.meta.dirname, 'upstream.ts'), LOAD_CORE)

/** Runs a shape on stores of its own, so that none finds the rows of another. */
async function measure(shape: string): Promise<Figures> {
  const folder = await temporaryFolder()
  const engines = flags.stores === 'servers' ? await Engines.start() : undefined
  const config = join(folder.path, 'config.json')
  writeFileSync(config, JSON.stringify(benchSource(upstream.url)))
  const gateway = await startGatewayProcess({
    GATEWAY_CONFIG: config,
    ...(shape !== 'none' && { WORKERS: shape }),
    ...(engines
      ? { DATABASE_URL: engines.databaseUrl, REDIS_URL: engines.redisUrl }
      : { DATABASE_URL: `sqlite:${join(folder.path, 'gateway.db')}` }),
  })
  try {
    const { pid, url, stop } = gateway
    const target = { name: shape, pid, url, complaints: () => gateway.stderr, stop }
    const expectedBytes = await checkedAnswerBytes(target, null)
    const load = (duration: number) =>
      generate({ url: url + PATH, body: chatRequest(null), connections, seconds: duration, expectedBytes })
    const processes = shape === 'none' ? 1 : Number(shape)
    for (let calls = 0; calls < processes * WARM_UP_CALLS; ) calls += (await load(2)).completed
    const before = { ...cpuOf(gateway), engines: await engineCpu(engines) }
    const { completed, faults, seconds: took, p50Ms, p99Ms } = await load(seconds)
    const after = { ...cpuOf(gateway), engines: await engineCpu(engines) }
    if (faults > 0) throw new Error(`${faults} calls were not answered as they must be`)
    const perCall = (of: keyof typeof after) => ((after[of] - before[of]) / completed) * 1e6
    return {
      perSecond: completed / took,
      p50Ms,
      p99Ms,
      firstCpu: perCall('first'),
      workersCpu: perCall('workers'),
      enginesCpu: perCall('engines'),
      mebibytes: pidsOf(gateway).reduce((sum, each) => sum + (residentKiB(each) ?? 0), 0) / 1024,
    }
  } finally {
    gateway.kill('SIGTERM')
    await gateway.exited
    await engines?.close()
    await folder.remove()
  }
}

function pidsOf({ pid }: GatewayProcess): number[] {
  return [pid, ...descendantsOf(pid).map((each) => each.pid)]
}

function cpuOf(gateway: GatewayProcess) {
  const [first = 0, ...workers] = pidsOf(gateway).map((pid) => cpuSecondsOf(pid) ?? 0)
  return { first, workers: workers.reduce((sum, each) => sum + each, 0) }
}

async function engineCpu(engines: Engines | undefined): Promise<number> {
  const work = await engines?.work()
  return work ? work.postgresCpu + work.redisCpu : 0
}

const figures = new Map<string, Figures[]>(shapes.map((shape) => [shape, []]))
for (let round = 0; round < Number(flags.rounds); round++)
  for (const shape of shapes) {
    const each = await measure(shape)
    console.error(round + 1, shape, each)
    figures.get(shape)?.push(each)
  }
await upstream.stop()

const rows = Array.from(figures, ([shape, all]) => {
  const of = (figure: (each: Figures) => number) => median(all.map(figure))
  return {
    shape,
    perSecond: of((each) => each.perSecond),
    cpuMicros: of((each) => each.firstCpu + each.workersCpu),
    firstMicros: of((each) => each.firstCpu),
  }
})
const machine = `${cpus()[0]?.model.trim()}, ${cpus().length} cores, Node ${process.versions.node}`
const date = new Date().toISOString().slice(0, 10)
const section = workersSection({
  date,
  machine,
  stores: flags.stores,
  connections,
  seconds,
  rounds: Number(flags.rounds),
  rows,
})
console.log(section)
if (flags.write) {
  const page = join(import.meta.dirname, '../../docs/benchmarks.md')
  writeFileSync(page, withSection(readFileSync(page, 'utf8'), `workers-${flags.stores}`, section))
}
