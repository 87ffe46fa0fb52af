import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { freePort } from './free-port.ts'

/** Why tests with Redis do not run here; false: they do. Fits the `skip` of a test's options. */
export const WITHOUT_REDIS: string | false =
  spawnSync('redis-server', ['--version']).status === 0 ? false : 'there is no redis-server on this machine'

/** A real Redis of its own, without persistence, that a test may stop in any way. */
export interface RedisServer {
  readonly port: number
  /** A client that reconnects at once; its connection errors are expected. Closed with the server. */
  client(options?: { enableAutoPipelining?: boolean }): Redis
  /** SIGKILL: everything it knew is gone. */
  kill(): Promise<void>
  /** Starts it again, on the same port. */
  restart(): Promise<void>
  /** SIGSTOP: connections stay open and nothing is answered. */
  pause(): void
  /** SIGCONT: what was asked meanwhile is answered now. */
  resume(): void
  close(): Promise<void>
}

/** Options of {@link startRedis}. */
export interface RedisServerOptions {
  /** A program, and its arguments, that the server is run with. */
  runWith?: readonly string[]
  /** Further arguments of its command line. */
  settings?: readonly string[]
  /** The master that it watches as a sentinel, alone, and replaces after a second. */
  sentinelOf?: { readonly name: string; readonly port: number }
}

/** Starts a Redis on a free port, in a folder of its own. */
export async function startRedis(options: RedisServerOptions = {}): Promise<RedisServer> {
  const port = await freePort()
  const folder = mkdtempSync(join(tmpdir(), 'gateway-redis-'))
  const clients: Redis[] = []
  let child = await launch(port, folder, options)
  // A test that fails must not leave it behind.
  const atExit = () => child.kill('SIGKILL')
  process.once('exit', atExit)
  const kill = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const gone = new Promise((resolve) => child.once('exit', () => resolve(undefined)))
    child.kill('SIGKILL')
    await gone
  }
  return {
    port,
    client(options) {
      const client = new Redis(port, '127.0.0.1', { retryStrategy: () => 50, ...options })
      client.on('error', () => {})
      clients.push(client)
      return client
    },
    kill,
    async restart() {
      await kill()
      child = await launch(port, folder, options)
    },
    pause: () => void child.kill('SIGSTOP'),
    resume: () => void child.kill('SIGCONT'),
    async close() {
      for (const client of clients) client.disconnect()
      await kill()
      process.off('exit', atExit)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

function launch(port: number, folder: string, options: RedisServerOptions): Promise<ChildProcess> {
  const { runWith = [], settings = [], sentinelOf } = options
  const address = ['--port', `${port}`, '--bind', '127.0.0.1', '--dir', folder]
  const [program = '', ...args] = sentinelOf
    ? [...runWith, 'redis-server', sentinelConfig(folder, sentinelOf), ...address, '--sentinel']
    : [...runWith, 'redis-server', ...address, '--save', '', '--appendonly', 'no', ...settings]
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  return new Promise((resolve, reject) => {
    let said = ''
    child.once('error', reject)
    child.once('exit', (code) => reject(new Error(`redis-server ended with code ${code}: ${said}`)))
    child.stdout.on('data', (chunk: Buffer) => {
      said += chunk.toString()
      if (!/Ready to accept connections|Sentinel ID is/.test(said)) return
      child.removeAllListeners('exit')
      child.stdout.removeAllListeners('data').resume()
      resolve(child)
    })
  })
}

/** Writes the file in which a sentinel keeps what it learns. */
function sentinelConfig(
  folder: string,
  { name, port }: NonNullable<RedisServerOptions['sentinelOf']>,
): string {
  const file = join(folder, 'sentinel.conf')
  const lines = [
    `sentinel monitor ${name} 127.0.0.1 ${port} 1`,
    `sentinel down-after-milliseconds ${name} 1000`,
    `sentinel failover-timeout ${name} 5000`,
  ]
  writeFileSync(file, `${lines.join('\n')}\n`)
  return file
}
