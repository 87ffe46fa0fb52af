import cluster, { type Worker } from 'node:cluster'
import { randomUUID } from 'node:crypto'
import { type AddressInfo, createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'express-model-gateway'
import { MemoryLimitStore } from 'express-model-gateway/rate-limit'
import type { Settings } from '../config/environment.ts'
import { keptUntilRestart } from '../config/reload.ts'
import type { SentConfig } from '../config/served-config.ts'
import type { Addresses } from './messages.ts'
import { type FromWorker, type RestOfConfig, sendPages, sendToWorker } from './messages.ts'
import { WorkerReports } from './reports.ts'
import { shareLimits } from './shared-limits.ts'

/** A worker that ends sooner than this after it was ready counts as an early exit. */
const MIN_UPTIME_MS = 10_000
/** The wait before a worker is started after two early exits in a row; it doubles with each further one. */
const FIRST_WAIT_MS = 200
const MAX_WAIT_MS = 30_000
/** So many early exits in a row, while no worker serves, are a crash loop. */
const MAX_EARLY_EXITS = 5
/** Longer than a worker takes to drain and to settle after its notice. */
const STOP_TIMEOUT_MS = 75_000

// All workers accept connections from one shared socket. By default the primary process would pass connections on, and a
// connection on its way to a worker that dies would be lost: its caller would wait for ever.
cluster.schedulingPolicy = cluster.SCHED_NONE

export interface WorkersOptions {
  readonly count: number
  readonly settings: Settings
  /** A valid config. */
  readonly config: SentConfig
  readonly logger: Logger
  /** Called if no worker serves and new ones end early. */
  onCrashLoop(): void
}

/** Starts, replaces and stops the worker processes. Runs in the primary process, which serves no requests itself. */
export class Workers {
  readonly #options: Omit<WorkersOptions, 'config'>
  readonly #limits = new MemoryLimitStore()
  readonly #reports = new WorkerReports()
  /** A default that all workers must share, so that each accepts the signatures of the others. */
  readonly #common = { urlSigningSecret: `${randomUUID()}${randomUUID()}` }
  /** The config of all workers, also of one that replaces another. */
  #config: SentConfig
  /** The config of the workers after a restart. */
  #latest: SentConfig
  #port = 0
  #adminPort: number | undefined
  #started = false
  readonly #running = new Set<Worker>()
  /** The workers that are ready and not leaving. */
  readonly #serving = new Map<Worker, { readonly since: number }>()
  /** The workers that are replaced, or about to be. */
  readonly #replaced = new WeakSet<Worker>()
  #starting = 0
  #earlyExits = 0
  #filling = false
  #rolling = false
  /** Whether a signal came during a roll: a worker that was replaced before the signal may lack the change that it is about. */
  #rollAgain = false
  #stopping = false

  constructor({ config, ...options }: WorkersOptions) {
    this.#options = options
    this.#config = this.#withCommon(config)
    this.#latest = this.#config
  }

  /**
   * Starts the first worker, which reports faults of the settings once for all, then the others.
   *
   * @throws {Error} if the first worker ends before it is ready.
   */
  async start(): Promise<Addresses> {
    const { port, host, adminListener } = this.#options.settings
    // Port 0 would be another port for a worker that starts after all others have ended.
    this.#port = port === 0 ? await freePort(host) : port
    this.#adminPort = adminListener?.port === 0 ? await freePort(adminListener.host) : adminListener?.port
    const addresses = await this.#spawn()
    this.#started = true
    const others = Array.from({ length: this.#options.count - 1 }, () => this.#spawn())
    await Promise.allSettled(others)
    return addresses
  }

  /** Applies a valid config in all workers, also in those that are started later. */
  reload(config: SentConfig): void {
    this.#latest = this.#withCommon(config)
    this.#config = untilRestart(this.#config, this.#latest)
    // The newest one that serves: an older one may be about to end.
    const logging = [...this.#serving.keys()].at(-1) ?? [...this.#running].at(-1)
    for (const worker of this.#running) {
      sendPages(worker, this.#config)
      sendToWorker(worker, { kind: 'reload', config: restOf(this.#config), logsForAll: worker === logging })
    }
  }

  #withCommon(config: SentConfig): SentConfig {
    return { ...config, source: { ...this.#common, ...config.source } }
  }

  /**
   * Replaces the workers one by one. Each new worker is ready before the old one stops. A call during a roll makes one more
   * roll follow.
   */
  async rollingRestart(): Promise<void> {
    const { logger } = this.#options
    this.#rollAgain = true
    if (this.#rolling) return
    this.#rolling = true
    while (this.#rollAgain && !this.#stopping) {
      this.#rollAgain = false
      const before = this.#config
      this.#config = this.#latest
      logger.info({ workers: this.#serving.size }, 'restarting the workers one by one')
      for (const worker of [...this.#serving.keys()]) {
        if (await this.#replace(worker)) continue
        this.#config = untilRestart(before, this.#latest)
        break
      }
      logger.info({ workers: this.#serving.size }, 'workers restarted')
    }
    this.#rolling = false
    void this.#fill()
  }

  /** Stops all workers after they have answered the requests that they received. Returns whether all ended without an error. */
  async stop(): Promise<boolean> {
    this.#stopping = true
    const ends = [...this.#running].map((worker) => {
      sendToWorker(worker, { kind: 'stop' })
      // One that does not serve yet may not take signals yet: the same signal to all processes ends it.
      const served = this.#serving.has(worker)
      return new Promise<boolean>((resolve) =>
        worker.once('exit', (code, signal) =>
          resolve(code === 0 || (!served && /^SIG(TERM|INT)$/.test(signal))),
        ),
      )
    })
    const late = setTimeout(() => this.kill(), STOP_TIMEOUT_MS + this.#options.settings.noticeMs)
    const isClean = (await Promise.all(ends)).every(Boolean)
    clearTimeout(late)
    return isClean
  }

  /** Ends all workers at once. */
  kill(): void {
    for (const worker of this.#running) worker.process.kill('SIGKILL')
  }

  /** Starts a worker; resolves when it serves, and rejects if it ends before. */
  #spawn(): Promise<Addresses> {
    const worker = cluster.fork()
    this.#running.add(worker)
    this.#starting++
    shareLimits(worker, this.#limits)
    const number = this.#reports.add(worker)
    const ports = { port: this.#port, adminPort: this.#adminPort }
    const logsForAll = !this.#started
    sendPages(worker, this.#config)
    sendToWorker(worker, {
      kind: 'start',
      config: restOf(this.#config),
      ...ports,
      worker: number,
      logsForAll,
    })
    return new Promise((resolve, reject) => {
      let starting = true
      const started = (): void => {
        if (starting) this.#starting--
        starting = false
      }
      worker.on('message', (message: FromWorker) => {
        if (message.kind === 'leaving') void this.#replace(worker)
        if (message.kind !== 'ready') return
        started()
        this.#serving.set(worker, { since: performance.now() })
        resolve(message.addresses)
      })
      worker.once('exit', (code, signal) => {
        started()
        this.#noteEnd(worker, { code, signal })
        reject(new Error(`a worker ended with ${signal ?? code} before it was ready`))
      })
    })
  }

  #noteEnd(worker: Worker, how: { readonly code: number; readonly signal: string }): void {
    this.#running.delete(worker)
    const serving = this.#serving.get(worker)
    this.#serving.delete(worker)
    if (this.#stopping || (how.code === 0 && !serving)) return
    // The system kills a process that takes more memory than there is.
    const hint =
      how.signal === 'SIGKILL' ? { hint: 'if nobody has killed it, the machine is short of memory' } : {}
    this.#options.logger.error({ worker: worker.process.pid, ...how, ...hint }, 'a worker died')
    const isStable = serving && performance.now() - serving.since >= MIN_UPTIME_MS
    this.#earlyExits = isStable ? 0 : this.#earlyExits + 1
    if (this.#started) void this.#fill()
  }

  /** Replaces a worker; returns whether another one serves in its place. */
  async #replace(worker: Worker): Promise<boolean> {
    if (this.#stopping) return false
    if (!this.#serving.has(worker) || this.#replaced.has(worker)) return true
    this.#replaced.add(worker)
    try {
      await this.#spawn()
    } catch {
      this.#replaced.delete(worker)
      this.#options.logger.error({}, 'no new worker became ready; the old ones go on')
      return false
    }
    this.#serving.delete(worker)
    sendToWorker(worker, { kind: 'retire' })
    return true
  }

  /** Starts workers until their number is complete, with growing waits while they end early. */
  async #fill(): Promise<void> {
    if (this.#filling) return
    this.#filling = true
    while (!this.#stopping && this.#serving.size + this.#starting < this.#options.count) {
      const exits = this.#earlyExits
      if (exits >= MAX_EARLY_EXITS && this.#serving.size === 0) {
        this.#options.onCrashLoop()
        return
      }
      if (exits > 1) await sleep(Math.min(MAX_WAIT_MS, FIRST_WAIT_MS * 2 ** (exits - 2)))
      if (!this.#stopping) await this.#spawn().catch(() => {})
    }
    this.#filling = false
  }
}

/** Returns a config with the members of another one that need a restart. */
function untilRestart(started: SentConfig, next: SentConfig): SentConfig {
  return { ...next, source: keptUntilRestart(started.source, next.source) }
}

function restOf({ accounts: _, keys: __, ...rest }: SentConfig): RestOfConfig {
  return rest
}

function freePort(host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().once('error', reject)
    server.listen(0, host, () => {
      const { port } = server.address() as AddressInfo
      server.close(() => resolve(port))
    })
  })
}
