import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { CallLogEntry } from '../../lib/middleware/call-log/index.ts'
import { jsonOf } from './answer-bodies.ts'
import { BUILT_GATEWAY } from './built-gateway.ts'

const SOURCE = fileURLToPath(new URL('../../examples/gateway/start.ts', import.meta.url))
const BIN = fileURLToPath(new URL('../../examples/gateway/bin.ts', import.meta.url))
const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const BUILT = join(ROOT, 'dist/gateway/start.js')
const BUILT_BIN = join(ROOT, 'dist/gateway/bin.js')
/** Of Node, as `npm start` gives them. */
const NODE_OPTIONS: readonly string[] = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  .scripts.start.split('exec node ')[1]
  .split(' ')
  .slice(0, -1)
const FROM_SOURCE: readonly string[] = [process.execPath, ...NODE_OPTIONS, SOURCE]
const isBuilt = Boolean(process.env[BUILT_GATEWAY])
const BUILT_OPTIONS = NODE_OPTIONS.filter((option) => !option.startsWith('--conditions'))
const GATEWAY: readonly string[] = isBuilt ? [process.execPath, ...BUILT_OPTIONS, BUILT] : FROM_SOURCE
/** The command as `npx` runs it, which reads a `.env` too. */
export const GATEWAY_COMMAND: readonly string[] = isBuilt
  ? [process.execPath, ...BUILT_OPTIONS, BUILT_BIN]
  : [process.execPath, ...NODE_OPTIONS, BIN]
const STARTS_WITHIN_MS = 100_000
/** With Node's compile cache, where the tests have one, a start takes half the time. */
const { PATH, NODE_COMPILE_CACHE } = process.env

/** How a process ended, with everything it said. */
export interface Exit {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

/** A line of its log. */
export interface LogLine {
  readonly msg: string
  readonly [field: string]: unknown
}

/** The assembled gateway in a process of its own, ready. */
export interface GatewayProcess {
  readonly url: string
  readonly port: number
  readonly pid: number
  /** Everything it has said so far. */
  readonly stdout: string
  readonly stderr: string
  /** The log lines among it. */
  readonly logged: readonly LogLine[]
  kill(signal: NodeJS.Signals): void
  /** Resolves when it has ended. */
  readonly exited: Promise<Exit>
  /** Ends it at once, if it still runs. */
  stop(): Promise<void>
}

export type Environment = Record<string, string | undefined>

/**
 * Starts the gateway on a free port and waits until it says that it is ready.
 *
 * @param through a program, with its arguments, that turns into the one that it is given.
 */
export async function startGatewayProcess(
  env: Environment = {},
  through: readonly string[] = [],
): Promise<GatewayProcess> {
  return startProgram([...through, ...GATEWAY], ROOT, env)
}

/** Starts the gateway from its sources, of which it serves the console file by file, without their types. */
export function startSourceGateway(env: Environment): Promise<GatewayProcess> {
  return startProgram(FROM_SOURCE, ROOT, env)
}

/** Starts the gateway by a command of its own, in a folder, and waits until it says that it is ready. */
export async function startProgram(
  command: readonly string[],
  cwd: string,
  env: Environment = {},
): Promise<GatewayProcess> {
  const running = run(command, cwd, env)
  const ready = await Promise.race([running.ready, running.exited])
  if (typeof ready !== 'string') throw new Error(`the gateway ended with ${ready.code}: ${ready.stderr}`)
  const { port } = new URL(ready)
  return {
    url: ready,
    port: Number(port),
    pid: running.child.pid as number,
    get stdout() {
      return running.said.stdout
    },
    get stderr() {
      return running.said.stderr
    },
    get logged() {
      return running.said.stdout
        .split('\n')
        .filter((line) => line.startsWith('{') && line.endsWith('}'))
        .map((line) => JSON.parse(line))
    },
    kill: (signal) => void running.child.kill(signal),
    exited: running.exited,
    async stop() {
      running.child.kill('SIGKILL')
      await running.exited
    },
  }
}

/** Runs a gateway that is expected to end by itself. */
export function runToExit(env: Environment, through: readonly string[] = []): Promise<Exit> {
  return runProgram([...through, ...GATEWAY], ROOT, env)
}

/** Runs a command that is expected to end by itself, in a folder. */
export function runProgram(command: readonly string[], cwd: string, env: Environment = {}): Promise<Exit> {
  return run(command, cwd, env).exited
}

function run(command: readonly string[], cwd: string, env: Environment) {
  const [program, ...given] = command as [string, ...string[]]
  const child: ChildProcess = spawn(program, given, {
    cwd,
    env: { PATH, NODE_COMPILE_CACHE, PORT: '0', DATABASE_URL: 'memory:', SHUTDOWN_NOTICE_MS: '250', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const said = { stdout: '', stderr: '' }
  const ready = Promise.withResolvers<string>()
  let isReady = false
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    said.stdout += text
    if (isReady) return
    const url = /ready at (http:\S+)\n/.exec(said.stdout)?.[1]
    if (url === undefined) return
    isReady = true
    ready.resolve(url)
  })
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    said.stderr += text
  })
  const timer = setTimeout(() => {
    ready.reject(new Error(`not ready after ${STARTS_WITHIN_MS} ms: ${said.stdout}${said.stderr}`))
    child.kill('SIGKILL')
  }, STARTS_WITHIN_MS)
  const exited = once(child, 'close').then(([code, signal]): Exit => {
    clearTimeout(timer)
    return { code, signal, ...said }
  })
  ready.promise.then(
    () => clearTimeout(timer),
    () => {},
  )
  return { child, said, ready: ready.promise, exited }
}

/** A folder for a test's files, removed by `remove`. */
export async function temporaryFolder(): Promise<{ path: string; remove(): Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), 'gateway-'))
  return { path, remove: () => rm(path, { recursive: true, force: true }) }
}

/** Asks the demo gateway's chat endpoint. */
export function post(
  url: string,
  body: object,
  headers: Record<string, string> = {},
  signal: AbortSignal | null = null,
): Promise<Response> {
  return fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: 'Bearer sk-demo', 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
    signal,
  })
}

/** The smallest chat call. */
export const chat = (model = 'chat-small', content = 'Hello!', extra: object = {}) => ({
  model,
  messages: [{ role: 'user', content }],
  ...extra,
})

/** Looks a call up in the call log; on a busy machine it may take a while to be there. */
export async function lookUp(url: string, requestId: string | null, key = 'sk-demo'): Promise<CallLogEntry> {
  const started = performance.now()
  for (;;) {
    const response = await fetch(`${url}/v1/calls/${requestId}`, {
      headers: { authorization: `Bearer ${key}` },
    })
    if (response.status === 200) return jsonOf<CallLogEntry>(response)
    if (performance.now() - started > 20_000) throw new Error(`not in the call log: ${requestId}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
