/**
 * Where the CPU time of a call goes: `node test/bench/profile.ts [--target whole-memory] [--case plain-32]
 * [--seconds 8] [--out whole-memory.cpuprofile]`. See README.md.
 */
import { readFileSync } from 'node:fs'
import type { Profiler } from 'node:inspector'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { checkedAnswerBytes } from './answer-check.ts'
import { generate } from './load.ts'
import { cpuSecondsOf, LOAD_CORE, startListening, TARGET_CORE } from './processes.ts'
import { throughputCases } from './throughput.ts'
import { pathTo, requestTo } from './workload.ts'

const WARM_UP_SECONDS = 8
const ROOT = join(import.meta.dirname, '../..')

const { values: flags } = parseArgs({
  options: {
    target: { type: 'string', default: 'whole-memory' },
    case: { type: 'string', default: 'plain-32' },
    seconds: { type: 'string', default: '8' },
    out: { type: 'string' },
  },
})
const chosen = throughputCases.find(({ name }) => name === flags.case)
if (chosen === undefined) throw new Error(`--case: there are ${throughputCases.map(({ name }) => name)}`)
const { pace, connections } = chosen
const out = flags.out ?? join(tmpdir(), `${flags.target}.cpuprofile`)

const upstream = await startListening('upstream', join(import.meta.dirname, 'upstream.ts'), LOAD_CORE)
const target = await startListening(
  flags.target,
  join(import.meta.dirname, 'targets', `${flags.target}.ts`),
  TARGET_CORE,
  { UPSTREAM: upstream.url, PROFILE: out },
  ['--import', join(import.meta.dirname, 'profile-on-signal.ts')],
)
process.on('exit', () => {
  target.stop()
  upstream.stop()
})

const expectedBytes = await checkedAnswerBytes(target, pace)
const load = (seconds: number) =>
  generate({
    url: target.url + pathTo(target.name),
    body: requestTo(target.name, pace),
    connections,
    seconds,
    expectedBytes,
  })
await load(WARM_UP_SECONDS)
const before = cpuSecondsOf(target.pid) ?? 0
const plain = await load(Number(flags.seconds))
const cpuMicros = (((cpuSecondsOf(target.pid) ?? 0) - before) * 1e6) / plain.completed
process.kill(target.pid, 'SIGUSR2')
await wait(300)
const profiled = await load(Number(flags.seconds))
process.kill(target.pid, 'SIGUSR2')
await wait(1500)

report(JSON.parse(readFileSync(out, 'utf8')), profiled.completed)
process.exit(0)

/** Groups of files, by the first part of the path that matches. */
function roomOf(url: string, name: string): string | undefined {
  if (url.startsWith('file://')) {
    const path = relative(ROOT, new URL(url).pathname)
    const inLib = /^lib\/((?:middleware|core|stores|endpoints)\/[^/]+|[^/]+)/.exec(path)
    if (inLib) return inLib[1]
    const inPackage = /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)
    if (inPackage) return `node_modules/${inPackage[1]}`
    return path.split('/').slice(0, 2).join('/')
  }
  if (name === '(garbage collector)') return 'garbage collector'
  if (name === '(idle)') return 'idle'
  if (name === '(program)') return 'native'
  return undefined
}

/** Prints the sampled time a call, by room and by function. */
function report({ nodes, samples = [], timeDeltas = [] }: Profiler.Profile, calls: number) {
  const byId = new Map(nodes.map((node) => [node.id, node]))
  const parents = new Map(nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id])))
  const rooms = new Map<string, number>()
  const alone = new Map<string, number>()
  const withCalled = new Map<string, number>()
  samples.forEach((id, i) => {
    const micros = timeDeltas[i] ?? 0
    const stack = framesFrom(id)
    const [top] = stack
    // What Node itself does counts for the room that has called it.
    const room = stack.map(({ url, functionName }) => roomOf(url, functionName)).find((each) => each)
    add(rooms, room ?? 'node', micros)
    if (top) add(alone, nameOf(top), micros)
    for (const name of new Set(stack.map(nameOf))) add(withCalled, name, micros)
  })
  console.log(`${flags.target}, ${flags.case}: ${cpuMicros.toFixed(0)} µs of CPU a call without the profiler`)
  print('rooms, with what they call in Node', rooms, 40)
  print('functions alone', alone, 60)
  print('functions with what they call', withCalled, 150)

  /** Returns the call frames of a sample, the running function first. */
  function framesFrom(id: number): Profiler.ProfileNode['callFrame'][] {
    const frames: Profiler.ProfileNode['callFrame'][] = []
    for (let at: number | undefined = id; at !== undefined; at = parents.get(at)) {
      const node = byId.get(at)
      if (node) frames.push(node.callFrame)
    }
    return frames
  }

  function print(title: string, times: ReadonlyMap<string, number>, most: number) {
    console.log(`\n${title}, µs a call`)
    const longest = [...times].sort(([, one], [, other]) => other - one).slice(0, most)
    for (const [name, micros] of longest) console.log(`${(micros / calls).toFixed(1).padStart(8)}  ${name}`)
  }
}

function add(times: Map<string, number>, name: string, micros: number) {
  times.set(name, (times.get(name) ?? 0) + micros)
}

function nameOf({ functionName, url, lineNumber }: Profiler.ProfileNode['callFrame']): string {
  return `${functionName || '(anonymous)'} ${url.replace(`file://${ROOT}/`, '')}:${lineNumber + 1}`
}
