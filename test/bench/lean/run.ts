/**
 * What one warm plain chat call costs the assembled gateway: `node test/bench/lean/run.ts [--list] [--check | --write]`.
 * See ../README.md.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { benchSource } from '../chain.ts'
import { LOAD_CORE, startListening } from '../processes.ts'
import { bytesOfOneCall, NO_COLLECTIONS, type Shares, sharesOfOneCall } from './allocation.ts'
import { type Figures, grownFigures, keepFigures } from './figures.ts'
import { functionsOfOneCall, type RunFunction } from './functions.ts'
import { OneConnection } from './one-connection.ts'
import { PARTS, type Part, partOf } from './parts.ts'
import { startProbed } from './probed-process.ts'

const { values: flags } = parseArgs({
  options: {
    list: { type: 'boolean', default: false },
    check: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
  },
})

const bench = join(import.meta.dirname, '..')
const upstream = await startListening('upstream', join(bench, 'upstream.ts'), LOAD_CORE)
const folder = mkdtempSync(join(tmpdir(), 'gateway-lean-'))
process.on('exit', () => {
  upstream.stop()
  rmSync(folder, { recursive: true, force: true })
})
process.on('SIGINT', () => process.exit(130))
process.on('SIGTERM', () => process.exit(143))

async function measureRelay(): Promise<number> {
  const script = join(bench, 'targets/relay.ts')
  await using relay = await startProbed(script, { UPSTREAM: upstream.url }, NO_COLLECTIONS)
  return await bytesOfOneCall(relay, new OneConnection(relay.port))
}

async function measureGateway(): Promise<{ bytes: number; shares: Shares; functions: RunFunction[] }> {
  const config = join(folder, 'gateway.json')
  writeFileSync(config, JSON.stringify(benchSource(upstream.url)))
  const script = join(bench, '../../examples/gateway/server.ts')
  const env = { DATABASE_URL: 'memory:', REDIS_URL: '', GATEWAY_CONFIG: config }
  await using gateway = await startProbed(script, env, NO_COLLECTIONS)
  const caller = new OneConnection(gateway.port)
  return {
    bytes: await bytesOfOneCall(gateway, caller),
    shares: await sharesOfOneCall(gateway, caller),
    // Last, because the engine gives up optimised code for it.
    functions: await functionsOfOneCall(gateway, caller),
  }
}

function figuresOf(
  relayBytes: number,
  { bytes, shares, functions }: Awaited<ReturnType<typeof measureGateway>>,
): Figures {
  const count = (all: readonly RunFunction[]) => ({
    functions: all.length,
    files: new Set(all.map(({ path }) => path)).size,
  })
  const costOf = (part: Part) => ({
    bytes: Math.round(shares.parts[part] * bytes),
    ...count(functions.filter(({ path }) => partOf(path) === part)),
  })
  return {
    bytes: Math.round(bytes),
    ...count(functions),
    relayBytes: Math.round(relayBytes),
    parts: Object.fromEntries(PARTS.map((part) => [part, costOf(part)])) as Figures['parts'],
  }
}

const relayBytes = await measureRelay()
const measured = await measureGateway()
const figures = figuresOf(relayBytes, measured)

const rows: [string, ...number[]][] = PARTS.map((part) => {
  const { bytes, functions, files } = figures.parts[part]
  return [part, bytes, functions, files]
})
rows.push(['Node and packages', Math.round(measured.shares.outside * figures.bytes)])
rows.push(['one call', figures.bytes, figures.functions, figures.files])
rows.push(['bare relay', figures.relayBytes])
console.log('| | bytes | functions | files |\n| --- | --- | --- | --- |')
for (const [name, ...cells] of rows)
  console.log(`| ${[name, ...cells.map(String)].join(' | ')} |${' |'.repeat(3 - cells.length)}`)

if (flags.list) {
  console.log()
  for (const { path, line, name } of measured.functions) console.log(`${path}:${line} ${name}`)
  console.log()
  const byBytes = [...measured.shares.functions].sort(([, a], [, b]) => b - a)
  for (const [name, share] of byBytes)
    console.log(`${String(Math.round(share * figures.bytes)).padStart(7)} ${name}`)
}
if (flags.write) keepFigures(figures)
const grown = flags.check ? grownFigures(figures) : []
for (const line of grown) console.error(line)
process.exit(grown.length > 0 ? 1 : 0)
