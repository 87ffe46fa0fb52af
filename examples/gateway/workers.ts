import cluster, { type Worker } from 'node:cluster'
import { randomUUID } from 'node:crypto'
import { type AddressInfo, createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Logger, MemoryLimitStore } from 'express-model-gateway'
import type { Settings } from './settings.ts'
import { shareLimits } from './shared-limits.ts'
import { type FromWorker, tellWorker } from './worker-messages.ts'
import { WorkerReports } from './worker-reports.ts'

/** A worker that died sooner than this after it was ready died at once. */
const STEADY_MS = 10_000
/** Before the second worker that is started after deaths at once; twice as long before each further one. */
const FIRST_WAIT_MS = 200
const LONGEST_WAIT_MS = 30_000
/** While no worker serves, so many deaths at once in a row are the end of it. */
const MOST_DEATHS = 5
/** Longer than a worker takes to drain and to settle. */
const STOPS_WITHIN_MS = 75_000

// Each worker takes connections from the one socket that all share. Handed on by the primary process, as is the default,
// a connection that is on its way to a worker which dies at that moment is lost: its caller would wait for ever.
cluster.schedulingPolicy = cluster.SCHED_NONE

/** What the workers are started with. */
export interface WorkersOptions {
  readonly count: number
  readonly settings: Settings
  /** The config, valid. */
  readonly source: object
  readonly logger: Logger
  /** None serves, and those that are started die at once. */
  onHopeless(): void
}

/** The processes that serve the port, seen from the primary one, which serves none itself. */
export class Workers {
  readonly #options: WorkersOptions
  readonly #limits = new MemoryLimitStore()
  readonly #reports = new WorkerReports()
  /** What one of them signs, another one has to know. Defaults of a process of its own would differ. */
  readonly #common = { urlSigningSecret: `${randomUUID()}${randomUUID()}` }
  #source: object
  #port = 0
  #started = false
  readonly #running = new Set<Worker>()
  /** Ready, and not leaving. */
  readonly #serving = new Map<Worker, { readonly since: number }>()
  /** Another one serves in their place, or is started to. */
  readonly #replaced = new WeakSet<Worker>()
  #starting = 0
  #deathsAtOnce = 0
  #filling = false
  #rolling = false
  #stopping = false

  constructor(options: WorkersOptions) {
    this.#options = options
    this.#source = { ...this.#common, ...options.source }
  }

  /**
   * Starts the first one alone, which says for all what is wrong, then the others.
   *
   * @throws {Error} when it ends before it is ready.
   */
  async start(): Promise<AddressInfo> {
    const { port, host } = this.#options.settings
    // Port 0 is another one for whoever asks for it after all others have died.
    this.#port = port === 0 ? await freePort(host) : port
    const address = await this.#spawn()
    this.#started = true
    const others = Array.from({ length: this.#options.count - 1 }, () => this.#spawn())
    await Promise.allSettled(others)
    return address
  }

  /** Puts a config, valid, in force in all of them, and in those that are started later. */
  reload(source: object): void {
    this.#source = { ...this.#common, ...source }
    for (const worker of this.#running) tellWorker(worker, { kind: 'reload', source: this.#source })
  }

  /** Puts a new one in the place of each: the new one is ready before the old one ends. */
  async roll(): Promise<void> {
    const { logger } = this.#options
    if (this.#rolling || this.#stopping) return
    this.#rolling = true
    logger.info({ workers: this.#serving.size }, 'restarting the workers one by one')
    for (const worker of [...this.#serving.keys()]) {
      if (!(await this.#replace(worker))) break
    }
    this.#rolling = false
    logger.info({ workers: this.#serving.size }, 'workers restarted')
    void this.#fill()
  }

  /** Ends all of them, without failing a request they have received; answers whether all ended well. */
  async stop(): Promise<boolean> {
    this.#stopping = true
    const ends = [...this.#running].map((worker) => {
      tellWorker(worker, { kind: 'stop' })
      return new Promise<boolean>((resolve) => worker.once('exit', (code) => resolve(code === 0)))
    })
    const late = setTimeout(() => this.kill(), STOPS_WITHIN_MS)
    const endedWell = (await Promise.all(ends)).every(Boolean)
    clearTimeout(late)
    return endedWell
  }

  /** Ends all of them at once. */
  kill(): void {
    for (const worker of this.#running) worker.process.kill('SIGKILL')
  }

  /** Starts one; resolves when it serves. Rejects when it ends before. */
  #spawn(): Promise<AddressInfo> {
    const worker = cluster.fork()
    this.#running.add(worker)
    this.#starting++
    shareLimits(worker, this.#limits)
    const number = this.#reports.add(worker)
    tellWorker(worker, { kind: 'start', source: this.#source, port: this.#port, worker: number })
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
        resolve(message.address)
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
    this.#options.logger.error({ worker: worker.process.pid, ...how }, 'a worker died')
    const steady = serving && performance.now() - serving.since >= STEADY_MS
    this.#deathsAtOnce = steady ? 0 : this.#deathsAtOnce + 1
    if (this.#started) void this.#fill()
  }

  /** Answers whether another one serves in its place. */
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
    tellWorker(worker, { kind: 'retire' })
    return true
  }

  /** Starts workers until there are as many as there should be, slower and slower while they die at once. */
  async #fill(): Promise<void> {
    if (this.#filling) return
    this.#filling = true
    while (!this.#stopping && this.#serving.size + this.#starting < this.#options.count) {
      const deaths = this.#deathsAtOnce
      if (deaths >= MOST_DEATHS && this.#serving.size === 0) {
        this.#options.onHopeless()
        return
      }
      if (deaths > 1) await sleep(Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** (deaths - 2)))
      if (!this.#stopping) await this.#spawn().catch(() => {})
    }
    this.#filling = false
  }
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
