import { type ChildProcess, spawn } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { runningProcesses, signalIfThere } from './processes.ts'

const STARTS_WITHIN_MS = 30_000

/** A Postgres: the process that listens, and those that it starts. */
export class PostgresProcess {
  readonly #command: readonly string[]
  readonly #user: { uid: number; gid: number } | undefined
  readonly #settings: Readonly<Record<string, string | number>>
  #child: ChildProcess | undefined

  constructor(
    command: readonly string[],
    user: { uid: number; gid: number } | undefined,
    settings: Readonly<Record<string, string | number>>,
  ) {
    this.#command = command
    this.#user = user
    this.#settings = settings
  }

  /** Resolves when it accepts connections. */
  async start(): Promise<void> {
    if (this.#running) return
    const deadline = performance.now() + STARTS_WITHIN_MS
    for (;;) {
      const failure = await this.#launch()
      if (failure === undefined) return
      // The processes of one that was killed may take a moment to go.
      const again = /still in use|already exists|could not bind/.test(failure) && performance.now() < deadline
      if (!again) throw new Error(`postgres did not start: ${failure}`)
      await sleep(50)
    }
  }

  async stop(): Promise<void> {
    await this.#end(() => this.#child?.kill('SIGINT'))
  }

  async kill(): Promise<void> {
    await this.#end(() => this.killAll())
  }

  killAll(): void {
    // A process that starts another in the middle of this cannot: it is stopped first.
    this.signalAll('SIGSTOP')
    this.signalAll('SIGKILL')
  }

  signalAll(signal: NodeJS.Signals): void {
    const pid = this.#running?.pid
    if (pid === undefined) return
    if (signal === 'SIGSTOP') process.kill(pid, signal)
    const children = runningProcesses().filter(({ parent }) => parent === pid)
    for (const child of children) signalIfThere(child.pid, signal)
    if (signal !== 'SIGSTOP') process.kill(pid, signal)
  }

  get #running(): ChildProcess | undefined {
    const child = this.#child
    return child && child.exitCode === null && child.signalCode === null ? child : undefined
  }

  async #end(how: () => void): Promise<void> {
    const child = this.#running
    if (!child) return
    const gone = new Promise((resolve) => child.once('exit', resolve))
    how()
    await gone
  }

  /** Starts it; returns its output where it did not start. */
  #launch(): Promise<string | undefined> {
    const given = Object.entries(this.#settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
    const data = `${this.#settings.data_directory}`
    const [program = '', ...args] = [...this.#command, '-D', data, ...given]
    const child = spawn(program, args, {
      ...this.#user,
      cwd: data,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    this.#child = child
    return new Promise((resolve, reject) => {
      let said = ''
      child.once('error', reject)
      child.once('exit', () => resolve(said))
      child.stderr.on('data', (chunk: Buffer) => {
        said += chunk.toString()
        if (!/database system is ready to accept (read-only )?connections/.test(said)) return
        child.removeAllListeners('exit')
        child.stderr.removeAllListeners('data').resume()
        resolve(undefined)
      })
    })
  }
}
