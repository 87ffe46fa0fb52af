/**
 * Every target beside the bare relay, one core each: `node test/bench/run.ts [--rounds 5] [--seconds 4]
 * [--targets relay,express-proxy] [--cases plain-1,memory] [--base relay] [--streams 5000] [--json <file>] [--write]`.
 * `--write` puts the figures into docs/benchmarks.md. See README.md.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { CASES_OF_PAGE, throughputSection, withSection } from './benchmarks-page.ts'
import { measureFirstByte } from './first-byte.ts'
import type { HeldStreams } from './held-streams.ts'
import { measureHeldStreams } from './held-streams.ts'
import { generator } from './load.ts'
import { preparePortkey } from './portkey.ts'
import type { Running } from './processes.ts'
import { LOAD_CORE, pinned, startListening, TARGET_CORE } from './processes.ts'
import type { ThroughputRow } from './report.ts'
import {
  firstByteTable,
  heldStreamsTable,
  throughputNotes,
  throughputRows,
  throughputTable,
} from './report.ts'
import { measureThroughput, throughputCases } from './throughput.ts'
import { PORTKEY, serves } from './workload.ts'

const RELAY = 'relay'
const FIRST_BYTE = 'first-byte'
const MEMORY = 'memory'
const MEMORY_ROUNDS = 3

const targetsFolder = join(import.meta.dirname, 'targets')
const allTargets = readdirSync(targetsFolder)
  .filter((file) => file.endsWith('.ts'))
  .map((file) => file.slice(0, -3))
  .sort((a, b) => Number(b === RELAY) - Number(a === RELAY) || a.localeCompare(b))
const allCases = [...throughputCases.map(({ name }) => name), FIRST_BYTE, MEMORY]

const { values: flags } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '4' },
    targets: { type: 'string', default: allTargets.join() },
    cases: { type: 'string', default: allCases.join() },
    base: { type: 'string', default: RELAY },
    streams: { type: 'string', default: '5000' },
    json: { type: 'string' },
    write: { type: 'boolean', default: false },
  },
})
const rounds = wholeNumber('rounds')
const seconds = wholeNumber('seconds')
const streams = wholeNumber('streams')
let names = chosen('targets', allTargets)
const [base = RELAY] = chosen('base', allTargets)
const cases = chosen('cases', allCases)

if (flags.write && !CASES_OF_PAGE.every((name) => cases.includes(name)))
  throw new Error(`--write needs the cases ${CASES_OF_PAGE.join(', ')}`)

function wholeNumber(flag: 'rounds' | 'seconds' | 'streams'): number {
  const value = Number(flags[flag])
  if (!Number.isInteger(value) || value < 1) throw new Error(`--${flag} takes a whole number of at least 1`)
  return value
}

function chosen(flag: 'targets' | 'cases' | 'base', known: string[]): string[] {
  const asked = flags[flag].split(',')
  const unknown = asked.filter((name) => !known.includes(name))
  if (unknown.length > 0)
    throw new Error(`--${flag}: no ${unknown.join(', ')}; there are ${known.join(', ')}`)
  return asked
}

if (names.includes(PORTKEY) && !(await preparePortkey())) names = names.filter((name) => name !== PORTKEY)
/** The targets that are sent streams. */
const streaming = names.filter((name) => serves(name, 'coalesced'))

const running = new Set<Running>()
// A target may run in memory it shares with nobody and must not outlive the run, however that ends.
process.on('exit', () => {
  for (const one of running) void one.stop()
})
process.on('SIGINT', () => process.exit(130))
process.on('SIGTERM', () => process.exit(143))

async function start(...args: Parameters<typeof startListening>): Promise<Running> {
  const started = await startListening(...args)
  running.add(started)
  return started
}

function startTarget(name: string, upstream: Running, nodeFlags: string[] = []): Promise<Running> {
  return start(name, join(targetsFolder, `${name}.ts`), TARGET_CORE, { UPSTREAM: upstream.url }, nodeFlags)
}

async function stop(one: Running): Promise<void> {
  running.delete(one)
  await one.stop()
}

async function measureMemory(upstream: Running): Promise<HeldStreams[][]> {
  const collectOnSignal = join(import.meta.dirname, 'collect-on-signal.ts')
  const measured: HeldStreams[][] = streaming.map(() => [])
  for (let round = 0; round < Math.min(rounds, MEMORY_ROUNDS); round++) {
    for (const [i, name] of streaming.entries()) {
      const target = await startTarget(name, upstream, ['--expose-gc', '--import', collectOnSignal])
      measured[i]?.push(await measureHeldStreams(target, streams))
      await stop(target)
    }
  }
  return measured
}

function progress(text: string) {
  process.stderr.write(`${text}\n`)
}

const place = pinned
  ? `target on core ${TARGET_CORE}, upstream and ${generator} on core ${LOAD_CORE}`
  : `not pinned (no taskset, or one core): processes compete for cores, figures are rough; load from ${generator}`
const machine = `${cpus()[0]?.model.trim()}, ${cpus().length} cores, Node ${process.versions.node}`
const setting = `${machine}; ${place}; ${rounds} rounds of ${seconds} s`
const results: Record<string, unknown> = { setting }
const output = [setting]

const upstream = await start('upstream', join(import.meta.dirname, 'upstream.ts'), LOAD_CORE)
const targets: Running[] = []
for (const name of names) targets.push(await startTarget(name, upstream))

const rows: ThroughputRow[] = []
for (const throughputCase of throughputCases.filter(({ name }) => cases.includes(name))) {
  progress(throughputCase.name)
  const [alone] = throughputRows(
    throughputCase,
    ['(upstream alone)'],
    await measureThroughput(throughputCase, [upstream], upstream, 1, seconds),
    base,
  )
  const asked = targets.filter(({ name }) => serves(name, throughputCase.pace))
  const measured = await measureThroughput(throughputCase, asked, upstream, rounds, seconds)
  const askedNames = asked.map(({ name }) => name)
  const caseRows = throughputRows(throughputCase, askedNames, measured, base)
  rows.push(...caseRows, ...(alone === undefined ? [] : [alone]))
}
const notes = throughputNotes(rows)
if (rows.length > 0) {
  results.throughput = rows
  output.push(throughputTable(rows), ...(notes.length > 0 ? [notes.join('\n')] : []))
}
if (cases.includes(FIRST_BYTE)) {
  progress(FIRST_BYTE)
  const asked = targets.filter(({ name }) => streaming.includes(name))
  const measured = await measureFirstByte(asked, rounds)
  results.firstByteMs = Object.fromEntries(streaming.map((name, i) => [name, measured[i]]))
  output.push(firstByteTable(streaming, measured, base))
}
await Promise.all(targets.map(stop))
if (cases.includes(MEMORY)) {
  progress(MEMORY)
  const measured = await measureMemory(upstream)
  results.memory = Object.fromEntries(streaming.map((name, i) => [name, measured[i]]))
  output.push(heldStreamsTable(streaming, measured, base))
}
process.stdout.write(`${output.join('\n\n')}\n`)
if (flags.json !== undefined) writeFileSync(flags.json, `${JSON.stringify(results, null, 2)}\n`)
if (flags.write) {
  const file = join(import.meta.dirname, '../../docs/benchmarks.md')
  const date = new Date().toISOString().slice(0, 10)
  const section = throughputSection({ date, machine, rounds, seconds, rows })
  writeFileSync(file, withSection(readFileSync(file, 'utf8'), 'throughput', section))
}
process.exit(0)
