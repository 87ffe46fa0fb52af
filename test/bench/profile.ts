/**
 * Shows where the CPU time of a call goes, by middleware, beside the relay and Portkey: `node test/bench/profile.ts
 * [--targets relay,portkey,whole-memory] [--cases plain-32,burst-32,long-16] [--seconds 6] [--out FOLDER]`. It prints one
 * page, and writes a flame graph and a profile of each case into the folder. See README.md.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import type { Profiler } from 'node:inspector'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { checkedAnswerBytes } from './answer-check.ts'
import { generate } from './load.ts'
import { preparePortkey } from './portkey.ts'
import { cpuSecondsOf, LOAD_CORE, type Running, startListening, TARGET_CORE } from './processes.ts'
import { flameGraph } from './profile/flame-graph.ts'
import { type Measured, profilePage } from './profile/page.ts'
import { throughputCases } from './throughput.ts'
import { headersTo, PORTKEY, pathTo, requestTo, serves } from './workload.ts'

const WARM_UP_SECONDS = 8
/** Until the profiler runs, and until it has written a profile. */
const SIGNAL_MS = 300
const WRITTEN_MS = 2000
/** These are profiled in the first case only, because they differ in what a call writes. */
const DURABLE = ['whole-sqlite', 'whole-postgres']

const { values: flags } = parseArgs({
  options: {
    targets: { type: 'string', default: ['relay', PORTKEY, 'whole-memory', ...DURABLE].join() },
    cases: { type: 'string', default: 'plain-32,burst-32,long-16' },
    seconds: { type: 'string', default: '6' },
    out: { type: 'string', default: join(tmpdir(), 'gateway-profile') },
  },
})
const cases = flags.cases.split(',').map((name) => {
  const found = throughputCases.find((each) => each.name === name)
  if (!found) throw new Error(`--cases: there are ${throughputCases.map((each) => each.name)}`)
  return found
})
const seconds = Number(flags.seconds)
mkdirSync(flags.out, { recursive: true })

const running = new Set<Running>()
process.on('exit', () => {
  for (const one of running) void one.stop()
})
const upstream = await startListening('upstream', join(import.meta.dirname, 'upstream.ts'), LOAD_CORE)
running.add(upstream)
let targets = flags.targets.split(',')
if (targets.includes(PORTKEY) && !(await preparePortkey()))
  targets = targets.filter((name) => name !== PORTKEY)

const measured: Measured[] = []
for (const name of targets)
  for (const each of cases.slice(0, DURABLE.includes(name) ? 1 : cases.length))
    if (serves(name, each.pace)) measured.push(await measure(name, each))
const page = profilePage(measured)
writeFileSync(join(flags.out, 'page.txt'), page)
process.stdout.write(`${page}\nFlame graphs: ${flags.out}/*.svg\n`)
process.exit(0)

async function measure(name: string, { name: caseName, pace, prompt, connections }: (typeof cases)[number]) {
  process.stderr.write(`${name} ${caseName}\n`)
  const file = join(flags.out, `${name}-${caseName}`)
  const script = join(import.meta.dirname, 'targets', `${name}.ts`)
  const env = { UPSTREAM: upstream.url, PROFILE: file }
  const onSignal = ['--import', join(import.meta.dirname, 'profile/on-signal.ts')]
  const target = await startListening(name, script, TARGET_CORE, env, onSignal)
  running.add(target)
  const expectedBytes = await checkedAnswerBytes(target, pace, prompt)
  // It has answered its first request.
  process.kill(target.pid, 'SIGUSR2')
  const startMs = cpuOf(target) * 1000
  await wait(WRITTEN_MS)
  const load = (duration: number) =>
    generate({
      url: target.url + pathTo(name),
      headers: headersTo(target),
      body: requestTo(name, pace, prompt),
      connections,
      seconds: duration,
      expectedBytes,
    })
  await load(WARM_UP_SECONDS)
  const cpuMicros = await cpuPerCall(target, () => load(seconds))
  process.kill(target.pid, 'SIGUSR2')
  await wait(SIGNAL_MS)
  const { completed } = await load(seconds)
  process.kill(target.pid, 'SIGUSR2')
  await wait(WRITTEN_MS)
  await target.stop()
  running.delete(target)
  const [start, profile] = ['start', 'calls'].map(
    (part) => JSON.parse(readFileSync(`${file}.${part}.cpuprofile`, 'utf8')) as Profiler.Profile,
  ) as [Profiler.Profile, Profiler.Profile]
  writeFileSync(
    `${file}.svg`,
    flameGraph(profile, `${name}, ${caseName}: ${cpuMicros.toFixed(0)} µs of CPU a call`),
  )
  writeFileSync(
    `${file}.start.svg`,
    flameGraph(start, `${name}: ${startMs.toFixed(0)} ms of CPU to the first answer`),
  )
  return { target: name, case: caseName, calls: completed, cpuMicros, startMs, start, profile }
}

async function cpuPerCall(target: Running, load: () => ReturnType<typeof generate>): Promise<number> {
  const before = cpuOf(target)
  const { completed, faults } = await load()
  if (faults > 0) throw new Error(`${target.name}: ${faults} faults\n${target.complaints()}`)
  return ((cpuOf(target) - before) * 1e6) / completed
}

function cpuOf({ pid }: Running): number {
  return cpuSecondsOf(pid) ?? Number.NaN
}
