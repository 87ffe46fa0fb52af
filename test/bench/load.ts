/** The load generator: wrk where it is installed, else autocannon. Both check every answer's status and length. */
import { execFile, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { LOAD_CORE, onCore } from './processes.ts'
import { headersTo } from './workload.ts'

export interface Load {
  url: string
  /** Defaults to those of all targets but Portkey. */
  headers?: Readonly<Record<string, string>>
  body: string
  connections: number
  seconds: number
  /** Length of the decoded body that each answer must have. */
  expectedBytes: number
  /** The keys of its callers, in turn. Defaults to that of the headers. */
  keys?: readonly string[]
}

export interface LoadResult {
  completed: number
  seconds: number
  p50Ms: number
  p99Ms: number
  /** Answers with another status or length, broken connections, time-outs: any of them fails the run. */
  faults: number
}

export const generator = spawnSync('wrk', ['-v']).error === undefined ? 'wrk' : 'autocannon'

export function generate(load: Load): Promise<LoadResult> {
  return generator === 'wrk' ? withWrk(load) : withAutocannon(load)
}

const run = promisify(execFile)

/** wrk calls `done` in a Lua state of its own, so a thread's count of faults is fetched by name. */
function wrkScript(load: Load): string {
  const headers = Object.entries(load.headers ?? headersTo({ name: '' })).map(
    ([name, value]) => `wrk.headers["${name}"] = "${value}"`,
  )
  return `
wrk.method = "POST"
wrk.body = [==[${load.body}]==]
${headers.join('\n')}
local keys = {${(load.keys ?? []).map((key) => `"Bearer ${key}"`)}}
local sent = 0
local threads = {}
faults = 0
function request()
  sent = sent + 1
  if #keys > 0 then wrk.headers["authorization"] = keys[sent % #keys + 1] end
  return wrk.format()
end
function setup(thread) threads[#threads + 1] = thread end
function response(status, headers, body)
  if status ~= 200 or #body ~= ${load.expectedBytes} then faults = faults + 1 end
end
function done(summary, latency, requests)
  local e = summary.errors
  local total = e.connect + e.read + e.write + e.timeout
  for _, thread in ipairs(threads) do total = total + thread:get("faults") end
  io.write(string.format(
    '\\n{"completed":%d,"seconds":%f,"p50Ms":%f,"p99Ms":%f,"faults":%d}\\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3, total))
end
`
}

async function withWrk(load: Load): Promise<LoadResult> {
  const folder = mkdtempSync(join(tmpdir(), 'bench-'))
  try {
    const script = join(folder, 'request.lua')
    writeFileSync(script, wrkScript(load))
    const flags = ['-t', '1', '-c', String(load.connections), '-d', `${load.seconds}s`, '--timeout', '10s']
    const [program, args] = onCore(LOAD_CORE, ['wrk', ...flags, '-s', script, load.url])
    return lastLine((await run(program, args)).stdout)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

async function withAutocannon(load: Load): Promise<LoadResult> {
  const script = join(import.meta.dirname, 'autocannon-load.ts')
  const [program, args] = onCore(LOAD_CORE, [process.execPath, script])
  const running = run(program, args)
  // A long prompt is too long for an argument.
  running.child.stdin?.end(JSON.stringify(load))
  return lastLine((await running).stdout)
}

function lastLine(output: string): LoadResult {
  return JSON.parse(output.trim().split('\n').at(-1) ?? '') as LoadResult
}
