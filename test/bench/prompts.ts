/**
 * Long prompts, as agents send them with every turn: `node test/bench/prompts.ts [--sizes 20,330] [--rounds 5]
 * [--seconds 2]`. For each size, in KB, and each kind of a prompt it prints the CPU time of a call as a ratio to the relay's,
 * its median time, and the longest hold of the event loop while one call comes after the other.
 */
import { readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { checkedAnswerBytes } from './answer-check.ts'
import { generate, type LoadResult } from './load.ts'
import { cpuSecondsOf, LOAD_CORE, type Running, startListening, TARGET_CORE } from './processes.ts'
import { median } from './statistics.ts'
import { BENCH_MODEL, pathTo } from './workload.ts'

const { values: flags } = parseArgs({
  options: {
    sizes: { type: 'string', default: '20,330,2048,18432' },
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '2' },
  },
})
const rounds = Number(flags.rounds)
const seconds = Number(flags.seconds)

const TARGETS = ['relay', 'whole-memory', 'whole-translated']
const SIZES = flags.sizes.split(',').map((kilobytes) => Number(kilobytes) * 1024)
const KINDS = { text, tools, images }
/** Calls of one size at the same time. A body of 18 MB has a part of the memory that a process gives to bodies. */
const CONNECTIONS = { one: 1, few: 2, many: 16 }
const LARGE = 4 * 1024 * 1024

const delayFile = join(tmpdir(), `loop-delay-${process.pid}`)
const upstream = await startListening('upstream', join(import.meta.dirname, 'upstream.ts'), LOAD_CORE)
const targets = await Promise.all(
  TARGETS.map((name) =>
    startListening(
      name,
      join(import.meta.dirname, 'targets', `${name}.ts`),
      TARGET_CORE,
      { UPSTREAM: upstream.url, LOOP_DELAY: delayFile },
      ['--import', join(import.meta.dirname, 'loop-delay-on-signal.ts')],
    ),
  ),
)
process.on('exit', () => {
  for (const each of [...targets, upstream]) void each.stop()
  rmSync(delayFile, { force: true })
})

interface Measured {
  readonly cpuMs: number
  readonly p50Ms: number
  readonly heldMs: number
}

console.log(
  '| prompt | target | CPU a call, ms | relay ÷ target | p50, ms | one call holds the event loop, CPU ms |',
)
console.log('| --- | --- | --- | --- | --- | --- |')
for (const size of SIZES) {
  for (const [kind, bodyOf] of Object.entries(KINDS)) {
    const body = bodyOf(size)
    const measured: Measured[][] = targets.map(() => [])
    for (const target of targets) await measure(target, body)
    for (let round = 0; round < rounds; round++)
      for (const [i, target] of targets.entries()) measured[i]?.push(await measure(target, body))
    const [relay = []] = measured
    for (const [i, target] of targets.entries()) {
      const all = measured[i] as Measured[]
      const ratio = median(all.map(({ cpuMs }, round) => (relay[round] as Measured).cpuMs / cpuMs))
      const cells = [
        `${kind}, ${size / 1024} KB`,
        target.name,
        median(all.map(({ cpuMs }) => cpuMs)).toFixed(2),
        ratio.toFixed(2),
        median(all.map(({ p50Ms }) => p50Ms)).toFixed(1),
        Math.max(...all.map(({ heldMs }) => heldMs)).toFixed(0),
      ]
      console.log(`| ${cells.join(' | ')} |`)
    }
  }
}
process.exit()

async function measure(target: Running, body: string): Promise<Measured> {
  const expectedBytes = await checkedAnswerBytes(target, null)
  const before = cpuSecondsOf(target.pid) ?? 0
  const atOnce = body.length > LARGE ? CONNECTIONS.few : CONNECTIONS.many
  const { completed, p50Ms } = await send(target, body, atOnce, expectedBytes)
  const cpuMs = (((cpuSecondsOf(target.pid) ?? 0) - before) * 1000) / completed
  await loopHeld(target)
  await send(target, body, CONNECTIONS.one, expectedBytes)
  return { cpuMs, p50Ms, heldMs: await loopHeld(target) }
}

async function send(
  target: Running,
  body: string,
  connections: number,
  expectedBytes: number,
): Promise<LoadResult> {
  const result = await generate({
    url: target.url + pathTo(target.name),
    body,
    connections,
    seconds,
    expectedBytes,
  })
  if (result.faults > 0 || result.completed === 0)
    throw new Error(
      `${target.name}: ${result.faults} faults among ${result.completed} answers\n${target.complaints()}`,
    )
  return result
}

/** Returns the longest hold of the event loop since the last time, in milliseconds of CPU time. */
async function loopHeld(target: Running): Promise<number> {
  process.kill(target.pid, 'SIGUSR2')
  await wait(100)
  return Number(readFileSync(delayFile, 'utf8'))
}

function chat(messages: readonly object[], more: object = {}): string {
  return JSON.stringify({ model: BENCH_MODEL, max_tokens: 256, messages, ...more })
}

/** A conversation of many turns, as an agent repeats it. */
function text(size: number): string {
  const source = readFileSync(join(import.meta.dirname, 'corpus/typescript.txt'), 'utf8')
  const turn = source.repeat(Math.ceil(4096 / source.length)).slice(0, 4096)
  const messages = Array.from({ length: Math.ceil(size / 4300) }, (_, i) => ({
    role: i % 2 === 0 ? 'user' : 'assistant',
    content: `${i}: ${turn}`,
  }))
  return chat(messages)
}

/** Calls of tools and their results. */
function tools(size: number): string {
  const source = readFileSync(join(import.meta.dirname, 'corpus/english.txt'), 'utf8').slice(0, 1800)
  const call = (i: number) => ({
    id: `call_${i}`,
    type: 'function',
    function: { name: 'search', arguments: JSON.stringify({ query: `topic ${i}`, limit: 10 }) },
  })
  const messages = Array.from({ length: Math.ceil(size / 2200) }, (_, i) => [
    { role: 'assistant', content: null, tool_calls: [call(i)] },
    { role: 'tool', tool_call_id: `call_${i}`, content: source },
  ]).flat()
  const definition = {
    type: 'function',
    function: {
      name: 'search',
      description: 'Searches.',
      parameters: { type: 'object', properties: { query: { type: 'string' }, limit: { type: 'integer' } } },
    },
  }
  return chat([{ role: 'user', content: 'Search, and write a summary.' }, ...messages], {
    tools: [definition],
  })
}

/** Images in base64. */
function images(size: number): string {
  const image = `data:image/png;base64,${Buffer.alloc(Math.min(size, 1024 * 1024) * 0.75, 'image').toString('base64')}`
  const parts = Array.from({ length: Math.ceil(size / image.length) }, () => ({
    type: 'image_url',
    image_url: { url: image },
  }))
  return chat([{ role: 'user', content: [{ type: 'text', text: 'What is this?' }, ...parts] }])
}
